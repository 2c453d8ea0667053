#include <algorithm>
#include <map>

#include "base/error.h"
#include "layout/reshard/problem.h"

namespace partita::reshard {
namespace {

/// Lists per cell in one flat array.
struct Lists {
  std::vector<int32_t> begin, length, items;
};

/// First and last cell of a piece in every dimension.
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
    std::vector<Token> from_tokens, to_tokens;
    Lists holders = mark(problem_.from, from_tokens), needers = mark(problem_.to, to_tokens);
    classify(holders, needers);
    fill(holders, from_tokens, out_.holder_begin, out_.holder_tokens);
    fill(needers, to_tokens, out_.needer_begin, out_.needer_tokens);
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

  void list_groups() {
    out_.group.assign(out_.devices.size(), 0);
    if (problem_.groups.empty()) return;
    int32_t next = static_cast<int32_t>(problem_.groups.size());
    std::map<int32_t, int32_t> listed;
    for (size_t g = 0; g < problem_.groups.size(); ++g)
      for (int32_t device : problem_.groups[g]) listed[device] = static_cast<int32_t>(g);
    for (size_t i = 0; i < out_.devices.size(); ++i) {
      auto at = listed.find(out_.devices[i]);
      out_.group[i] = at == listed.end() ? next++ : at->second;
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
  }

  Span span_of(const Piece& piece) const {
    Span span;
    for (size_t d = 0; d < out_.cuts.size(); ++d) {
      const std::vector<int64_t>& cuts = out_.cuts[d];
      span.low.push_back(std::lower_bound(cuts.begin(), cuts.end(), piece.region[d].begin) - cuts.begin());
      span.high.push_back(std::lower_bound(cuts.begin(), cuts.end(), piece.region[d].end) - cuts.begin());
    }
    return span;
  }

  /// Calls visit(first, last) for every run of neighbouring cells of a piece.
  template <class Visit>
  void each_run(const Span& span, const Visit& visit) const {
    size_t dims = span.low.size();
    std::vector<int32_t> at = span.low;
    for (;;) {
      int32_t row = 0;
      for (size_t d = 0; d + 1 < dims; ++d) row = (row + at[d]) * int32_t(out_.cuts[d + 1].size() - 1);
      visit(row + span.low[dims - 1], row + span.high[dims - 1]);
      size_t d = dims - 1;
      while (d > 0 && ++at[d - 1] == span.high[d - 1]) at[d - 1] = span.low[d - 1], --d;
      if (d == 0) return;
    }
  }

  /// Which tokens every cell has, ascending. Pieces are visited by token, so that a device whose pieces
  /// overlap is seen twice in a row and counted once.
  Lists mark(const std::vector<Piece>& pieces, std::vector<Token>& tokens) {
    std::vector<std::pair<Token, Span>> marks;
    for (const Piece& piece : pieces) marks.push_back({{number(piece.device), piece.addend}, span_of(piece)});
    std::stable_sort(marks.begin(), marks.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Lists lists;
    lists.begin.assign(num_cells_ + 1, 0);
    for (const auto& [token, span] : marks)
      each_run(span, [&](int32_t first, int32_t last) {
        for (int32_t cell = first; cell < last; ++cell) ++lists.begin[cell + 1];
      });
    for (int32_t cell = 0; cell < num_cells_; ++cell) lists.begin[cell + 1] += lists.begin[cell];
    lists.items.resize(lists.begin[num_cells_]);
    lists.length.assign(num_cells_, 0);
    for (const auto& [token, span] : marks) {
      if (tokens.empty() || tokens.back() != token) tokens.push_back(token);
      int32_t item = static_cast<int32_t>(tokens.size()) - 1;
      each_run(span, [&](int32_t first, int32_t last) {
        for (int32_t cell = first; cell < last; ++cell) {
          int32_t* list = lists.items.data() + lists.begin[cell];
          int32_t& length = lists.length[cell];
          if (length == 0 || list[length - 1] != item) list[length++] = item;
        }
      });
    }
    return lists;
  }

  static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 29);
  }

  static bool same(const Lists& lists, int32_t a, int32_t b) {
    const int32_t *first = lists.items.data() + lists.begin[a], *second = lists.items.data() + lists.begin[b];
    return lists.length[a] == lists.length[b] && std::equal(first, first + lists.length[a], second);
  }

  void classify(const Lists& holders, const Lists& needers) {
    size_t slots = 16;
    while (slots < size_t(num_cells_) * 2) slots *= 2;
    std::vector<int32_t> table(slots, -1);  // class whose first cell hashed here
    out_.class_of.resize(num_cells_);
    for (int32_t cell = 0; cell < num_cells_; ++cell) {
      uint64_t hash = 0;
      for (const Lists* lists : {&holders, &needers}) {
        hash = mix(hash, ~0ull);
        for (int32_t i = 0; i < lists->length[cell]; ++i)
          hash = mix(hash, lists->items[lists->begin[cell] + i]);
      }
      size_t slot = hash & (slots - 1);
      while (table[slot] >= 0 &&
             !(same(holders, first_[table[slot]], cell) && same(needers, first_[table[slot]], cell)))
        slot = (slot + 1) & (slots - 1);
      if (table[slot] < 0) {
        table[slot] = static_cast<int32_t>(first_.size());
        first_.push_back(cell);
      }
      out_.class_of[cell] = table[slot];
    }
    int32_t classes = static_cast<int32_t>(first_.size());
    out_.cell_begin.assign(classes + 1, 0);
    for (int32_t cls : out_.class_of) ++out_.cell_begin[cls + 1];
    for (int32_t cls = 0; cls < classes; ++cls) out_.cell_begin[cls + 1] += out_.cell_begin[cls];
    out_.cells.resize(num_cells_);
    std::vector<int32_t> next(out_.cell_begin.begin(), out_.cell_begin.end() - 1);
    for (int32_t cell = 0; cell < num_cells_; ++cell) out_.cells[next[out_.class_of[cell]]++] = cell;
  }

  void fill(const Lists& lists, const std::vector<Token>& tokens, std::vector<int32_t>& begin,
            std::vector<Token>& flat) {
    begin.reserve(first_.size() + 1);
    begin.push_back(0);
    size_t total = 0;
    for (int32_t cell : first_) total += lists.length[cell];
    flat.reserve(total);
    for (int32_t cell : first_) {
      for (int32_t i = 0; i < lists.length[cell]; ++i)
        flat.push_back(tokens[lists.items[lists.begin[cell] + i]]);
      begin.push_back(static_cast<int32_t>(flat.size()));
    }
  }

  void measure() {
    out_.elements.assign(first_.size(), 0);
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
  std::vector<int32_t> first_;  // cell by class
};

}  // namespace

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
  *longest = piece(*longest, chunks, chunk);
  return region;
}

int64_t elements_of(const Cells& cells, int cls, int chunk, int chunks) {
  if (chunks == 1) return cells.elements[cls];
  int64_t elements = 0;
  for (int32_t cell : cells.cells_of(cls)) elements += volume(region_of(cells, cell, chunk, chunks));
  return elements;
}

}  // namespace partita::reshard
