#include <fmt/format.h>

#include <algorithm>

#include "reshard/collective.h"

namespace partita::reshard {
namespace {

class Replayer {
 public:
  explicit Replayer(const Cells& cells) : cells_(cells), position_(cells.num_devices(), -1) {
    begin_.reserve(cells.size());
    served_.reserve(cells.size());
    for (int cls = 0; cls < cells.size(); ++cls) {
      begin_.push_back(static_cast<int32_t>(served_.size()));
      serve_at_home(cls);
    }
  }

  std::string run(const std::vector<Collective>& collectives) {
    for (const Collective& collective : collectives) {
      for (size_t i = 0; i < collective.ranks.size(); ++i)
        position_[collective.ranks[i]] = static_cast<int32_t>(i);
      std::string wrong = check_order(collective);
      good_ = -1;
      targets_.assign(collective.targets.size(), {});
      for (size_t i = 0; i < collective.targets.size() && wrong.empty(); ++i)
        wrong = find_span(collective.targets[i], targets_[i]);
      for (size_t i = 0; i < collective.blocks.size() && wrong.empty(); ++i) wrong = run_block(collective, i);
      if (!wrong.empty()) return wrong;
      for (int32_t device : collective.ranks) position_[device] = -1;
    }
    for (int cls = 0; cls < cells_.size(); ++cls)
      for (size_t n = 0; n < cells_.needers(cls).size(); ++n)
        if (!served_[begin_[cls] + n])
          return fmt::format("cells {} never reach device {}",
                             to_text(region_of(cells_, cells_.cells_of(cls)[0])),
                             cells_.devices[cells_.needers(cls)[n].device]);
    return {};
  }

 private:
  bool holds(int32_t cls, const Token& token) const {
    std::span<const Token> holders = cells_.holders(cls);
    if (holders.size() == 1) return holders[0] == token;
    return std::binary_search(holders.begin(), holders.end(), token);
  }

  void serve_at_home(int cls) {
    for (const Token& needer : cells_.needers(cls))
      served_.push_back(needer.addend.complete() && holds(cls, needer));
  }

  /// Chunks concatenated in rank order must be the whole.
  std::string check_order(const Collective& collective) const {
    for (size_t i = 1; i < collective.blocks.size() && collective.dim >= 0; ++i)
      if (collective.blocks[i - 1][collective.dim].end != collective.blocks[i][collective.dim].begin)
        return fmt::format("{}: chunk {} does not follow the one before", to_text(collective.op), i);
    return {};
  }

  std::string run_block(const Collective& collective, size_t i) {
    Span span;
    std::string wrong = find_span(collective.blocks[i], span);
    if (wrong.empty())
      each_cell(span, wrong, [&](int32_t cell, const std::vector<int32_t>& at) {
        int32_t cls = cells_.class_of[cell];
        bool sums = collective.op == Op::kReduceScatter || collective.op == Op::kAllReduce;
        if (sums ? !adds_up(collective, cls) : !holds(cls, {collective.ranks[i], Addend{}})) {
          wrong = fmt::format("{}: rank {} does not have what it gives of {}", to_text(collective.op),
                              cells_.devices[collective.ranks[i]], to_text(region_of(cells_, cell)));
          return;
        }
        serve(collective, i, cls, at);
      });
    return wrong;
  }

  void serve(const Collective& collective, size_t i, int32_t cls, const std::vector<int32_t>& where) {
    std::span<const Token> needers = cells_.needers(cls);
    for (size_t n = 0; n < needers.size(); ++n) {
      const Token& needer = needers[n];
      int32_t at = position_[needer.device];
      if (at < 0 || !needer.addend.complete()) continue;
      bool reached = true;
      if (collective.op == Op::kReduceScatter) reached = at == static_cast<int32_t>(i);
      if (collective.op == Op::kAllToAll) reached = inside(targets_[at], where);
      if (reached) served_[begin_[cls] + n] = true;
    }
  }

  /// Is every addend of the class given exactly once by the ranks? Classes of one collective mostly have the
  /// same holders, so the last ones found good are remembered.
  bool adds_up(const Collective& collective, int32_t cls) {
    if (cells_.holder_list[cls] == good_) return true;
    std::span<const Token> holders = cells_.holders(cls);
    std::vector<Addend> all, given;
    for (const Token& token : holders) {
      all.push_back(token.addend);
      if (position_[token.device] >= 0) given.push_back(token.addend);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::sort(given.begin(), given.end());
    if (given != all || given.size() != collective.ranks.size()) return false;
    good_ = cells_.holder_list[cls];
    return true;
  }

  /// First and last cell of a region in every dimension.
  struct Span {
    std::vector<int32_t> low, high;
  };

  std::string find_span(const Region& region, Span& span) const {
    for (size_t d = 0; d < region.size(); ++d) {
      const std::vector<int64_t>& cuts = cells_.cuts[d];
      auto begin = std::lower_bound(cuts.begin(), cuts.end(), region[d].begin);
      auto end = std::lower_bound(cuts.begin(), cuts.end(), region[d].end);
      if (begin == cuts.end() || end == cuts.end() || *begin != region[d].begin || *end != region[d].end)
        return fmt::format("block {} does not end where cells do", to_text(region));
      span.low.push_back(begin - cuts.begin());
      span.high.push_back(end - cuts.begin());
    }
    return {};
  }

  static bool inside(const Span& span, const std::vector<int32_t>& at) {
    for (size_t d = 0; d < at.size(); ++d)
      if (at[d] < span.low[d] || at[d] >= span.high[d]) return false;
    return true;
  }

  template <class Visit>
  void each_cell(const Span& span, const std::string& wrong, const Visit& visit) const {
    std::vector<int32_t> at = span.low;
    const size_t last = at.size() - 1;
    for (;;) {
      int32_t row = 0;
      for (size_t e = 0; e < at.size(); ++e) row = row * int32_t(cells_.cuts[e].size() - 1) + at[e];
      for (; at[last] < span.high[last]; ++at[last], ++row) {
        visit(row, at);
        if (!wrong.empty()) return;
      }
      at[last] = span.low[last];
      size_t d = last;
      for (; d > 0 && ++at[d - 1] == span.high[d - 1]; --d) at[d - 1] = span.low[d - 1];
      if (d == 0) return;
    }
  }

  const Cells& cells_;
  std::vector<uint8_t> served_;    // by class, then needer
  std::vector<int32_t> begin_;     // of a class in `served_`
  int32_t good_ = -1;              // list of holders whose addends the collective at hand sums
  std::vector<Span> targets_;      // of the collective at hand
  std::vector<int32_t> position_;  // in the ranks of the collective at hand, by device
};

}  // namespace

std::string replay(const Cells& cells, const std::vector<Collective>& collectives) {
  return Replayer(cells).run(collectives);
}

}  // namespace partita::reshard
