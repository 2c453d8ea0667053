#include "program/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "program/check.h"
#include "program/collective.h"
#include "program/gradient_rules.h"
#include "program/ledger.h"
#include "program/load_meaning.h"
#include "program/made.h"
#include "program/outcome.h"
#include "program/span.h"
#include "program/words.h"

namespace partita {
namespace {

constexpr size_t kMaxSentences = 12;  // one fault shows in many places

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Refused(fmt::format(text, std::forward<Args>(args)...));
}

Known known(Meaning meaning) { return std::make_shared<const Meaning>(std::move(meaning)); }

/// A call of an op that was found right.
struct Applied {
  std::vector<Known> in;
  std::vector<TypeId> types;
  std::vector<Known> out;
};

class Certifier {
 public:
  Certifier(const Model& model, const Atoms& atoms, const Program& program, const Fold& fold)
      : model_(model),
        program_(program),
        fold_(fold),
        rules_(model, atoms),
        gradients_(rules_, program.optimizer),
        verified_(program.bodies.size()),
        applied_(program.ranks.size(), std::vector<std::vector<Applied>>(program.bodies.size())) {
    for (const RankProgram& rank : program.ranks) ranks_.emplace_back(rank, program.microbatches);
    for (size_t b = 0; b < program.bodies.size(); ++b) verified_[b].resize(program.bodies[b].instrs.size());
  }

  /// `made`: where not null, what instructions make is noted there.
  std::vector<std::string> run(std::vector<Made>* made = nullptr) {
    made_ = made;
    for (size_t r = 0; r < ranks_.size(); ++r) load(static_cast<int32_t>(r));
    Walker walker(program_);
    while (const Event* event = walker.next()) {
      happen(*event);
      if (wrong_.size() >= kMaxSentences) return std::move(wrong_);
    }
    std::string story = walker.story();
    if (!story.empty()) wrong_.push_back("deadlock: " + story);
    return wrong_.empty() ? check_outcome(rules_, program_, fold_, ranks_) : std::move(wrong_);
  }

 private:
  // --- Places and sentences ---

  const Action& action_at(const At& at) const { return program_.ranks[at.rank].actions[at.action]; }
  const Instr& instr_at(const At& at) const { return program_[action_at(at).body].instrs[at.instr]; }
  int32_t microbatch(const At& at) const { return action_at(at).microbatch; }
  std::string show(const Meaning& meaning) const { return to_text(meaning, model_, rules_.atoms); }

  std::string place(const At& at) const {
    if (at.action < 0) return fmt::format("rank {}", at.rank);
    const Action& action = action_at(at);
    std::string text = fmt::format("rank {}, action {} ({}", at.rank, at.action, name_of(action.kind));
    if (action.kind == ActionKind::kRun) text += fmt::format(" {}", program_[action.body].name);
    text += program_.microbatches > 1 ? fmt::format(", micro-batch {})", action.microbatch) : ")";
    if (at.instr < 0) return text;
    const Instr& instr = instr_at(at);
    bool computes = instr.kind == InstrKind::kCompute;
    return fmt::format("{}, instruction {} ({})", text, at.instr,
                       computes ? fmt::format("{}, {}", model_[instr.op].name, model_[instr.op].target)
                                : row_of(instr.kind).name);
  }

  void say(const At& at, std::string_view sentence) {
    wrong_.push_back(fmt::format("{}: {}", place(at), sentence));
  }

  /// Runs `rule`; what it refuses becomes a sentence about this place.
  template <class Rule>
  bool allowed(const At& at, Rule rule) {
    try {
      rule();
      return true;
    } catch (const Refused& refused) {
      say(at, refused.what());
      return false;
    }
  }

  const std::vector<Interval>& coordinates(int32_t rank) const {
    static const std::vector<Interval> kAlone;
    return fold_.empty() ? kAlone : fold_.classes[rank].coordinates;
  }

  // --- Before the step ---

  void load(int32_t rank) {
    Ledger& ledger = ranks_[rank];
    std::map<Slot, Known> first;  // what moves evenly with the micro-batches is one meaning
    for (size_t k = 0; k < program_.ranks[rank].loads.size(); ++k) {
      const Load& load = program_.ranks[rank].loads[k];
      allowed({rank, -1, -1}, [&] {
        Meaning meaning = load_meaning(rules_, program_, fold_, rank, k);
        Known value = known(std::move(meaning));
        if (load.slot.space == Space::kFrame) value = shared_in_time(rank, k, value, first[load.slot]);
        ledger.write(load.slot, load.microbatch,
                     {.meaning = std::move(value), .type = load.type, .storage = ledger.allocate()});
      });
    }
  }

  /// `shared` where it means the same in this micro-batch as `value` does; made from this load and the next
  /// one of its slot where there is none.
  Known shared_in_time(int32_t rank, size_t k, const Known& value, Known& shared) const {
    const std::vector<Load>& loads = program_.ranks[rank].loads;
    if (!shared && k + 1 < loads.size() && loads[k + 1].slot == loads[k].slot &&
        loads[k + 1].microbatch > loads[k].microbatch)
      shared =
          known(moving_in_time(*value, loads[k].microbatch,
                               load_meaning(rules_, program_, fold_, rank, k + 1), loads[k + 1].microbatch));
    return shared && in_microbatch(*shared, loads[k].microbatch) == *value ? shared : value;
  }

  // --- One event ---

  void happen(const Event& event) {
    const At& at = event.members[0];
    switch (event.kind) {
      case Event::kInstr:
        return happen_instr(at);
      case Event::kCollective:
        return happen_collective(event.members);
      case Event::kReturn:
        for (Slot slot : ranks_[at.rank].leave()) say(at, fmt::format("never drops {}", to_text(slot)));
        return;
      case Event::kFree:
        allowed(at, [&] { ranks_[at.rank].drop(action_at(at).slot, microbatch(at), at); });
        return;
      default:
        allowed(at, [&] { happen_transfer(event, at); });
    }
  }

  struct Parcel {
    Known meaning;
    TypeId type;
    int32_t microbatch = 0;
  };

  void happen_transfer(const Event& event, const At& at) {
    const Action& action = action_at(at);
    Ledger& ledger = ranks_[at.rank];
    if (coordinates(at.rank) != coordinates(action.peer))
      refuse("its peer {} stands for ranks with other coordinates", action.peer);
    if (event.kind == Event::kSend) {
      const Holding& value = ledger.read(action.slot, action.microbatch);
      parcels_[event.transfer] = {value.meaning, value.type, action.microbatch};
      ledger.send(action.slot, action.microbatch);
    } else if (event.kind == Event::kPostReceive) {
      ledger.write(action.slot, action.microbatch,
                   {.type = action.type, .storage = ledger.allocate(), .receiving = true});
    } else if (event.kind == Event::kWaitSend) {
      ledger.sent(action.slot, action.microbatch);
    } else {
      arrive(event, action, ledger);
    }
  }

  void arrive(const Event& event, const Action& action, Ledger& ledger) {
    const Parcel& parcel = parcels_[event.transfer];
    bool alike = action.slot.space == Space::kFrame && action.microbatch == parcel.microbatch;
    ledger.arrive(action.slot, action.microbatch,
                  alike ? parcel.meaning : settled_at(parcel.meaning, parcel.microbatch));
    if (!parcel.type) return;
    TypeId type = ledger.read(action.slot, action.microbatch).type;
    const TensorType &sent = program_[parcel.type], &expected = program_[type];
    if (sent.shape != expected.shape || sent.dtype != expected.dtype)
      refuse("expects {} from rank {}, which sends {}{}", to_text(expected), action.peer, to_text(sent),
             parcel.meaning ? " (" + show(*parcel.meaning) + ")" : "");
  }

  void happen_instr(const At& at) {
    const Instr& instr = instr_at(at);
    Ledger& ledger = ranks_[at.rank];
    ledger.enter(program_[action_at(at).body]);
    if (!allowed(at, [&] { do_instr(at, instr, ledger); })) forget_outputs(at, instr);
    note(at, instr);
    drop_all(at, instr);
  }

  void note(const At& at, const Instr& instr) {
    if (!made_) return;
    for (size_t o = 0; o < instr.out.size(); ++o) {
      if (instr.out[o].index < 0) continue;
      Known known = settled_at(ranks_[at.rank].read(instr.out[o], microbatch(at)).meaning, microbatch(at));
      if (!known || !known->tensor || known->version || known->state >= 0 || known->clipped) continue;
      if (known->addend.complete())
        made_->push_back({at, static_cast<int32_t>(o), known->tensor, somewhere(known->box)});
    }
  }

  // What is the same everywhere is so at the beginning too.
  static Box somewhere(const SpanBox& part) {
    Box box;
    for (const std::vector<Span>& spans : part) {
      std::vector<Interval>& dim = box.emplace_back();
      for (const Span& span : spans)
        dim.push_back(is_anywhere(span) ? Interval{0, span.length()} : Interval{span.begin, span.end});
    }
    return box;
  }

  void forget_outputs(const At& at, const Instr& instr) {
    Ledger& ledger = ranks_[at.rank];
    for (size_t o = 0; o < instr.out.size(); ++o)
      if (instr.out[o].index >= 0)
        ledger.force(
            instr.out[o], microbatch(at),
            {.type = o < instr.types.size() ? instr.types[o] : TypeId{}, .storage = ledger.allocate()});
  }

  void drop_all(const At& at, const Instr& instr) {
    for (Slot slot : instr.drop) allowed(at, [&] { ranks_[at.rank].drop(slot, microbatch(at), at); });
  }

  void do_instr(const At& at, const Instr& instr, Ledger& ledger) {
    std::vector<Holding> in;
    for (Slot slot : instr.in) in.push_back(ledger.read(slot, microbatch(at)));
    settle_lasting(at, instr, in);
    bool all_known =
        std::all_of(in.begin(), in.end(), [](const Holding& value) { return value.meaning != nullptr; });
    if (!all_known) return forget_outputs(at, instr);
    switch (instr.kind) {
      case InstrKind::kCompute:
        return compute(at, instr, in, ledger);
      case InstrKind::kSlice:
        return make(at, instr, ledger,
                    cut_out(rules_, *in[0].meaning, instr.cut,
                            offset_of(instr.begin, instr.steps, coordinates(at.rank)), instr.length));
      case InstrKind::kConcat:
        return concat(at, instr, in, ledger);
      case InstrKind::kZeros:
        return make(at, instr, ledger, {.addend = {.zero = true}});
      case InstrKind::kAdd:
        return add(at, instr, in, ledger);
      case InstrKind::kMove:
        return ledger.write(instr.out[0], microbatch(at), moved(at, in[0]));
      case InstrKind::kCast:
        return make(
            at, instr, ledger,
            cast_to(rules_, *in[0].meaning, program_[in[0].type].dtype, program_[instr.types[0]].dtype));
      case InstrKind::kScale:
        return rename(at, instr, ledger, in[0], remembered(at, known(gradients_.scaled(*in[0].meaning))));
      case InstrKind::kClip:
        return rename(at, instr, ledger, in[0], known(gradients_.clipped(*in[0].meaning, in[1].meaning)));
      case InstrKind::kSquares:
        check_type(rules_, {.squares = {{}}}, program_[in[0].type]);
        return rename(at, instr, ledger, in[0],
                      known(gradients_.with_squares(*in[0].meaning, *in[1].meaning)));
      default:
        return optimize(at, instr, in, ledger);
    }
  }

  // Values of a micro-batch are known for all micro-batches at once, so that each call is looked at once.
  // What lasts longer is of one in particular.
  static Known settled_at(const Known& meaning, int32_t microbatch) {
    if (!meaning || !moves_in_time(*meaning)) return meaning;
    return known(in_microbatch(*meaning, microbatch));
  }

  Known lasting(const At& at, Slot slot, const Known& meaning) const {
    return slot.space == Space::kRank ? settled_at(meaning, microbatch(at)) : meaning;
  }

  /// Runs `rule` on the inputs; where they are not all known for all micro-batches, on those of this one.
  template <class Rule>
  auto at_once_or_now(const At& at, const std::vector<Holding>& in, Rule rule) {
    auto moves = [](const Holding& value) { return moves_in_time(*value.meaning); };
    try {
      return rule(in);
    } catch (const Refused&) {
      if (std::none_of(in.begin(), in.end(), moves)) throw;
    }
    std::vector<Holding> now = in;
    for (Holding& value : now) value.meaning = settled_at(value.meaning, microbatch(at));
    return rule(now);
  }

  void settle_lasting(const At& at, const Instr& instr, std::vector<Holding>& in) const {
    bool lasts = std::any_of(instr.out.begin(), instr.out.end(),
                             [](Slot slot) { return slot.space == Space::kRank && slot.index >= 0; });
    if (!lasts || instr.kind == InstrKind::kCompute) return;
    for (Holding& value : in) value.meaning = settled_at(value.meaning, microbatch(at));
  }

  void concat(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
    std::vector<const Meaning*> pieces;
    for (const Holding& value : in) {
      if (program_[value.type].dtype != program_[instr.types[0]].dtype)
        refuse("joins {} into {}", to_text(program_[value.type]), to_text(program_[instr.types[0]]));
      pieces.push_back(value.meaning.get());
    }
    make(at, instr, ledger, joined(rules_, pieces, instr.cut, instr.pieces));
  }

  /// The same storage under a new name, which nobody is sending.
  static Holding moved(const At& at, Holding value) {
    value.sends = 0;
    value.made = at;
    return value;
  }

  void make(const At& at, const Instr& instr, Ledger& ledger, Meaning meaning) {
    make(at, instr, ledger, remembered(at, known(std::move(meaning))));
  }

  void make(const At& at, const Instr& instr, Ledger& ledger, const Known& meaning) {
    check_type(rules_, *meaning, program_[instr.types[0]]);
    ledger.write(instr.out[0], microbatch(at),
                 {.meaning = meaning, .type = instr.types[0], .storage = ledger.allocate(), .made = at});
  }

  /// Gives the changed storage of `old` its new meaning and name.
  void rename(const At& at, const Instr& instr, Ledger& ledger, const Holding& old, Known meaning) {
    Slot slot = instr.in[std::max(instr.into, 0)];
    ledger.change(old, slot, at);
    Holding value{.meaning = std::move(meaning), .type = old.type, .storage = old.storage, .made = at};
    value.seen = ledger.changes(old.storage);
    ledger.write(instr.out[0], microbatch(at), std::move(value), slot);
  }

  void add(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
    const TensorType &a = program_[in[0].type], &b = program_[in[1].type];
    if (a.shape != b.shape || a.dtype != b.dtype) refuse("adds {} to {}", to_text(b), to_text(a));
    Known sum = at_once_or_now(at, in, [&](const std::vector<Holding>& values) {
      return known(total(instr, *values[0].meaning, *values[1].meaning, a));
    });
    rename(at, instr, ledger, in[0], remembered(at, sum));
  }

  /// What `there` means when `more` is added to it.
  Meaning total(const Instr& instr, const Meaning& there, const Meaning& more, const TensorType& type) const {
    if (!instr.sum) return sum_of(rules_, {&there, &more});
    Meaning a = as_addend(rules_, instr.sum, there, type), b = as_addend(rules_, instr.sum, more, type);
    return sum_of(rules_, {&a, &b});
  }

  void accumulate(const At& at, const Instr& instr, const std::vector<Holding>& in, const Known& made,
                  Ledger& ledger) {
    const Holding& there = in[instr.into];
    const TensorType &type = program_[there.type], &added = program_[instr.types[0]];
    if (type != added) refuse("adds {} to {}", to_text(added), to_text(type));
    for (int k : operands_of(instr))
      if (in[k].storage == there.storage) refuse("reads {}, to which it adds", to_text(instr.in[k]));
    rename(at, instr, ledger, there, known(total(instr, *there.meaning, *made, type)));
  }

  // --- Compute ---

  void compute(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
    const Applied& call = *at_once_or_now(
        at, in, [&](const std::vector<Holding>& values) { return &applied(at, instr, values); });
    if (instr.into >= 0) return accumulate(at, instr, in, lasting(at, instr.out[0], call.out[0]), ledger);
    for (size_t o = 0; o < call.out.size(); ++o) {
      if (instr.out[o].index < 0) continue;
      Holding value{.meaning = lasting(at, instr.out[o], call.out[o]), .type = instr.types[o], .made = at};
      value.storage = instr.view ? in[0].storage : ledger.allocate();
      value.seen = instr.view ? in[0].seen : 0;
      value.overlapping = instr.view && (in[0].overlapping || numel(program_[instr.types[o]].shape) >
                                                                  numel(program_[in[0].type].shape));
      ledger.write(instr.out[o], microbatch(at), std::move(value));
    }
  }

  Applied& last_at(const At& at) {
    std::vector<Applied>& body = applied_[at.rank][action_at(at).body.value];
    if (body.empty()) body.resize(program_[action_at(at).body].instrs.size());
    return body[at.instr];
  }

  /// The same object where an instruction makes the same again, so that what follows can see that.
  Known remembered(const At& at, Known meaning) {
    std::vector<Known>& last = last_at(at).out;
    if (last.empty() || (last[0] != meaning && *last[0] != *meaning)) last = {std::move(meaning)};
    return last[0];
  }

  /// In most micro-batches an op is called on the same.
  const Applied& applied(const At& at, const Instr& instr, const std::vector<Holding>& in) {
    Applied& last = last_at(at);
    bool same = last.in.size() == in.size() && !last.out.empty();
    for (size_t k = 0; same && k < in.size(); ++k)
      same =
          static_cast<int>(k) == instr.into || (last.in[k] == in[k].meaning && last.types[k] == in[k].type);
    if (same) return last;
    std::vector<const TensorType*> out = output_types(instr);
    std::vector<int> operands = operands_of(rules_, instr);
    std::vector<Operand> operand_values;
    for (int k : operands)
      operand_values.push_back({in[k].meaning.get(), &program_[in[k].type], instr.in[k]});
    gradients_.check_scaled(operand_values);
    std::vector<Meaning> meanings = apply(rules_, instr.op, operand_values, out);
    Applied call;
    for (const Holding& value : in) call.in.push_back(value.meaning), call.types.push_back(value.type);
    for (Meaning& meaning : meanings) call.out.push_back(known(std::move(meaning)));
    // Attributes depend on local shapes only.
    std::vector<TypeId>& verified = verified_[action_at(at).body.value][at.instr];
    if (verified.empty() || verified != call.types) check_call(rules_, instr, operands, operand_values, out);
    verified = call.types;
    return last = std::move(call);
  }

  std::vector<const TensorType*> output_types(const Instr& instr) const {
    std::vector<const TensorType*> types;
    const Op& op = model_[instr.op];
    for (size_t o = 0; o < instr.out.size(); ++o) {
      if (!op.outputs[o] && instr.out[o].index >= 0) refuse("keeps output {}, which the op does not make", o);
      if (op.outputs[o] && !instr.types[o]) refuse("does not say the type of output {}", o);
      types.push_back(op.outputs[o] ? &program_[instr.types[o]] : nullptr);
      if (types[o] && types[o]->shape.size() != model_[op.outputs[o]].shape.size())
        refuse("makes {} as {}", model_[op.outputs[o]].name, to_text(*types[o]));
    }
    return types;
  }

  // --- Collectives ---

  void happen_collective(const std::vector<At>& members) {
    for (const At& at : members) ranks_[at.rank].enter(program_[action_at(at).body]);
    if (!allowed(members[0], [&] { do_collective(members); }))
      for (const At& at : members) forget_outputs(at, instr_at(at));
    for (const At& at : members) note(at, instr_at(at)), drop_all(at, instr_at(at));
  }

  void do_collective(const std::vector<At>& members) {
    std::vector<Holding> in;
    for (const At& at : members) in.push_back(read_member(at, members[0].rank));
    // Ranks may meet in different micro-batches; what they bring is then of these alone.
    auto apart = [&](const At& at) { return microbatch(at) != microbatch(members[0]); };
    if (std::any_of(members.begin(), members.end(), apart))
      for (size_t m = 0; m < members.size(); ++m)
        in[m].meaning = settled_at(in[m].meaning, microbatch(members[m]));
    check_alike(members, in);
    bool all_known =
        std::all_of(in.begin(), in.end(), [](const Holding& value) { return value.meaning != nullptr; });
    if (!all_known) {
      for (const At& at : members) forget_outputs(at, instr_at(at));
      return;
    }
    std::vector<Known> after = at_once_or_now(members[0], in, [&](const std::vector<Holding>& values) {
      std::vector<Brought> brought;
      for (size_t m = 0; m < members.size(); ++m)
        brought.push_back(
            {instr_at(members[m]), *values[m].meaning, coordinates(members[m].rank), axes_at(members[m])});
      return collective_of(rules_, brought);
    });
    bool in_place = row_of(instr_at(members[0]).kind).in_place;
    for (size_t m = 0; m < members.size(); ++m) {
      const Instr& instr = instr_at(members[m]);
      Known meaning = remembered(members[m], after[m]);
      if (in_place)
        rename(members[m], instr, ranks_[members[m].rank], in[m], meaning);
      else
        make(members[m], instr, ranks_[members[m].rank], meaning);
    }
  }

  /// The mesh axes that a collective runs along inside of a class.
  const std::vector<int>& axes_at(const At& at) const {
    static const std::vector<int> kAlone;
    return fold_.empty() ? kAlone : fold_.group_axes[at.rank][instr_at(at).group];
  }

  Holding read_member(const At& at, int32_t first) const {
    try {
      std::vector<Holding> in = {ranks_[at.rank].read(instr_at(at).in[0], microbatch(at))};
      settle_lasting(at, instr_at(at), in);
      return in[0];
    } catch (const Refused& refused) {
      if (at.rank == first) throw;
      refuse("at the same time {} {}", place(at), refused.what());
    }
  }

  /// Classes of a group run along the same axes and have the same coordinates on the others.
  bool shares_group(const At& a, const At& b) const {
    if (fold_.empty()) return true;
    const std::vector<Interval>&left = coordinates(a.rank), &right = coordinates(b.rank);
    const std::vector<int>& axes = axes_at(a);
    if (axes != axes_at(b) || left.size() != right.size()) return false;
    for (size_t axis = 0; axis < left.size(); ++axis)
      if (left[axis] != right[axis] &&
          std::find(axes.begin(), axes.end(), static_cast<int>(axis)) == axes.end())
        return false;
    return true;
  }

  /// Members bring tensors of one dtype, and agree on where pieces lie.
  void check_alike(const std::vector<At>& members, const std::vector<Holding>& in) const {
    const Instr& first = instr_at(members[0]);
    for (size_t m = 0; m < members.size(); ++m) {
      const Instr& instr = instr_at(members[m]);
      if (!shares_group(members[m], members[0]))
        refuse("rank {} is in another group than rank {}", members[m].rank, members[0].rank);
      if (instr.cut != first.cut || instr.pieces != first.pieces)
        refuse("rank {} cuts it in another way than rank {}", members[m].rank, members[0].rank);
      if (!in[m].type || !in[0].type || first.kind == InstrKind::kAllGather) continue;
      const TensorType &mine = program_[in[m].type], &theirs = program_[in[0].type];
      if (mine.shape != theirs.shape || mine.dtype != theirs.dtype)
        refuse("rank {} brings {}, rank {} brings {}", members[m].rank, to_text(mine), members[0].rank,
               to_text(theirs));
    }
  }

  // --- The optimizer ---

  void optimize(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger) {
    std::vector<Operand> operands;
    for (size_t k = 0; k < in.size(); ++k)
      operands.push_back({in[k].meaning.get(), &program_[in[k].type], instr.in[k]});
    const Meaning& parameter = *in[0].meaning;
    size_t states = gradients_.check_update(operands);
    if (program_.optimizer.needs_norm()) gradients_.check_norm(in.back().meaning);
    for (size_t k = 2; k < 2 + states; ++k) {
      ledger.change(in[k], instr.in[k], at);
      Meaning state = *in[k].meaning;
      state.version = 1;
      Holding value = in[k];
      value.meaning = known(std::move(state));
      value.seen = ledger.changes(value.storage);
      ledger.write(instr.in[k], microbatch(at), std::move(value), instr.in[k]);
    }
    Meaning updated = parameter;
    updated.version = 1;
    rename(at, instr, ledger, in[0], known(std::move(updated)));
  }

  const Model& model_;
  const Program& program_;
  const Fold& fold_;
  Rules rules_;
  GradientRules gradients_;
  std::vector<std::vector<std::vector<TypeId>>>
      verified_;  // body, instruction: operand types last found right
  std::vector<std::vector<std::vector<Applied>>> applied_;  // rank, body, instruction: what it last did
  std::vector<Ledger> ranks_;
  std::map<int32_t, Parcel> parcels_;
  std::vector<std::string> wrong_;
  std::vector<Made>* made_ = nullptr;
};

}  // namespace

std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program) {
  return certify(model, atoms, program, Fold{});
}

std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program,
                                 const Fold& fold) {
  std::vector<std::string> wrong = check(program, model, fold);
  return wrong.empty() ? Certifier(model, atoms, program, fold).run() : wrong;
}

std::vector<Made> made_by(const Model& model, const Atoms& atoms, const Program& program) {
  std::vector<Made> made;
  Certifier(model, atoms, program, Fold{}).run(&made);
  return made;
}

}  // namespace partita
