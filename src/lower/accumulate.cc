// Three rewrites, one after another, since each makes more for the next: accumulators that are only added up
// become one, then additions go into what is made for them, then sums of the Model do. A rewrite marks the
// steps that are gone and names others by number; between rewrites the marked ones are taken out, and makers
// and readers looked up anew.
#include "lower/accumulate.h"

#include <algorithm>
#include <set>

#include "model/row.h"

namespace partita::lower {
namespace {

/// A step of a site.
struct Where {
  Segment segment;
  size_t index = 0;
  bool operator==(const Where&) const = default;
};

class Folder {
 public:
  Folder(const Model& model, const std::vector<Transfer>& sent, SiteCode& code)
      : model_(model), sent_(sent), code_(code) {}

  void run() {
    look();
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; segment == kEpilogue && k < steps.size(); ++k) join_accumulators({segment, k});
    look();
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k) fold_add({segment, k});
    look();
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k) fold_sum({segment, k});
    look();
  }

 private:
  CodeStep& step(const Where& at) { return code_.segments.at(at.segment)[at.index]; }
  const Value& value(int id) const { return code_.values[id]; }

  /// Takes out what was folded away, and finds who makes and reads every value.
  void look() {
    for (auto& [segment, steps] : code_.segments) {
      size_t kept = 0;
      for (size_t k = 0; k < steps.size(); ++k)
        if (!gone_.contains({segment, k})) {
          if (kept != k) steps[kept] = std::move(steps[k]);
          ++kept;
        }
      steps.resize(kept);
    }
    gone_.clear();
    readers_.assign(code_.values.size(), {});
    makers_.assign(code_.values.size(), {});
    fixed_.assign(code_.values.size(), false);
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k) {
        for (int in : steps[k].in) readers_[in].push_back({segment, k});
        for (int out : steps[k].out)
          if (out >= 0) makers_[out].push_back({segment, k});
      }
    for (const Transfer& transfer : sent_) fixed_[transfer.from_value] = true;
    for (auto [id, parameter] : code_.gradients) fixed_[id] = true;
    for (auto [id, buffer] : code_.buffers) fixed_[id] = true;
    for (int id : code_.parameters) fixed_[id] = true;
    if (code_.loss >= 0) fixed_[code_.loss] = true;
  }

  void remove(const Where& at) { gone_.insert({at.segment, at.index}); }

  /// Where a value is made, if this step alone reads it, in the same segment; a segment without a step where
  /// not.
  std::optional<Where> maker_for(int id, const Where& reader) const {
    bool only = makers_[id].size() == 1 && readers_[id] == std::vector{reader} && !fixed_[id];
    if (!only || makers_[id][0].segment != reader.segment || value(id).storage != id) return std::nullopt;
    return makers_[id][0];
  }

  bool plain(int id) const {
    DType dtype = model_[value(id).tensor].dtype;
    return !value(id).as && (dtype == DType::kFloat32 || dtype == DType::kFloat64);
  }

  bool can_add(const Where& at, int to) {
    const CodeStep& made = step(at);
    if (made.kind != InstrKind::kCompute || made.accumulate || !accumulates(model_[made.op])) return false;
    return std::none_of(made.in.begin(), made.in.end(),
                        [&](int in) { return value(in).storage == value(to).storage; });
  }

  /// Does a step between the two touch this storage?
  bool touched(int storage, const Where& from, const Where& to) {
    for (size_t k = from.index + 1; k < to.index; ++k)
      for (const auto* side : {&step({from.segment, k}).in, &step({from.segment, k}).out})
        for (int id : *side)
          if (id >= 0 && value(id).storage == storage && !gone_.contains({from.segment, k})) return true;
    return false;
  }

  // z += g, where g was made for nothing else.
  void fold_add(const Where& at) {
    CodeStep& add = step(at);
    if (add.kind != InstrKind::kAdd) return;
    int sum = add.in[0], addend = add.in[1];
    std::optional<Where> maker = value(sum).tensor ? maker_for(addend, at) : std::nullopt;
    if (!maker || gone_.contains({maker->segment, maker->index})) return;
    CodeStep& made = step(*maker);
    if (made.kind != InstrKind::kCompute || made.accumulate) return;
    if (begins_with(sum, *maker, at)) {
      if (add.sum) return;
      std::replace(made.out.begin(), made.out.end(), addend, sum);
      remove({at.segment, at.index - 1});
      remove(at);
      return;
    }
    bool alike = plain(sum) && plain(addend);
    if (!alike || !can_add(*maker, sum) || touched(value(sum).storage, *maker, at)) return;
    made.accumulate = true;
    made.sum = add.sum;
    made.in.push_back(sum);
    made.out = add.out;
    remove(at);
  }

  /// Is the sum still zero, made so just before the addition and after the addend?
  bool begins_with(int sum, const Where& maker, const Where& add) {
    if (add.index == 0 || maker.index + 1 >= add.index) return false;
    const CodeStep& zeros = step({add.segment, add.index - 1});
    return zeros.kind == InstrKind::kZeros && zeros.out[0] == sum && step(add).out[0] == sum &&
           value(sum).as == value(step(add).in[1]).as;
  }

  // g = add(x, y) of the Model, where y can be added to x as it is made, and nothing else needs x.
  void fold_sum(const Where& at) {
    const CodeStep& add = step(at);
    if (add.kind != InstrKind::kCompute || add.accumulate || !is_plain_sum(model_, model_[add.op])) return;
    int sum = add.out[0];
    for (int side : {1, 0}) {
      int there = add.in[1 - side], addend = add.in[side];
      std::optional<Where> maker = maker_for(addend, at);
      if (!maker || !can_add(*maker, there) || !alike(sum, there) || !alike(sum, addend)) continue;
      if (!dies_at(there, *maker, at)) continue;
      CodeStep& made = step(*maker);
      made.accumulate = true;
      made.sum = add.op;
      made.in.push_back(there);
      made.out = {sum};
      share_storage(sum, value(there).storage);
      remove(at);
      return;
    }
  }

  bool alike(int a, int b) const {
    const Value &x = value(a), &y = value(b);
    return plain(a) && plain(b) && x.layout == y.layout && x.loop == y.loop && x.piece == y.piece &&
           model_[x.tensor].strides == model_[y.tensor].strides && is_dense(model_[x.tensor]);
  }

  /// Is the value there before `maker`, and do all who read its storage do so before `maker`, but for `last`?
  bool dies_at(int id, const Where& maker, const Where& last) const {
    int storage = value(id).storage;
    auto before = [&](const Where& at) {
      if (at.segment == maker.segment) return at.index < maker.index;
      return precedes(at.segment, maker.segment) && at.segment.in_loop() == maker.segment.in_loop();
    };
    for (int other = 0; other < static_cast<int>(code_.values.size()); ++other) {
      if (value(other).storage != storage) continue;
      if (value(other).loaded || value(other).accumulator || fixed_[other]) return false;
      for (const auto* uses : {&readers_[other], &makers_[other]})
        for (const Where& at : *uses)
          if (!before(at) && !(at == last && other == id)) return false;
    }
    return true;
  }

  void share_storage(int id, int storage) {
    int old = value(id).storage;
    for (Value& other : code_.values)
      if (other.storage == old) other.storage = storage;
  }

  // g = add(x, y) after the loop, of two sums over micro-batches that nothing else reads: one sum.
  void join_accumulators(const Where& at) {
    const CodeStep& add = step(at);
    if (add.kind != InstrKind::kCompute || !is_plain_sum(model_, model_[add.op])) return;
    int sum = add.out[0], x = add.in[0], y = add.in[1];
    if (!only_sums(x, at) || !only_sums(y, at) || !alike(sum, x) || !alike(sum, y) || is_sent(sum)) return;
    OpId op = add.op;
    remove(at);
    for (auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k) rewrite(steps[k], {segment, k}, sum, x, y, op);
    for (auto& [id, parameter] : code_.gradients)
      if (id == sum) id = x;
    share_storage(sum, value(x).storage);
    code_.values[x].tensor = value(sum).tensor;
  }

  void rewrite(CodeStep& step, const Where& at, int sum, int x, int y, OpId op) {
    if (step.kind == InstrKind::kZeros && step.out[0] == y) remove(at);
    if (step.kind == InstrKind::kAdd && (step.in[0] == x || step.in[0] == y)) {
      step.in[0] = step.out[0] = x;
      step.sum = op;
    }
    for (auto* side : {&step.in, &step.out}) std::replace(side->begin(), side->end(), sum, x);
  }

  /// An accumulator that is made zero, added to, and read by `last`.
  bool only_sums(int id, const Where& last) {
    if (!value(id).accumulator || fixed_[id]) return false;
    for (const Where& at : readers_[id]) {
      const CodeStep& reader = step(at);
      if (!(at == last) && !(reader.kind == InstrKind::kAdd && reader.in[0] == id && reader.out[0] == id))
        return false;
    }
    return true;
  }

  bool is_sent(int id) const {
    return std::any_of(sent_.begin(), sent_.end(), [&](const Transfer& t) { return t.from_value == id; });
  }

  const Model& model_;
  const std::vector<Transfer>& sent_;
  SiteCode& code_;
  std::vector<std::vector<Where>> readers_, makers_;  // by value
  std::vector<bool> fixed_;                           // by value: somebody else needs it as it is
  std::set<std::pair<Segment, size_t>> gone_;
};

}  // namespace

Code accumulate(const Model& model, Code code) {
  for (size_t site = 0; site < code.sites.size(); ++site) {
    std::vector<Transfer> sent = sent_from(code, static_cast<int>(site));
    Folder(model, sent, code.sites[site]).run();
  }
  return code;
}

}  // namespace partita::lower
