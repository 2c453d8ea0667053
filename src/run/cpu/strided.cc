#include "run/cpu/strided.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "run/number.h"

namespace partita::run {
namespace {

bool is_empty(const std::vector<Extent>& extents) {
  return std::any_of(extents.begin(), extents.end(), [](const Extent& e) { return e.size == 0; });
}

// Outermost first by the written side, neighbours that continue each other merged: the inner loop gets as
// long as the layouts allow.
std::vector<Extent> normalize(std::vector<Extent> extents) {
  std::erase_if(extents, [](const Extent& e) { return e.size == 1; });
  std::stable_sort(extents.begin(), extents.end(),
                   [](const Extent& a, const Extent& b) { return a.to > b.to; });
  std::vector<Extent> merged;
  for (const Extent& e : extents) {
    if (!merged.empty() && merged.back().to == e.to * e.size && merged.back().from == e.from * e.size) {
      merged.back() = {merged.back().size * e.size, e.to, e.from};
    } else {
      merged.push_back(e);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

// Calls `run(to offset, from offset)` for every position of all extents but the last.
template <class Run>
void for_each_run(const std::vector<Extent>& extents, size_t depth, int64_t to, int64_t from,
                  const Run& run) {
  if (depth + 1 == extents.size()) return run(to, from);
  const Extent& e = extents[depth];
  for (int64_t i = 0; i < e.size; ++i)
    for_each_run(extents, depth + 1, to + i * e.to, from + i * e.from, run);
}

template <class Word>
void copy_words(std::byte* to, const std::byte* from, const Extent& inner) {
  for (int64_t i = 0; i < inner.size; ++i)
    std::memcpy(to + i * inner.to * sizeof(Word), from + i * inner.from * sizeof(Word), sizeof(Word));
}

using CopyRun = void (*)(std::byte*, const std::byte*, const Extent&);
CopyRun copy_run(Bytes element) {
  switch (element) {
    case 1:
      return copy_words<uint8_t>;
    case 2:
      return copy_words<uint16_t>;
    case 4:
      return copy_words<uint32_t>;
    default:
      CHECK_EQ(element, 8);
      return copy_words<uint64_t>;
  }
}

// A block is summed in registers and cache before it is written, so `to` may be one of the sources and the
// order of addition is the order of `from` whichever of them it is.
template <class T, class Sum = typename SumOf<T>::Type>
void sum_run(std::byte* to, const std::vector<const std::byte*>& from, int64_t offset, const Extent& inner) {
  constexpr int64_t kBlock = 512;
  std::array<Sum, kBlock> sums;
  auto* out = reinterpret_cast<T*>(to);
  for (int64_t begin = 0; begin < inner.size; begin += kBlock) {
    int64_t count = std::min(kBlock, inner.size - begin);
    for (size_t k = 0; k < from.size(); ++k) {
      const auto* in = reinterpret_cast<const T*>(from[k]) + offset + begin * inner.from;
      for (int64_t i = 0; i < count; ++i) {
        Sum value = static_cast<Sum>(in[i * inner.from]);
        sums[i] = k == 0 ? value : static_cast<Sum>(sums[i] + value);
      }
    }
    for (int64_t i = 0; i < count; ++i) out[(begin + i) * inner.to] = static_cast<T>(sums[i]);
  }
}

}  // namespace

void copy_strided(std::byte* to, const std::byte* from, std::vector<Extent> extents, Bytes element) {
  if (is_empty(extents)) return;
  extents = normalize(std::move(extents));
  const Extent& inner = extents.back();
  bool dense = inner.to == 1 && inner.from == 1;
  CopyRun run = copy_run(element);
  for_each_run(extents, 0, 0, 0, [&](int64_t t, int64_t f) {
    if (dense) {
      std::memcpy(to + t * element, from + f * element, inner.size * element);
    } else {
      run(to + t * element, from + f * element, inner);
    }
  });
}

void sum_strided(std::byte* to, const std::vector<const std::byte*>& from, std::vector<Extent> extents,
                 DType dtype) {
  CHECK(!from.empty());
  if (is_empty(extents)) return;
  extents = normalize(std::move(extents));
  visit_dtype(dtype, [&]<class T>(T) {
    for_each_run(extents, 0, 0, 0,
                 [&](int64_t t, int64_t f) { sum_run<T>(to + t * sizeof(T), from, f, extents.back()); });
  });
}

void zero_strided(std::byte* to, std::vector<Extent> extents, Bytes element) {
  if (is_empty(extents)) return;
  extents = normalize(std::move(extents));
  const Extent& inner = extents.back();
  for_each_run(extents, 0, 0, 0, [&](int64_t t, int64_t) {
    if (inner.to == 1) {
      std::memset(to + t * element, 0, inner.size * element);
    } else {
      for (int64_t i = 0; i < inner.size; ++i) std::memset(to + (t + i * inner.to) * element, 0, element);
    }
  });
}

double sum_of_squares(const std::byte* from, std::vector<Extent> extents, DType dtype) {
  if (is_empty(extents)) return 0;
  extents = normalize(std::move(extents));
  const Extent& inner = extents.back();
  // Sums of a run are added up by runs, so that small terms are not lost in a large total.
  double total = 0;
  visit_dtype(dtype, [&]<class T>(T) {
    for_each_run(extents, 0, 0, 0, [&](int64_t, int64_t f) {
      const auto* in = reinterpret_cast<const T*>(from) + f;
      double run = 0;
      for (int64_t i = 0; i < inner.size; ++i) {
        double value = static_cast<double>(in[i * inner.from]);
        run += value * value;
      }
      total += run;
    });
  });
  return total;
}

}  // namespace partita::run
