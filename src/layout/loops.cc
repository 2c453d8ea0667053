#include "layout/loops.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace partita::layout {
namespace {

/// Ties positions of one op into loops. A position is numbered once; loops are classes of positions.
class LoopFinder {
 public:
  LoopFinder(const OpView& op, const Relation& relation, const OperandLeaves& leaves,
             const std::vector<int64_t>& sizes)
      : op_(op), relation_(relation), leaves_(leaves), sizes_(sizes) {
    for (size_t o = 0; o < leaves.size(); ++o)
      for (size_t d = 0; d < leaves[o].size(); ++d) {
        first_[{o, d}] = static_cast<int>(positions_.size());
        for (size_t l = 0; l < leaves[o][d].size(); ++l)
          positions_.push_back({static_cast<int32_t>(o), static_cast<int32_t>(d), static_cast<int32_t>(l)});
      }
    parent_.resize(positions_.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    why_.resize(positions_.size());
  }

  OpLoops find() {
    for (const auto& [a, b] : relation_.equal) tie_products(positions_of(a), positions_of(b));
    for (const Place& place : relation_.places) tie_place(place);
    for (const auto& [ref, why] : relation_.frozen)
      for (int p : positions_of({ref})) freeze(p, why);
    std::vector<int> reduced;
    for (const DimRef& ref : relation_.reduced)
      for (int p : positions_of({ref})) reduced.push_back(p);
    OpLoops out{.loops = collect(), .linear = relation_.linear, .addends = relation_.addends};
    for (Loop& loop : out.loops) set_roles(loop);
    for (size_t i = 0; i < out.loops.size(); ++i) judge(out.loops[i], roots_[i], reduced);
    return out;
  }

 private:
  std::vector<int> positions_of(const DimProduct& product) const {
    std::vector<int> out;
    for (const DimRef& ref : product) {
      size_t operand = ref.operand;
      size_t dim = ref.dim;
      if (ref.kind == DimRef::kOutput) operand += op_.in.size();
      if (ref.kind == DimRef::kFactor) {
        operand += op_.in.size() + op_.out.size();
        dim = 0;
      }
      int begin = first_.at({operand, dim});
      for (size_t l = 0; l < leaves_[operand][dim].size(); ++l) out.push_back(begin + static_cast<int>(l));
    }
    return out;
  }

  AtomId atom(int p) const {
    const Pos& pos = positions_[p];
    return leaves_[pos.operand][pos.dim][pos.leaf];
  }
  int64_t size(int p) const { return sizes_[atom(p).value]; }
  int root(int p) const {
    while (parent_[p] != p) p = parent_[p];
    return p;
  }
  void tie(int a, int b) {
    a = root(a);
    b = root(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }
  void freeze(int p, const std::string& why) {
    if (why_[p].empty()) why_[p] = why;
  }

  // Pairs leaves from the inner end; where atoms differ the block up to the next meeting point stays whole.
  void tie_products(std::vector<int> a, std::vector<int> b) {
    if (std::any_of(a.begin(), a.end(), [&](int p) { return size(p) == 0; })) return tie_empty(a, b);
    while (!a.empty() && !b.empty()) {
      int x = a.back(), y = b.back();
      a.pop_back();
      b.pop_back();
      if (atom(x) == atom(y)) {
        tie(x, y);
        continue;
      }
      int64_t px = size(x), py = size(y);
      freeze(x, "sizes do not nest");
      freeze(y, "sizes do not nest");
      while (px != py) {
        std::vector<int>& behind = px < py ? a : b;
        int z = behind.back();
        behind.pop_back();
        (px < py ? px : py) *= size(z);
        freeze(z, "sizes do not nest");
      }
    }
  }

  // Nothing orders the elements of a tensor that has none: only dimensions that are the same on both sides
  // are.
  void tie_empty(const std::vector<int>& a, const std::vector<int>& b) {
    bool same =
        std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](int x, int y) { return atom(x) == atom(y); });
    for (size_t i = 0; same && i < a.size(); ++i) tie(a[i], b[i]);
    for (int p : a)
      if (!same) freeze(p, "there are no elements");
    for (int p : b)
      if (!same) freeze(p, "there are no elements");
  }

  // The inner part that both sides share in whole multiples is one loop; what is outside of it stays whole.
  void tie_place(const Place& place) {
    std::vector<int> a = positions_of({place.big}), b = positions_of({place.small});
    int64_t big = 1, small = 1;
    for (int p : a) big *= size(p);
    for (int p : b) small *= size(p);
    int64_t grain = std::gcd(std::gcd(place.start, small), big), inner = 1;
    while (!a.empty() && !b.empty() && atom(a.back()) == atom(b.back()) && inner * size(a.back()) <= grain &&
           grain % (inner * size(a.back())) == 0) {
      inner *= size(a.back());
      tie(a.back(), b.back());
      a.pop_back();
      b.pop_back();
    }
    for (int p : a) freeze(p, "cut into pieces here");
    for (int p : b) freeze(p, "cut into pieces here");
  }

  // A factor that no operand has is no loop of the op.
  bool stands_in_operand(int r) const {
    for (size_t p = 0; p < positions_.size(); ++p)
      if (static_cast<size_t>(positions_[p].operand) < op_.in.size() + op_.out.size() &&
          root(static_cast<int>(p)) == r)
        return true;
    return false;
  }

  std::vector<Loop> collect() {
    std::map<int, size_t> index;
    std::vector<Loop> loops;
    size_t inputs = op_.in.size(), factors = op_.in.size() + op_.out.size();
    for (size_t p = 0; p < positions_.size(); ++p) {
      int r = root(static_cast<int>(p));
      if (!stands_in_operand(r)) continue;
      auto [at, fresh] = index.emplace(r, loops.size());
      if (fresh) {
        loops.push_back({.atom = atom(r), .size = size(r)});
        roots_.push_back(r);
      }
      Loop& loop = loops[at->second];
      Pos pos = positions_[p];
      if (static_cast<size_t>(pos.operand) < inputs) {
        loop.ins.push_back(pos);
      } else if (static_cast<size_t>(pos.operand) < factors) {
        pos.operand -= static_cast<int32_t>(inputs);
        loop.outs.push_back(pos);
      }
      if (!why_[p].empty() && !loop.frozen) {
        loop.frozen = true;
        loop.why = why_[p];
      }
    }
    return loops;
  }

  void set_roles(Loop& loop) const {
    for (size_t o = 0; o < op_.out.size(); ++o) {
      bool cut =
          std::any_of(loop.outs.begin(), loop.outs.end(), [&](const Pos& p) { return p.operand == int(o); });
      auto reads = relation_.reads.find(static_cast<int>(o));
      bool read = std::any_of(loop.ins.begin(), loop.ins.end(), [&](const Pos& p) {
        return reads == relation_.reads.end() ||
               std::find(reads->second.begin(), reads->second.end(), p.operand) != reads->second.end();
      });
      loop.roles.push_back(cut ? LoopRole::kShard : read ? LoopRole::kPartial : LoopRole::kIndependent);
    }
  }

  static bool stands_twice(const std::vector<Pos>& places) {
    for (size_t i = 1; i < places.size(); ++i)
      if (places[i].operand == places[i - 1].operand) return true;
    return false;
  }

  void judge(Loop& loop, int loop_root, const std::vector<int>& reduced) const {
    if (loop.frozen) return;
    bool partial = false;
    for (size_t o = 0; o < loop.roles.size(); ++o)
      partial |= op_.has_out[o] && loop.roles[o] == LoopRole::kPartial;
    bool reducible = std::any_of(reduced.begin(), reduced.end(), [&](int p) { return root(p) == loop_root; });
    if (partial && !reducible)
      loop = frozen_copy(loop, "its partials cannot be added up");
    else if (stands_twice(loop.ins) || stands_twice(loop.outs))
      loop = frozen_copy(loop, "stands twice in one tensor");
  }

  static Loop frozen_copy(Loop loop, const char* why) {
    loop.frozen = true;
    loop.why = why;
    return loop;
  }

  const OpView& op_;
  const Relation& relation_;
  const OperandLeaves& leaves_;
  const std::vector<int64_t>& sizes_;
  std::map<std::pair<size_t, size_t>, int> first_;
  std::vector<Pos> positions_;
  std::vector<int> parent_;
  std::vector<std::string> why_;
  std::vector<int> roots_;
};

}  // namespace

OpLoops find_loops(const OpView& op, const Relation& relation, const OperandLeaves& leaves,
                   const std::vector<int64_t>& atom_sizes) {
  return LoopFinder(op, relation, leaves, atom_sizes).find();
}

}  // namespace partita::layout
