#include "rows_truth.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/error.h"
#include "layout/atoms.h"
#include "rows_apart.h"

namespace partita::run {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr uint32_t kMixed = 8;  // operands up to which all mixtures of two frozen loops are tried

/// A loop and the parts it is cut into.
struct Cutting {
  const Loop* loop;
  std::vector<Interval> parts;
};

bool close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a.to(at::kDouble), b.to(at::kDouble), 1e-9, 1e-9, true);
}

/// The part of a tensor that a box names, as a view with one dimension for every leaf.
at::Tensor leaves_view(const at::Tensor& whole, const std::vector<std::vector<int64_t>>& leaves,
                       const Box& box) {
  std::vector<int64_t> sizes;
  for (const auto& dim : leaves) sizes.insert(sizes.end(), dim.begin(), dim.end());
  at::Tensor view = whole.view(sizes);
  int64_t d = 0;
  for (const auto& dim : box)
    for (const Interval& leaf : dim) view = view.narrow(d++, leaf.begin, leaf.length());
  return view;
}

class Judge {
 public:
  Judge(const Instance& instance, const Claim& claim, uint64_t seed, bool mixtures)
      : instance_(instance),
        claim_(claim),
        mixtures_(mixtures),
        whole_(view_of(instance.model, instance.op())),
        atoms_(find_atoms(instance.model, {claim.relation})),
        leaves_(leaves_text()),
        random_(seed),
        in_(inputs_of(instance.op())) {}

  Verdict run(const LinearSets& excused) {
    try_view();
    try_letters();
    try_free_loops();
    try_linear(excused);
    try_frozen_loops();
    return verdict_;
  }

  Known known() const {
    Known known;
    for (const Loop& loop : loops().loops)
      if (!loop.frozen && loop.size > 1) known.free.insert(word(loop));
    for (const Loop& loop : timid_candidates()) known.frozen.insert(word(loop));
    known.linear = LinearSets(loops().linear.begin(), loops().linear.end());
    return known;
  }

  std::string run_mutant(const Known& known, const LinearSets& excused, int& next) {
    try_view();
    try_letters();
    try_new_loops(known);
    if (LinearSets(loops().linear.begin(), loops().linear.end()) != known.linear) try_linear(excused);
    try_new_frozen_loops(known, next);
    return verdict_.fault;
  }

 private:
  const OpLoops& loops() const { return atoms_.ops[0]; }
  bool failed() const { return !verdict_.fault.empty(); }
  bool contents_matter() const { return instance_.op().target.find("empty") == std::string::npos; }

  void fault(std::string what) {
    if (!failed()) verdict_.fault = std::move(what);
  }

  void try_view() {
    for (const at::Tensor& out : instance_.out) {
      bool shares =
          out.defined() && !instance_.in.empty() && out.storage().is_alias_of(instance_.in[0].storage());
      if (shares != claim_.view)
        fault(shares ? "is a view, but the row denies it" : "is no view, but the row says so");
    }
  }

  void try_free_loops() {
    std::vector<const Loop*> free;
    for (const Loop& loop : loops().loops)
      if (!loop.frozen && loop.size > 1) free.push_back(&loop);
    for (const Loop* loop : free) {
      ++verdict_.letters;
      for (const auto& parts : ways_to_cut(loop->size))
        if (!failed()) try_cut({{loop, parts}});
    }
    for (size_t i = 0; i < free.size(); ++i)
      for (size_t j = 0; j < i && !failed(); ++j)
        try_cut({{free[i], even(free[i]->size, 2)}, {free[j], even(free[j]->size, 2)}});
  }

  // Loops that the true claim has too were split before; so were pairs of them.
  void try_new_loops(const Known& known) {
    std::vector<const Loop*> free, fresh;
    for (const Loop& loop : loops().loops)
      if (!loop.frozen && loop.size > 1) (known.free.contains(word(loop)) ? free : fresh).push_back(&loop);
    for (const Loop* loop : fresh)
      for (const auto& parts : ways_to_cut(loop->size))
        if (!failed()) try_cut({{loop, parts}});
    for (const Loop* loop : fresh) {
      for (const Loop* other : free)
        if (!failed()) try_cut({{loop, even(loop->size, 2)}, {other, even(other->size, 2)}});
      free.push_back(loop);
    }
  }

  void try_new_frozen_loops(const Known& known, int& next) {
    if (failed()) return;
    std::vector<Loop> candidates = timid_candidates();
    std::erase_if(candidates, [&](const Loop& loop) { return known.frozen.contains(word(loop)); });
    while (next < static_cast<int>(candidates.size()) && !failed())
      if (can_be_cut(candidates[next++])) fault(describe({{&candidates[next - 1], {}}}) + " could be split");
  }

  bool can_be_cut(const Loop& loop) {
    for (const auto& parts : ways_to_cut(loop.size))
      if (recombine({{&loop, parts}})) return false;
    return true;
  }

  std::string leaves_text() const {
    std::string text;
    for (size_t t = 0; t < instance_.model.tensors.size(); ++t) {
      for (const auto& dim : leaf_sizes(atoms_, TensorId{static_cast<int32_t>(t)}))
        text += fmt::format("({})", fmt::join(dim, " "));
      text += ",";
    }
    return text;
  }

  // Everything that tells what cutting this loop does: sizes of leaves, positions, roles, addends set to
  // zero.
  std::string word(const Loop& loop) const {
    std::string text = leaves_ + describe({{&loop, {}}});
    bool partial = false;
    for (size_t o = 0; o < loop.roles.size(); ++o) {
      if (!whole_.has_out[o]) continue;
      text += fmt::format(" {}", static_cast<int>(loop.roles[o]));
      partial |= loop.roles[o] == LoopRole::kPartial;
    }
    for (int k : loops().addends)
      if (partial &&
          std::none_of(loop.ins.begin(), loop.ins.end(), [&](const Pos& p) { return p.operand == k; }))
        text += fmt::format(" zero {}", k);
    return text;
  }

  void try_cut(const std::vector<Cutting>& cuttings) {
    if (std::optional<std::string> wrong = recombine(cuttings)) fault(describe(cuttings) + ": " + *wrong);
  }

  // Whatever stays whole by rule must not be splittable in truth, or the rule is too timid.
  void try_frozen_loops() {
    if (failed()) return;
    std::vector<Loop> candidates = timid_candidates();
    int found = first_that_holds(static_cast<int>(candidates.size()),
                                 [&](int i) { return can_be_cut(candidates[i]); });
    if (found >= 0)
      fault(describe({{&candidates[found], {}}}) +
            " could be split, but is frozen: " + candidates[found].why);
  }

  // Frozen loops; parts of one; and what the positions of two of one size give when each operand takes that
  // of one of them: letters that were merged, torn apart or crossed.
  std::vector<Loop> timid_candidates() const {
    std::vector<Loop> frozen, out;
    for (const Loop& loop : loops().loops)
      if (loop.frozen && loop.size > 1) frozen.push_back(loop);
    for (const Loop& loop : frozen) add_roles(loop, out);
    for (size_t i = 0; i < frozen.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (frozen[i].size == frozen[j].size) add_roles(joined(frozen[i], frozen[j]), out);
    for (size_t i = 0; i < frozen.size() && mixtures_; ++i) {
      add_mixtures(frozen[i], {}, out);
      for (size_t j = 0; j < i; ++j)
        if (frozen[i].size == frozen[j].size) add_mixtures(frozen[i], frozen[j], out);
    }
    return out;
  }

  void add_mixtures(const Loop& a, const Loop& b, std::vector<Loop>& out) const {
    uint32_t operands = static_cast<uint32_t>(whole_.in.size() + whole_.out.size());
    uint32_t outputs = ((1u << whole_.out.size()) - 1) << whole_.in.size();
    if (operands <= kMixed)
      for (uint32_t mask = 1; mask + 1 < 1u << operands; ++mask) add_roles(mixed(a, b, mask), out);
    else
      for (uint32_t mask : {outputs, ~outputs}) add_roles(mixed(a, b, mask), out);
  }

  // Operand k (inputs, then outputs) stands where b has it if bit k of the mask is set, else where a has it.
  Loop mixed(const Loop& a, const Loop& b, uint32_t mask) const {
    Loop loop{.atom = a.atom, .size = a.size, .roles = {}, .frozen = true, .why = a.why};
    auto takes = [&](const Pos& pos, bool output, bool second) {
      return (mask >> (pos.operand + (output ? whole_.in.size() : 0)) & 1) == second;
    };
    for (bool second : {false, true}) {
      for (const Pos& pos : (second ? b : a).ins)
        if (takes(pos, false, second)) loop.ins.push_back(pos);
      for (const Pos& pos : (second ? b : a).outs)
        if (takes(pos, true, second)) loop.outs.push_back(pos);
    }
    loop.roles.assign(whole_.out.size(), LoopRole::kPartial);
    for (const Pos& pos : loop.outs) loop.roles[pos.operand] = LoopRole::kShard;
    return loop;
  }

  static Loop joined(Loop a, const Loop& b) {
    a.ins.insert(a.ins.end(), b.ins.begin(), b.ins.end());
    a.outs.insert(a.outs.end(), b.outs.begin(), b.outs.end());
    for (const Pos& pos : a.outs) a.roles[pos.operand] = LoopRole::kShard;
    return a;
  }

  void add_roles(const Loop& loop, std::vector<Loop>& out) const {
    if (stands_twice(loop) || (loop.ins.empty() && loop.outs.empty())) return;
    out.push_back(loop);
    Loop other = loop;
    for (size_t o = 0; o < loop.roles.size(); ++o)
      if (whole_.has_out[o] && other.roles[o] == LoopRole::kPartial) other.roles[o] = LoopRole::kIndependent;
    if (other.roles != loop.roles) out.push_back(other);
  }

  static bool stands_twice(const Loop& loop) {
    std::set<std::pair<bool, int>> operands;
    for (const Pos& pos : loop.ins)
      if (!operands.emplace(false, pos.operand).second) return true;
    for (const Pos& pos : loop.outs)
      if (!operands.emplace(true, pos.operand).second) return true;
    return false;
  }

  void try_letters() {
    for (const Loop& loop : loops().loops)
      if (loop.size > 1 && stands_twice(loop)) fault(describe({{&loop, {}}}) + " stands twice in one tensor");
  }

  static std::vector<Interval> even(int64_t size, int64_t count) {
    std::vector<Interval> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(piece({0, size}, count, i));
    return parts;
  }

  std::vector<Interval> uneven(int64_t size, int64_t count) {
    std::vector<int64_t> bounds{0, size};
    while (static_cast<int64_t>(bounds.size()) <= count) {
      int64_t at = 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(size - 1));
      if (std::find(bounds.begin(), bounds.end(), at) == bounds.end()) bounds.push_back(at);
    }
    std::sort(bounds.begin(), bounds.end());
    std::vector<Interval> parts;
    for (size_t i = 1; i < bounds.size(); ++i) parts.push_back({bounds[i - 1], bounds[i]});
    return parts;
  }

  std::vector<std::vector<Interval>> ways_to_cut(int64_t size) {
    std::vector<std::vector<Interval>> ways;
    for (int64_t count : {2, 3}) {
      if (size < count) continue;
      ways.push_back(even(size, count));
      ways.push_back(uneven(size, count));
    }
    return ways;
  }

  static std::string describe(const std::vector<Cutting>& cuttings) {
    std::string text;
    for (const Cutting& cut : cuttings) {
      text += text.empty() ? "loop" : " and loop";
      for (const Pos& p : cut.loop->ins) text += fmt::format(" i{}.{}.{}", p.operand, p.dim, p.leaf);
      for (const Pos& p : cut.loop->outs) text += fmt::format(" o{}.{}.{}", p.operand, p.dim, p.leaf);
      for (const Interval& part : cut.parts) text += fmt::format(" {}:{}", part.begin, part.end);
    }
    return text;
  }

  Box box_of_tensor(TensorId id, bool output, int operand, const std::vector<Cutting>& cuttings,
                    const std::vector<size_t>& at) const {
    Box box = whole_box(atoms_, id);
    for (size_t s = 0; s < cuttings.size(); ++s)
      for (const Pos& pos : output ? cuttings[s].loop->outs : cuttings[s].loop->ins)
        if (pos.operand == operand) box[pos.dim][pos.leaf] = cuttings[s].parts[at[s]];
    return box;
  }

  // A bias beside a sum that is cut here is added once: zeros on all parts but the first.
  bool stands_aside(int k, const std::vector<Cutting>& cuttings, const std::vector<size_t>& at) const {
    const std::vector<int>& addends = loops().addends;
    if (std::find(addends.begin(), addends.end(), k) == addends.end()) return false;
    for (size_t s = 0; s < cuttings.size(); ++s) {
      const Loop& loop = *cuttings[s].loop;
      bool partial = false, has = false;
      for (size_t o = 0; o < loop.roles.size(); ++o)
        partial |= whole_.has_out[o] && loop.roles[o] == LoopRole::kPartial;
      for (const Pos& pos : loop.ins) has |= pos.operand == k;
      if (partial && !has && at[s] > 0) return true;
    }
    return false;
  }

  Tensors run_part(const std::vector<Cutting>& cuttings, const std::vector<size_t>& at) {
    OpView local{.op = &instance_.op(), .has_out = whole_.has_out, .dtype = whole_.dtype};
    Tensors in;
    for (size_t k = 0; k < in_.size(); ++k) {
      Box box = box_of_tensor(in_[k], false, static_cast<int>(k), cuttings, at);
      local.in.push_back(shape_of(box));
      at::Tensor piece =
          leaves_view(instance_.in[k], leaf_sizes(atoms_, in_[k]), box).reshape(local.in.back());
      in.push_back(piece.clone(at::MemoryFormat::Contiguous));
      if (stands_aside(static_cast<int>(k), cuttings, at)) in.back().zero_();
    }
    for (size_t o = 0; o < instance_.out.size(); ++o)
      local.out.push_back(whole_.has_out[o] ? shape_of(out_box(o, cuttings, at)) : Shape{});
    ++verdict_.calls;
    Tensors out = call(instance_.model, claim_.localize(whole_, local), in, instance_.out.size());
    for (size_t o = 0; o < out.size(); ++o) {
      if (out[o].defined() != instance_.out[o].defined()) throw std::runtime_error("another output is made");
      bool whole_is_dense = out[o].defined() && instance_.out[o].is_non_overlapping_and_dense();
      if (whole_is_dense && !claim_.view && !out[o].is_non_overlapping_and_dense())
        throw std::runtime_error(fmt::format("output {} has gaps in memory", o));
      if (out[o].defined() && out[o].sizes().vec() != local.out[o])
        throw std::runtime_error(fmt::format("output {} has shape [{}], expected [{}]", o,
                                             fmt::join(out[o].sizes().vec(), ","),
                                             fmt::join(local.out[o], ",")));
    }
    return out;
  }

  Box out_box(size_t o, const std::vector<Cutting>& cuttings, const std::vector<size_t>& at) const {
    return box_of_tensor(instance_.op().outputs[o], true, static_cast<int>(o), cuttings, at);
  }

  // Nothing when the parts make the whole; else what is wrong.
  std::optional<std::string> recombine(const std::vector<Cutting>& cuttings) {
    Tensors sums;
    for (const at::Tensor& out : instance_.out)
      sums.push_back(out.defined() ? at::zeros(out.sizes(), at::kDouble) : at::Tensor());
    std::map<std::vector<size_t>, Tensors> made;
    std::vector<size_t> at(cuttings.size(), 0);
    try {
      do {
        made[at] = run_part(cuttings, at);
        for (size_t o = 0; o < sums.size(); ++o)
          if (sums[o].defined())
            if (auto wrong = put(o, cuttings, at, made, sums[o])) return wrong;
      } while (next(cuttings, at));
    } catch (const std::exception& e) {
      std::string what = e.what();
      return "fails: " + what.substr(0, what.find('\n'));
    }
    for (size_t o = 0; o < sums.size(); ++o)
      if (sums[o].defined() && contents_matter() && !close(sums[o], instance_.out[o]))
        return fmt::format("output {} of the parts is not that of the whole", o);
    return std::nullopt;
  }

  // Shards are placed and addends added; what does not depend on a loop must be the same in all its parts.
  std::optional<std::string> put(size_t o, const std::vector<Cutting>& cuttings,
                                 const std::vector<size_t>& at,
                                 const std::map<std::vector<size_t>, Tensors>& made, at::Tensor& sum) const {
    std::vector<size_t> first = at;
    for (size_t s = 0; s < cuttings.size(); ++s)
      if (cuttings[s].loop->roles[o] == LoopRole::kIndependent) first[s] = 0;
    const at::Tensor& value = made.at(at)[o];
    if (first != at) {
      if (contents_matter() && !close(value, made.at(first)[o]))
        return fmt::format("output {} differs between parts", o);
      return std::nullopt;
    }
    at::Tensor to = leaves_view(sum, leaf_sizes(atoms_, instance_.op().outputs[o]), out_box(o, cuttings, at));
    to.add_(value.to(at::kDouble).reshape(to.sizes()));
    return std::nullopt;
  }

  static bool next(const std::vector<Cutting>& cuttings, std::vector<size_t>& at) {
    for (size_t s = 0; s < at.size(); ++s) {
      if (++at[s] < cuttings[s].parts.size()) return true;
      at[s] = 0;
    }
    return false;
  }

 public:
  // op(a + b + c) == op(a) + op(b) + op(c), where a, b and c replace the inputs of the set together.
  bool is_linear(const std::vector<int>& set) {
    std::vector<Tensors> addends(3, instance_.in);
    for (int k : set) {
      const at::Tensor& x = instance_.in[k];
      bool floating = x.is_floating_point();
      for (int i : {0, 1})
        addends[i][k] = floating ? at::empty_like(x).normal_() : at::ones_like(x) * (i + 2);
      addends[2][k] = x - addends[0][k] - addends[1][k];
    }
    try {
      Tensors sums;
      for (const Tensors& one : addends) {
        Tensors out = call(instance_.model, instance_.op(), one, instance_.out.size());
        for (size_t o = 0; o < out.size(); ++o) {
          if (!out[o].defined()) out[o] = at::zeros({});
          if (sums.size() <= o)
            sums.push_back(out[o].to(at::kDouble));
          else
            sums[o] = sums[o] + out[o].to(at::kDouble);
        }
      }
      for (size_t o = 0; o < sums.size(); ++o)
        if (instance_.out[o].defined() && contents_matter() && !close(sums[o], instance_.out[o]))
          return false;
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  // Sums of a few whole numbers, such as indices, may agree once by chance.
  bool is_often_linear(const std::vector<int>& set) {
    for (int draw = 0; draw < 4; ++draw)
      if (!is_linear(set)) return false;
    return true;
  }

  LinearSets unclaimed() {
    std::vector<int> floating;
    for (size_t k = 0; k < instance_.in.size(); ++k)
      if (instance_.in[k].is_floating_point()) floating.push_back(static_cast<int>(k));
    LinearSets minimal, claimed(loops().linear.begin(), loops().linear.end());
    std::vector<std::vector<int>> sets;
    for (uint32_t bits = 1; bits < (1u << floating.size()); ++bits) {
      std::vector<int> set;
      for (size_t i = 0; i < floating.size(); ++i)
        if (bits >> i & 1) set.push_back(floating[i]);
      sets.push_back(set);
    }
    std::stable_sort(sets.begin(), sets.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (const std::vector<int>& set : sets) {
      auto inside = [&](const std::vector<int>& small) {
        return std::includes(set.begin(), set.end(), small.begin(), small.end());
      };
      if (std::any_of(minimal.begin(), minimal.end(), inside) ||
          std::any_of(claimed.begin(), claimed.end(), inside))
        continue;
      if (is_often_linear(set)) minimal.insert(set);
    }
    return minimal;
  }

 private:
  void try_linear(const LinearSets& excused) {
    if (failed() || !contents_matter()) return;
    for (const std::vector<int>& set : loops().linear)
      if (!is_linear(set)) return fault(fmt::format("is not linear in {{{}}}", fmt::join(set, ",")));
    for (const std::vector<int>& set : unclaimed())
      if (!excused.contains(set)) return fault(fmt::format("is linear in {{{}}} too", fmt::join(set, ",")));
  }

  const Instance& instance_;
  const Claim& claim_;
  bool mixtures_;
  OpView whole_;
  Atoms atoms_;
  std::string leaves_;
  std::mt19937_64 random_;
  std::vector<TensorId> in_;
  Verdict verdict_;
};

}  // namespace

Known known_of(const Instance& instance, const Claim& claim) {
  return Judge(instance, claim, 0, true).known();
}

std::string fault_of_mutant(const Instance& instance, const Claim& mutant, const Known& known,
                            const LinearSets& excused, uint64_t seed, int& next) {
  return Judge(instance, mutant, seed, true).run_mutant(known, excused, next);
}

Claim claim_of(const Instance& instance) {
  return {relate(view_of(instance.model, instance.op())), localize, is_view(instance.op())};
}

LinearSets unclaimed_linear_sets(const Instance& instance, const Claim& claim) {
  return Judge(instance, claim, 0, false).unclaimed();
}

Verdict judge(const Instance& instance, const Claim& claim, const LinearSets& excused, uint64_t seed,
              bool mixtures) {
  return Judge(instance, claim, seed, mixtures).run(excused);
}

std::string allowed(const Instance& instance, const Claim& claim) {
  Atoms atoms = find_atoms(instance.model, {claim.relation});
  std::set<std::string> words;
  for (const Loop& loop : atoms.ops[0].loops) {
    if (loop.frozen || loop.size < 2) continue;
    std::string text = fmt::format("{}:", loop.size);
    bool partial = false;
    for (const Pos& p : loop.ins) text += fmt::format(" i{}.{}.{}", p.operand, p.dim, p.leaf);
    for (const Pos& p : loop.outs) text += fmt::format(" o{}.{}.{}", p.operand, p.dim, p.leaf);
    for (size_t o = 0; o < loop.roles.size(); ++o) {
      if (!instance.out[o].defined()) continue;
      text += fmt::format(" {}", static_cast<int>(loop.roles[o]));
      partial |= loop.roles[o] == LoopRole::kPartial;
    }
    for (int k : atoms.ops[0].addends)
      if (partial &&
          std::none_of(loop.ins.begin(), loop.ins.end(), [&](const Pos& p) { return p.operand == k; }))
        text += fmt::format(" zero {}", k);
    words.insert(text);
  }
  for (const std::vector<int>& set : atoms.ops[0].linear)
    words.insert(fmt::format("linear {}", fmt::join(set, ",")));
  return fmt::format("{}; {}", fmt::join(words, "; "), claim.view);
}

}  // namespace partita::run
