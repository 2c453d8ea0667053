#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "reshard/interner.h"
#include "reshard/problem.h"

namespace partita::reshard {
namespace {

struct NumberHash {
  uint64_t operator()(int32_t value) const { return uint64_t(value) + 1; }
};
struct TokenHash {
  uint64_t operator()(const Token& token) const {
    return uint64_t(token.device) << 42 ^ uint64_t(token.addend.index) << 21 ^ uint64_t(token.addend.count);
  }
};
constexpr int64_t kDirectPairs = 1 << 19;
using NumberLists = Interner<int32_t, NumberHash>;
using TokenLists = Interner<Token, TokenHash>;

/// First and last cell of a region in every dimension.
struct Span {
  std::vector<int32_t> low, high;
};

class Cutter {
 public:
  Cutter(const Problem& problem, Cells& out) : problem_(problem), out_(out) {}

  void run() {
    list_devices();
    list_groups();
    make_cuts();
    TokenLists lists(problem_.from.size() + problem_.to.size());
    std::vector<int32_t> holders = mark(problem_.from, lists);
    int64_t holder_lists = lists.size();
    std::vector<int32_t> needers = mark(problem_.to, lists);
    number_pairs(holders, needers, holder_lists, lists.size());
    sort_cells();
    for (int32_t list = 0; list < lists.size(); ++list) {
      out_.list_begin.push_back(static_cast<int32_t>(out_.tokens.size()));
      out_.tokens.insert(out_.tokens.end(), lists[list].begin(), lists[list].end());
    }
    out_.list_begin.push_back(static_cast<int32_t>(out_.tokens.size()));
    measure();
  }

 private:
  void list_devices() {
    for (const auto* side : {&problem_.from, &problem_.to})
      for (const Piece& piece : *side) out_.devices.push_back(piece.device);
    std::sort(out_.devices.begin(), out_.devices.end());
    out_.devices.erase(std::unique(out_.devices.begin(), out_.devices.end()), out_.devices.end());
  }

  int32_t number(int32_t device) const {
    return std::lower_bound(out_.devices.begin(), out_.devices.end(), device) - out_.devices.begin();
  }

  /// Groups are numbered in the order of the wider ones they lie in: neighbours by number are near.
  void list_groups() {
    out_.group.assign(out_.devices.size(), 0);
    if (problem_.groups.empty()) return;
    std::vector<const Groups*> lists = {&problem_.groups};
    for (const Groups& wider : problem_.wider) lists.push_back(&wider);
    std::vector<std::vector<int32_t>> path(out_.devices.size());  // its groups, the widest first
    for (size_t level = lists.size(); level-- > 0;) number_groups(*lists[level], path);
    for (size_t level = 0; level < lists.size(); ++level) {
      std::map<std::vector<int32_t>, int32_t> numbers;
      for (const std::vector<int32_t>& groups : path) numbers.emplace(groups, 0);
      int32_t next = 0;
      for (auto& [groups, number] : numbers) number = next++;
      std::vector<int32_t> group;
      for (std::vector<int32_t>& groups : path) group.push_back(numbers.at(groups)), groups.pop_back();
      if (next > 1) out_.levels.push_back(std::move(group));
    }
    out_.grouped = !out_.levels.empty();
    if (out_.grouped) out_.group = out_.levels[0];
  }

  void number_groups(const Groups& groups, std::vector<std::vector<int32_t>>& path) const {
    int32_t next = static_cast<int32_t>(groups.size());
    std::map<int32_t, int32_t> listed;
    for (size_t g = 0; g < groups.size(); ++g)
      for (int32_t device : groups[g]) listed[device] = static_cast<int32_t>(g);
    for (size_t i = 0; i < out_.devices.size(); ++i) {
      auto at = listed.find(out_.devices[i]);
      path[i].push_back(at == listed.end() ? next++ : at->second);
    }
  }

  void make_cuts() {
    size_t dims = problem_.shape.size();
    out_.cuts.resize(dims);
    double cells = 1;
    for (size_t d = 0; d < dims; ++d) {
      std::vector<int64_t>& cuts = out_.cuts[d];
      cuts = {0, problem_.shape[d]};
      for (const auto* side : {&problem_.from, &problem_.to})
        for (const Piece& piece : *side) {
          cuts.push_back(piece.region[d].begin);
          cuts.push_back(piece.region[d].end);
        }
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      cells *= double(cuts.size() - 1);
    }
    if (cells > double(kMaxCells))
      input_error(
          "reshard: the edges of the boxes cut the tensor into {:.0f} cells, more than {}; align the boxes",
          cells, kMaxCells);
    num_cells_ = static_cast<int32_t>(cells);
    strides_.assign(dims, 1);
    for (size_t d = dims; d-- > 1;) strides_[d - 1] = strides_[d] * int32_t(out_.cuts[d].size() - 1);
  }

  Span span_of(const Region& region) const {
    Span span;
    for (size_t d = 0; d < out_.cuts.size(); ++d) {
      const std::vector<int64_t>& cuts = out_.cuts[d];
      span.low.push_back(std::lower_bound(cuts.begin(), cuts.end(), region[d].begin) - cuts.begin());
      span.high.push_back(std::lower_bound(cuts.begin(), cuts.end(), region[d].end) - cuts.begin());
    }
    return span;
  }

  /// Calls visit(first, last) for every run of neighbouring cells of a region.
  template <class Visit>
  void each_run(const Span& span, const Visit& visit) const {
    size_t dims = span.low.size();
    std::vector<int32_t> at = span.low;
    int32_t first = 0;
    for (size_t d = 0; d < dims; ++d) first += at[d] * strides_[d];
    const int32_t length = span.high[dims - 1] - span.low[dims - 1];
    for (;;) {
      visit(first, first + length);
      size_t d = dims - 1;
      for (; d > 0; --d) {
        first += strides_[d - 1];
        if (++at[d - 1] < span.high[d - 1]) break;
        first -= (span.high[d - 1] - span.low[d - 1]) * strides_[d - 1];
        at[d - 1] = span.low[d - 1];
      }
      if (d == 0) return;
    }
  }

  /// Which tokens every cell has, as a number in `lists`. Replicas and addends of one region are marked once:
  /// a cell first gets a list of regions, and only different ones of those become tokens.
  std::vector<int32_t> mark(const std::vector<Piece>& pieces, TokenLists& lists) {
    std::map<Region, std::vector<Token>> by_region;
    for (const Piece& piece : pieces) by_region[piece.region].push_back({number(piece.device), piece.addend});
    std::vector<Span> spans;
    std::vector<const std::vector<Token>*> tokens;
    for (const auto& [region, list] : by_region) {
      spans.push_back(span_of(region));
      tokens.push_back(&list);
    }
    NumberLists regions(spans.size());
    std::vector<int32_t> list_of = list_regions(spans, regions);
    std::vector<int32_t> numbers;  // in `lists`, by list of regions
    for (int32_t list = 0; list < regions.size(); ++list) {
      std::vector<Token> all;
      for (int32_t region : regions[list])
        all.insert(all.end(), tokens[region]->begin(), tokens[region]->end());
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      numbers.push_back(lists.add(all));
    }
    for (int32_t& list : list_of) list = numbers[list];
    return list_of;
  }

  /// The regions of every cell, ascending, as a number in `regions`.
  std::vector<int32_t> list_regions(const std::vector<Span>& spans, NumberLists& regions) const {
    if (std::optional<std::vector<int32_t>> single = single_regions(spans)) {
      for (int32_t region = 0; region < static_cast<int32_t>(spans.size()); ++region)
        regions.add(std::array{region});
      int32_t none = -1;
      for (int32_t& region : *single)
        if (region < 0) region = none < 0 ? none = regions.add({}) : none;
      return std::move(*single);
    }
    return list_overlapping(spans, regions);
  }

  /// The region of every cell, -1 where there is none; nothing where two overlap.
  std::optional<std::vector<int32_t>> single_regions(const std::vector<Span>& spans) const {
    std::vector<int32_t> region_of(num_cells_, -1);
    bool overlap = false;
    for (size_t i = 0; i < spans.size() && !overlap; ++i)
      each_run(spans[i], [&](int32_t first, int32_t last) {
        for (int32_t cell = first; cell < last; ++cell) {
          overlap = overlap || region_of[cell] >= 0;
          region_of[cell] = static_cast<int32_t>(i);
        }
      });
    if (overlap) return std::nullopt;
    return region_of;
  }

  std::vector<int32_t> list_overlapping(const std::vector<Span>& spans, NumberLists& regions) const {
    std::vector<int32_t> begin(num_cells_ + 1, 0);
    for (const Span& span : spans)
      each_run(span, [&](int32_t first, int32_t last) {
        for (int32_t cell = first; cell < last; ++cell) ++begin[cell + 1];
      });
    for (int32_t cell = 0; cell < num_cells_; ++cell) begin[cell + 1] += begin[cell];
    std::vector<int32_t> items(begin[num_cells_]), next(begin.begin(), begin.end() - 1);
    for (size_t i = 0; i < spans.size(); ++i)
      each_run(spans[i], [&](int32_t first, int32_t last) {
        for (int32_t cell = first; cell < last; ++cell) items[next[cell]++] = static_cast<int32_t>(i);
      });
    std::vector<int32_t> list_of(num_cells_);
    for (int32_t cell = 0; cell < num_cells_; ++cell)
      list_of[cell] = regions.add({items.data() + begin[cell], size_t(begin[cell + 1] - begin[cell])});
    return list_of;
  }

  /// Gives every pair of lists that a cell has the number of a class.
  void number_pairs(const std::vector<int32_t>& holders, const std::vector<int32_t>& needers,
                    int64_t holder_lists, int64_t lists) {
    out_.class_of.resize(num_cells_);
    // A table of all pairs is faster than hashing while it is small.
    bool direct = holder_lists * lists <= kDirectPairs;
    std::vector<int32_t> table(direct ? holder_lists * lists : 0, -1);
    NumberLists hashed(direct ? 0 : num_cells_);
    int64_t most = std::min<int64_t>(num_cells_, holder_lists * lists);
    out_.holder_list.reserve(most);
    out_.needer_list.reserve(most);
    for (int32_t cell = 0; cell < num_cells_; ++cell) {
      int32_t next = static_cast<int32_t>(out_.holder_list.size());
      int32_t& cls = out_.class_of[cell];
      if (direct) {
        int32_t& known = table[holders[cell] * lists + needers[cell]];
        cls = known < 0 ? known = next : known;
      } else {
        cls = hashed.add(std::array{holders[cell], needers[cell]});
      }
      if (cls < next) continue;
      out_.holder_list.push_back(holders[cell]);
      out_.needer_list.push_back(needers[cell]);
    }
    out_.elements.assign(out_.holder_list.size(), 0);
  }

  void sort_cells() {
    int32_t classes = out_.size();
    if (classes == num_cells_) {  // each its own, numbered as they are
      out_.cells = out_.class_of;
      out_.cell_begin.resize(classes + 1);
      std::iota(out_.cell_begin.begin(), out_.cell_begin.end(), 0);
      return;
    }
    out_.cell_begin.assign(classes + 1, 0);
    for (int32_t cls : out_.class_of) ++out_.cell_begin[cls + 1];
    for (int32_t cls = 0; cls < classes; ++cls) out_.cell_begin[cls + 1] += out_.cell_begin[cls];
    out_.cells.resize(num_cells_);
    std::vector<int32_t> next(out_.cell_begin.begin(), out_.cell_begin.end() - 1);
    for (int32_t cell = 0; cell < num_cells_; ++cell) out_.cells[next[out_.class_of[cell]]++] = cell;
  }

  void measure() {
    size_t dims = out_.cuts.size();
    const std::vector<int64_t>& last = out_.cuts[dims - 1];
    std::vector<size_t> at(dims, 0);
    for (int32_t cell = 0; cell < num_cells_;) {
      int64_t row = 1;
      for (size_t d = 0; d + 1 < dims; ++d) row *= out_.cuts[d][at[d] + 1] - out_.cuts[d][at[d]];
      for (size_t i = 0; i + 1 < last.size(); ++i)
        out_.elements[out_.class_of[cell++]] += row * (last[i + 1] - last[i]);
      for (size_t d = dims - 1; d > 0 && ++at[d - 1] + 1 == out_.cuts[d - 1].size(); --d) at[d - 1] = 0;
    }
  }

  const Problem& problem_;
  Cells& out_;
  int32_t num_cells_ = 0;
  std::vector<int32_t> strides_;  // of a cell's number, by dimension
};

}  // namespace

std::vector<Addend> distinct_addends(std::span<const Token> tokens) {
  std::vector<Addend> addends;
  for (const Token& token : tokens)
    if (!token.addend.complete()) addends.push_back(token.addend);
  std::sort(addends.begin(), addends.end());
  addends.erase(std::unique(addends.begin(), addends.end()), addends.end());
  return addends;
}

Cells cut(const Problem& problem) {
  Cells cells;
  Cutter(problem, cells).run();
  return cells;
}

Region region_of(const Cells& cells, int32_t cell) {
  Region region(cells.cuts.size());
  for (size_t d = cells.cuts.size(); d-- > 0;) {
    const std::vector<int64_t>& cuts = cells.cuts[d];
    int32_t sides = static_cast<int32_t>(cuts.size() - 1);
    region[d] = {cuts[cell % sides], cuts[cell % sides + 1]};
    cell /= sides;
  }
  return region;
}

Region region_of(const Cells& cells, int32_t cell, int chunk, int chunks) {
  Region region = region_of(cells, cell);
  if (chunks == 1) return region;
  auto longest = std::max_element(region.begin(), region.end(), [](const Interval& a, const Interval& b) {
    return a.length() < b.length();
  });
  // A side that the chunks divide is better than a longer one that they do not: then all parts are equal.
  for (auto side = region.begin(); side != region.end(); ++side)
    if (longest->length() % chunks && side->length() % chunks == 0) longest = side;
  // Cells of a class are cut alike; where a side does not divide, another part gets more in the next cell.
  *longest = piece(*longest, chunks, (chunk + cell) % chunks);
  return region;
}

int64_t elements_of(const Cells& cells, int cls, int chunk, int chunks) {
  if (chunks == 1) return cells.elements[cls];
  int64_t elements = 0;
  for (int32_t cell : cells.cells_of(cls)) elements += volume(region_of(cells, cell, chunk, chunks));
  return elements;
}

}  // namespace partita::reshard
