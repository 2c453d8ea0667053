#include <algorithm>

#include "base/error.h"
#include "reshard/problem.h"

namespace partita::reshard {
namespace {

/// Sorted by where they begin, shares that are equal or disjoint and cover the value follow each other
/// without a gap.
void check_addends(std::vector<Addend> sorted, const Region& region, std::string_view where) {
  std::sort(sorted.begin(), sorted.end(), [](Addend a, Addend b) {
    return std::pair(a.index * b.count, a.count) < std::pair(b.index * a.count, b.count);
  });
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Addend before{-1, 1};  // ends at 0
  for (Addend next : sorted) {
    if (before.index >= 0 && overlap(before, next))
      input_error(
          "{}: at {} the partials {} and {} overlap, so some of the value would count twice; give all "
          "partials of a place the same count",
          where, to_text(region), to_text(before), to_text(next));
    if ((before.index + 1) * next.count != next.index * before.count)
      input_error("{}: at {} a partial before {} is nowhere; list every partial v0/{} to v{}/{} of a place",
                  where, to_text(region), to_text(next), next.count, next.count - 1, next.count);
    before = next;
  }
  if (before.index + 1 != before.count)
    input_error("{}: at {} the partials after {} are nowhere; list every partial v0/{} to v{}/{} of a place",
                where, to_text(region), to_text(before), before.count, before.count - 1, before.count);
}

void check_side(const Cells& cells, int cls, std::span<const Token> tokens, std::string_view where) {
  Region region = region_of(cells, cells.cells_of(cls)[0]);
  if (tokens.empty())
    input_error("{}: no box covers {}; add a box with it or change --shape", where, to_text(region));
  std::vector<Addend> addends;
  for (const Token& token : tokens)
    if (!token.addend.complete()) addends.push_back(token.addend);
  if (!addends.empty()) check_addends(std::move(addends), region, where);
}

bool is_plain(std::span<const Token> tokens) {
  return !tokens.empty() && std::all_of(tokens.begin(), tokens.end(),
                                        [](const Token& token) { return token.addend.complete(); });
}

/// Classes often have the same tokens: those are checked once.
class Checker {
 public:
  Checker(const Cells& cells, std::string_view where)
      : cells_(cells), where_(where), good_(cells.num_lists(), false) {}

  void check(int cls, int list) {
    if (good_[list]) return;
    if (!is_plain(cells_.list(list))) check_side(cells_, cls, cells_.list(list), where_);
    good_[list] = true;
  }

 private:
  const Cells& cells_;
  std::string_view where_;
  std::vector<uint8_t> good_;  // by list
};

}  // namespace

void check_cover(const Cells& cells, std::string_view from_where, std::string_view to_where) {
  Checker from(cells, from_where), to(cells, to_where);
  for (int cls = 0; cls < cells.size(); ++cls) {
    from.check(cls, cells.holder_list[cls]);
    to.check(cls, cells.needer_list[cls]);
  }
}

void check_sources(const Cells& cells) {
  Checker from(cells, "reshard: source"), to(cells, "reshard: target");
  for (int cls = 0; cls < cells.size(); ++cls) {
    if (cells.needers(cls).empty()) continue;
    from.check(cls, cells.holder_list[cls]);
    to.check(cls, cells.needer_list[cls]);
  }
}

}  // namespace partita::reshard
