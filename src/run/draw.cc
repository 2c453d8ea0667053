#include "run/draw.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/interrupt.h"

namespace partita::run {
namespace {

constexpr double kMatrixScale = 0.02, kNormScale = 0.1;
constexpr double kIgnored = -100;

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters neighbouring counters.
uint64_t scatter(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

// FNV-1a: the same on every machine, unlike std::hash.
uint64_t hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3ULL;
  return h;
}

template <class Value>
HostTensor fill(const Tensor& tensor, const Value& value) {
  std::vector<double> values(numel(tensor.shape));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value(i);
  return from_doubles(tensor.shape, tensor.dtype, values);
}

// A complex number is two real ones in memory.
HostTensor draw_complex(const Tensor& tensor, uint64_t seed) {
  Tensor pairs = tensor;
  pairs.shape.push_back(2);
  pairs.dtype = tensor.dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  HostTensor drawn = draw_weight(pairs, seed);
  drawn.shape = tensor.shape;
  drawn.dtype = tensor.dtype;
  return drawn;
}

bool is_norm_weight(const Tensor& tensor) {
  return tensor.shape.size() <= 1 && tensor.name.ends_with("weight");
}

bool is_label(const Tensor& tensor) {
  return !is_floating(tensor.dtype) &&
         (tensor.name.find("label") != std::string::npos || tensor.name.find("target") != std::string::npos);
}

HostTensor draw_input(const Tensor& tensor, int64_t step, const BatchOptions& options) {
  Stream stream(options.seed, fmt::format("{}@{}", tensor.name, step));
  if (is_floating(tensor.dtype)) return fill(tensor, [&](size_t i) { return stream.normal(i); });
  int64_t samples = tensor.shape.empty() ? 1 : tensor.shape[0];
  int64_t per_sample = numel(tensor.shape) / std::max<int64_t>(samples, 1);
  bool ignore = options.ignored_labels && is_label(tensor);
  Stream ignored(options.seed, fmt::format("{}@{} ignored", tensor.name, step));
  int64_t low = tensor.low, high = std::max(tensor.high, tensor.low + 1);
  return fill(tensor, [&](size_t i) -> double {
    // Sample k of n loses about (k + 1) / (n + 2) of its labels: uneven, and never all.
    int64_t sample = static_cast<int64_t>(i) / per_sample;
    if (ignore && ignored.between(i, 0, samples + 2) <= sample) return kIgnored;
    return static_cast<double>(stream.between(i, low, high));
  });
}

}  // namespace

Stream::Stream(uint64_t seed, std::string_view name) : key_(scatter(hash(name) + kGolden * (seed + 1))) {}

uint64_t Stream::bits(uint64_t index) const { return scatter(key_ + kGolden * (index + 1)); }

int64_t Stream::between(uint64_t index, int64_t low, int64_t high) const {
  CHECK(low < high);
  return low + static_cast<int64_t>(bits(index) % static_cast<uint64_t>(high - low));
}

double Stream::normal(uint64_t index) const {
  uint64_t word = bits(index);
  int64_t sum = (word & 0xffff) + ((word >> 16) & 0xffff) + ((word >> 32) & 0xffff) + (word >> 48);
  // Four uniform numbers on {0..65535}: mean 2 * 65535, variance 4 * 65536^2 / 12. The half keeps it off
  // zero.
  return (static_cast<double>(sum - 2 * 65535) + 0.5) * (std::sqrt(3.0) / 65536);
}

HostTensor draw_weight(const Tensor& tensor, uint64_t seed) {
  Stream stream(seed, tensor.name);
  if (is_complex(tensor.dtype)) return draw_complex(tensor, seed);
  if (tensor.dtype == DType::kBool) return fill(tensor, [](size_t) { return 1.0; });
  if (!is_floating(tensor.dtype)) return HostTensor(tensor.shape, tensor.dtype);
  if (tensor.role == Role::kBuffer || is_norm_weight(tensor))
    return fill(tensor, [&](size_t i) { return 1 + kNormScale * stream.normal(i); });
  return fill(tensor, [&](size_t i) { return kMatrixScale * stream.normal(i); });
}

HostTensors draw_weights(const Model& model, uint64_t seed, const HostViews& given) {
  HostTensors weights;
  for (const Tensor& tensor : model.tensors) {
    check_interrupt();
    if ((tensor.role == Role::kParameter || tensor.role == Role::kBuffer) && !tensor.part.whole &&
        !given.contains(tensor.name))
      weights.emplace(tensor.name, draw_weight(tensor, seed));
  }
  return weights;
}

HostTensors draw_batch(const Model& model, int64_t step, const BatchOptions& options) {
  HostTensors batch;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput) batch.emplace(tensor.name, draw_input(tensor, step, options));
  return batch;
}

}  // namespace partita::run
