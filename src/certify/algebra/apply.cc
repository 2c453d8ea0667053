#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "certify/algebra/meaning.h"
#include "certify/refuse.h"
#include "program/span.h"
#include "program/words.h"

namespace partita::certify {
namespace {

/// One call of an op: from the meanings of its operands to those of its outputs.
class Application {
 public:
  Application(const Rules& rules, OpId op, const std::vector<Operand>& in,
              const std::vector<const TensorType*>& out)
      : rules_(rules), id_(op), rule_(rules[op]), loops_(rules.atoms[op]), in_(in), out_(out) {}

  std::vector<Meaning> run() {
    for (size_t k = 0; k < in_.size(); ++k) check_operand(k);
    find_spans();
    check_spans();
    std::vector<std::pair<Label, Term>> terms = find_terms();
    std::vector<Meaning> meanings;
    for (size_t o = 0; o < out_.size(); ++o) meanings.push_back(meaning_of(o, terms));
    return meanings;
  }

 private:
  /// One part of the result before the op's own loops cut it: what it holds, and the operand it came through.
  struct Term {
    std::vector<Region> regions;
    int operand = -1;  // -1: through several alike, or the op as such
  };

  std::string show(const Meaning& meaning) const { return to_text(meaning, rules_.model, rules_.atoms); }
  const std::string& tensor_name(size_t k) const { return rules_.model[rule_.in[k]].name; }
  bool is_zero(size_t k) const { return in_[k].meaning->addend.zero; }

  void check_operand(size_t k) const {
    const Meaning& meaning = *in_[k].meaning;
    if (meaning.addend.zero) {
      if (in_[k].type->dtype != rules_.model[rule_.in[k]].dtype)
        refuse(Rule::kZeros, "zeros of another dtype stand for {}", tensor_name(k));
      return;
    }
    if (meaning.tensor != rule_.in[k] || meaning.state >= 0 || meaning.as || meaning.clipped)
      refuse(Rule::kOperands, "needs {} as operand {}, but {} holds {}", tensor_name(k), k,
             to_text(in_[k].slot), show(meaning));
    if (meaning.version != 0)
      refuse(Rule::kOperands, "reads {} after the optimizer has changed it", tensor_name(k));
  }

  // --- Loops ---

  void find_spans() {
    spans_.assign(loops_.loops.size(), anywhere(kUnknownLength));
    bool unknown = false;
    for (size_t i = 0; i < spans_.size(); ++i) {
      for (const Pos& pos : loops_.loops[i].ins)
        if (!is_zero(pos.operand)) narrow(i, pos);
      unknown |= !has_length(spans_[i]);
    }
    if (unknown) solve_lengths();
  }

  void narrow(size_t i, const Pos& pos) {
    const Span& span = in_[pos.operand].meaning->box[pos.dim][pos.leaf];
    Span before = spans_[i];
    if (meet(before, span, spans_[i])) return;
    refuse(Rule::kLoops, "its operands disagree about {}: {} has {}, another has {}", loop_name(i),
           show(*in_[pos.operand].meaning), show_span(span), show_span(before));
  }

  std::string loop_name(size_t i) const {
    const std::string& atom = rules_.atoms.names[loops_.loops[i].atom.value];
    return atom.empty() ? fmt::format("loop {}", i) : atom;
  }

  /// A dimension whose local size is known: the product of the lengths of these loops.
  struct Equation {
    std::vector<size_t> loops;
    int64_t size;
  };

  std::vector<Equation> equations() const {
    std::map<std::tuple<bool, int32_t, int32_t>, Equation> by_dim;
    auto add = [&](bool output, const Pos& pos, size_t loop, const TensorType* type) {
      if (!type) return;
      Equation& equation = by_dim[{output, pos.operand, pos.dim}];
      equation.loops.push_back(loop);
      equation.size = static_cast<size_t>(pos.dim) < type->shape.size() ? type->shape[pos.dim] : -1;
    };
    for (size_t i = 0; i < loops_.loops.size(); ++i) {
      for (const Pos& pos : loops_.loops[i].ins) add(false, pos, i, in_[pos.operand].type);
      for (const Pos& pos : loops_.loops[i].outs) add(true, pos, i, out_[pos.operand]);
    }
    std::vector<Equation> out;
    for (auto& [dim, equation] : by_dim) out.push_back(std::move(equation));
    return out;
  }

  // A loop no operand decides (a dimension that expand or full makes, or zeros stand for) has the length that
  // the local shapes leave for it. Where several such loops share a dimension and are not whole, the split
  // stays open: values along them are all the same, so any split is right.
  void solve_lengths() {
    std::vector<Equation> all = equations();
    for (size_t i = 0, count = all.size(); i < count; ++i)
      for (size_t j = 0; j < count; ++j)
        if (auto rest = without(all[i], all[j])) all.push_back(*rest);
    for (bool moved = true; moved;) {
      moved = false;
      for (const Equation& equation : all) moved |= solve(equation);
    }
  }

  /// What a dimension has beside another: of 24 = 3 x heads x width and 8 = heads x width, 3 = 3.
  static std::optional<Equation> without(const Equation& whole, const Equation& part) {
    if (part.loops.size() >= whole.loops.size() || part.size <= 0 || whole.size % part.size) return {};
    Equation rest{.size = whole.size / part.size};
    size_t found = 0;
    for (size_t loop : whole.loops)
      if (std::find(part.loops.begin(), part.loops.end(), loop) == part.loops.end())
        rest.loops.push_back(loop);
      else
        ++found;
    return found == part.loops.size() ? std::optional(rest) : std::nullopt;
  }

  bool solve(const Equation& equation) {
    int64_t known = 1, most = 1;
    std::vector<size_t> open;
    for (size_t i : equation.loops) {
      if (has_length(spans_[i]))
        known *= spans_[i].length();
      else
        open.push_back(i), most *= loops_.loops[i].size;
    }
    if (open.empty() || known == 0 || equation.size < 0 || equation.size % known != 0) return false;
    int64_t left = equation.size / known;
    if (open.size() > 1 && left != most) return false;
    for (size_t i : open) {
      int64_t size = loops_.loops[i].size, length = open.size() == 1 ? left : size;
      if (length > size)
        refuse(Rule::kLoops, "makes {} elements of {}, which has {}", length, loop_name(i), size);
      spans_[i] = settled(anywhere(length), size);
    }
    return true;
  }

  bool cut(size_t i) const { return !is_whole(spans_[i], loops_.loops[i].size); }

  void check_spans() const {
    for (size_t i = 0; i < spans_.size(); ++i) {
      const Loop& loop = loops_.loops[i];
      bool used = !loop.ins.empty() || !loop.outs.empty();
      if (used && loop.frozen && cut(i))
        refuse(Rule::kFrozen, "needs all of {} ({}), but has {} of {}", loop_name(i), loop.why,
               show_span(spans_[i]), loop.size);
    }
    for (size_t k = 0; k < in_.size(); ++k)
      if (is_zero(k)) check_zeros(k);
  }

  /// Zeros have no box; their shape must be that of what they stand for.
  void check_zeros(size_t k) const {
    std::vector<int64_t> sizes(in_[k].type->shape.size(), 1);
    if (sizes.size() != rules_.atoms[rule_.in[k]].size())
      return refuse(Rule::kZeros, "zeros of another rank stand for {}", tensor_name(k));
    std::vector<bool> known(sizes.size(), true);
    for (size_t i = 0; i < spans_.size(); ++i)
      for (const Pos& pos : loops_.loops[i].ins) {
        if (static_cast<size_t>(pos.operand) != k) continue;
        sizes[pos.dim] *= spans_[i].length();
        if (!has_length(spans_[i])) known[pos.dim] = false;
      }
    for (size_t d = 0; d < sizes.size(); ++d)
      if (known[d] && sizes[d] != in_[k].type->shape[d])
        refuse(Rule::kZeros, "zeros of shape [{}] stand for {}, whose piece has [{}]",
               fmt::join(in_[k].type->shape, ","), tensor_name(k), fmt::join(sizes, ","));
  }

  // --- Addends ---

  /// A bias: beside the sum over this loop, not inside of it.
  bool added_once(int operand, size_t loop) const {
    if (std::find(loops_.addends.begin(), loops_.addends.end(), operand) == loops_.addends.end())
      return false;
    const std::vector<Pos>& ins = loops_.loops[loop].ins;
    return std::none_of(ins.begin(), ins.end(), [&](const Pos& pos) { return pos.operand == operand; });
  }

  bool reduces(size_t loop) const {
    const std::vector<LoopRole>& roles = loops_.loops[loop].roles;
    return cut(loop) && std::find(roles.begin(), roles.end(), LoopRole::kPartial) != roles.end();
  }

  /// Operands that may come in only through a linear set: partial sums, zeros, and what is added once to a
  /// sum that is cut here.
  std::vector<int> special_operands() const {
    std::vector<int> special;
    for (size_t k = 0; k < in_.size(); ++k) {
      bool once = false;
      for (size_t i = 0; !loops_.addends.empty() && i < spans_.size(); ++i)
        once |= reduces(i) && added_once(static_cast<int>(k), i);
      if (once || !in_[k].meaning->addend.complete()) special.push_back(static_cast<int>(k));
    }
    return special;
  }

  /// The linear set that all of these operands are in; -1: none.
  int linear_set(const std::vector<int>& special) const {
    for (size_t s = 0; s < loops_.linear.size(); ++s) {
      const std::vector<int>& set = loops_.linear[s];
      if (std::all_of(special.begin(), special.end(),
                      [&](int k) { return std::find(set.begin(), set.end(), k) != set.end(); }))
        return static_cast<int>(s);
    }
    refuse_not_linear(special);
    return -1;
  }

  void refuse_not_linear(const std::vector<int>& special) const {
    const Meaning& first = *in_[special[0]].meaning;
    if (special.size() == 1)
      return refuse(Rule::kLinear, "is not linear in operand {}, which is {}; it must be complete",
                    special[0], show(first));
    refuse(Rule::kLinear, "is not linear in its operands {} together; the first is {}",
           fmt::join(special, ", "), show(first));
  }

  std::vector<std::pair<Label, Term>> find_terms() const {
    std::vector<int> special = special_operands();
    if (rule_.reads_apart && !special.empty()) refuse(Rule::kLinear, "takes only complete operands");
    int set = special.empty() ? -1 : linear_set(special);
    if (set < 0) return {{Label{}, Term{{Region{}}, -1}}};
    const std::vector<int>& members = loops_.linear[set];
    if (std::all_of(members.begin(), members.end(), [&](int k) { return is_zero(k); })) return {};
    std::vector<std::pair<Label, Term>> terms;
    bool told_apart = members.size() > 1 || loops_.linear.size() > 1;
    for (int k : members) {
      const Addend& addend = in_[k].meaning->addend;
      Label through = told_apart ? Label{{.op = id_, .set = set, .operand = k}} : Label{};
      if (addend.zero) terms.push_back({through, {{}, k}});
      if (addend.complete()) terms.push_back({through, {{Region{}}, k}});
      for (const auto& [label, regions] : addend.terms) {
        if (shared(members, label, regions)) continue;
        Label longer = label;
        longer.insert(longer.end(), through.begin(), through.end());
        terms.emplace_back(std::move(longer), Term{regions, k});
      }
    }
    add_shared(members, set, terms);
    return terms;
  }

  // Where all members of the set hold the same part of the same sum, the result holds that part of it: no
  // need to tell the ways apart. An addend that is not cut where the others are must stay apart.
  bool shared(const std::vector<int>& members, const Label& label, const std::vector<Region>& regions) const {
    if (members.size() < 2) return false;
    for (int k : members) {
      const auto& terms = in_[k].meaning->addend.terms;
      auto found = terms.find(label);
      if (found == terms.end() || found->second != regions) return false;
      for (size_t i = 0; i < spans_.size(); ++i)
        if (reduces(i) && added_once(k, i)) return false;
    }
    return true;
  }

  void add_shared(const std::vector<int>& members, int set,
                  std::vector<std::pair<Label, Term>>& terms) const {
    if (members.size() < 2) return;
    for (const auto& [label, regions] : in_[members[0]].meaning->addend.terms) {
      if (!shared(members, label, regions)) continue;
      Label longer = label;
      if (loops_.linear.size() > 1) longer.push_back({.op = id_, .set = set});
      terms.emplace_back(std::move(longer), Term{regions, -1});
    }
  }

  // The op's own reduced loops cut every term further, except what is added once. Whole ones are recorded
  // too: another rank may have cut them.
  Addend addend_of(size_t o, const std::vector<std::pair<Label, Term>>& terms) const {
    Addend addend;
    addend.zero = terms.empty();
    for (auto [label, term] : terms) {
      for (size_t i = 0; i < spans_.size(); ++i) {
        const Loop& loop = loops_.loops[i];
        if (loop.roles[o] != LoopRole::kPartial || loop.frozen) continue;
        if (term.operand >= 0 && added_once(term.operand, i)) continue;
        if (!has_length(spans_[i]))
          refuse(Rule::kLoops, "sums over {}, of which the length is not known", loop_name(i));
        label.push_back({.op = id_, .loop = static_cast<int32_t>(i), .size = loop.size});
        for (Region& region : term.regions) region.push_back(spans_[i]);
      }
      addend.terms[label] = term.regions;
    }
    return settled(std::move(addend));
  }

  // --- Outputs ---

  Meaning meaning_of(size_t o, const std::vector<std::pair<Label, Term>>& terms) const {
    Meaning meaning;
    meaning.tensor = rules_.model[id_].outputs[o];
    if (!meaning.tensor) return meaning;
    meaning.addend = addend_of(o, terms);
    if (meaning.addend.zero) return {.addend = meaning.addend};
    meaning.box = as_spans(whole_box(rules_.atoms, meaning.tensor));
    for (size_t i = 0; i < spans_.size(); ++i)
      for (const Pos& pos : loops_.loops[i].outs)
        if (pos.operand == static_cast<int>(o)) meaning.box[pos.dim][pos.leaf] = spans_[i];
    if (out_[o]) check_type(rules_, meaning, *out_[o]);
    return meaning;
  }

  const Rules& rules_;
  OpId id_;
  const OpRule& rule_;
  const OpLoops& loops_;
  const std::vector<Operand>& in_;
  const std::vector<const TensorType*>& out_;
  std::vector<Span> spans_;
};

}  // namespace

std::vector<Meaning> apply(const Rules& rules, OpId op, const std::vector<Operand>& in,
                           const std::vector<const TensorType*>& out) {
  return Application(rules, op, in, out).run();
}

}  // namespace partita::certify
