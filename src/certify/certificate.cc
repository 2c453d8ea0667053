#include "certify/certificate.h"

#include "certify/certifier.h"
#include "certify/load_meaning.h"
#include "certify/outcome.h"
#include "certify/refuse.h"
#include "program/check.h"
#include "program/span.h"
#include "program/words.h"

namespace partita::certify {
namespace {

constexpr size_t kMaxSentences = 12;  // one fault shows in many places

}  // namespace

Certifier::Certifier(const Model& model, const Atoms& atoms, const Program& program, const Fold& fold)
    : model_(model),
      program_(program),
      fold_(fold),
      rules_(model, atoms),
      gradients_(rules_, program.optimizer),
      verified_(program.bodies.size()),
      applied_(program.ranks.size(), std::vector<std::vector<Applied>>(program.bodies.size())),
      last_runs_(program.ranks.size()),
      courses_(program.ranks.size()),
      walker_(program),
      parcels_(walker_.transfers()) {
  for (const RankProgram& rank : program.ranks) ranks_.emplace_back(rank, program.microbatches);
  for (size_t b = 0; b < program.bodies.size(); ++b) verified_[b].resize(program.bodies[b].instrs.size());
  for (const Body& body : program.bodies) repeats_.push_back(repeat_of(body));
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    owing_.emplace_back(program.ranks[r].rank_slots, -1);
    last_runs_[r].resize(program.bodies.size());
    for (const Action& action : program.ranks[r].actions)
      if (action.kind == ActionKind::kRun) ++last_runs_[r][action.body.value].times;
  }
}

std::vector<std::string> Certifier::run(std::vector<Made>* made) {
  made_ = made;
  try {
    gradients_.check_scale();
  } catch (const Refused& refused) {
    return {fmt::format("the program {}", refused.what())};
  }
  for (size_t r = 0; r < ranks_.size(); ++r) load(static_cast<int32_t>(r));
  while (const Event* event = walker_.next()) {
    happen(*event);
    if (wrong_.size() >= kMaxSentences) return std::move(wrong_);
  }
  for (size_t r = 0; r < ranks_.size(); ++r) settle_all(static_cast<int32_t>(r));
  std::string story = walker_.story();
  if (!story.empty() && in_force(Rule::kDeadlock)) wrong_.push_back("deadlock: " + story);
  return wrong_.empty() ? check_outcome(rules_, program_, fold_, ranks_) : std::move(wrong_);
}

std::string Certifier::place(const At& at) const {
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

void Certifier::say(const At& at, std::string_view sentence) {
  wrong_.push_back(fmt::format("{}: {}", place(at), sentence));
}

const std::vector<Interval>& Certifier::coordinates(int32_t rank) const {
  static const std::vector<Interval> kAlone;
  return fold_.empty() ? kAlone : fold_.classes[rank].coordinates;
}

void Certifier::load(int32_t rank) {
  Ledger& ledger = ranks_[rank];
  std::map<Slot, Known> first;  // what moves evenly with the micro-batches is one meaning
  std::map<std::pair<TensorId, int32_t>, std::vector<std::pair<Known, int32_t>>> lasting;
  for (size_t k = 0; k < program_.ranks[rank].loads.size(); ++k) {
    const Load& load = program_.ranks[rank].loads[k];
    allowed({rank, -1, -1}, [&] {
      Meaning meaning = load_meaning(rules_, program_, fold_, rank, k);
      Known value = known(std::move(meaning));
      int32_t storage = model_[load.tensor].role == Role::kBatchInput
                            ? ledger.allocate()
                            : lasting_storage(ledger, lasting[{load.tensor, load.state}], value);
      if (load.slot.space == Space::kFrame) value = shared_in_time(rank, k, value, first[load.slot]);
      ledger.write(load.slot, load.microbatch,
                   {.meaning = std::move(value), .type = load.type, .storage = storage});
    });
  }
}

// The next step begins with one value of a part, which all slots that load it share.
int32_t Certifier::lasting_storage(Ledger& ledger, std::vector<std::pair<Known, int32_t>>& seen,
                                   const Known& value) const {
  for (const auto& [other, storage] : seen)
    if (in_force(Rule::kOneStorage) && other->box == value->box) return storage;
  return seen.emplace_back(value, ledger.allocate()).second;
}

Known Certifier::shared_in_time(int32_t rank, size_t k, const Known& value, Known& shared) const {
  const std::vector<Load>& loads = program_.ranks[rank].loads;
  if (!shared && k + 1 < loads.size() && loads[k + 1].slot == loads[k].slot &&
      loads[k + 1].microbatch > loads[k].microbatch)
    shared =
        known(moving_in_time(*value, loads[k].microbatch, load_meaning(rules_, program_, fold_, rank, k + 1),
                             loads[k + 1].microbatch));
  return shared && in_microbatch(*shared, loads[k].microbatch) == *value ? shared : value;
}

void Certifier::happen(const Event& event) {
  const At& at = event.members[0];
  for (const At& member : event.members)
    if (member.instr == 0) begin_body(member);
  switch (event.kind) {
    case Event::kInstr:
      return courses_[at.rank].again ? walker_.skip(at.rank, true) : happen_instr(at);
    case Event::kCollective:
      if (!meet_again(event.members)) happen_collective(event.members);
      return;
    case Event::kReturn:
      return end_body(at);
    case Event::kFree:
      settle(at.rank, {action_at(at).slot});
      allowed(at, [&] { ranks_[at.rank].drop(action_at(at).slot, microbatch(at), at); });
      return;
    default:
      settle(at.rank, {action_at(at).slot});
      allowed(at, [&] { happen_transfer(event, at); });
  }
}

void Certifier::happen_transfer(const Event& event, const At& at) {
  const Action& action = action_at(at);
  Ledger& ledger = ranks_[at.rank];
  if (coordinates(at.rank) != coordinates(action.peer))
    refuse(Rule::kClasses, "its peer {} stands for ranks with other coordinates", action.peer);
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

void Certifier::arrive(const Event& event, const Action& action, Ledger& ledger) {
  const Parcel& parcel = parcels_[event.transfer];
  bool alike = action.slot.space == Space::kFrame && action.microbatch == parcel.microbatch;
  ledger.arrive(action.slot, action.microbatch,
                alike ? parcel.meaning : settled_at(parcel.meaning, parcel.microbatch));
  if (!parcel.type) return;
  TypeId type = ledger.read(action.slot, action.microbatch).type;
  const TensorType &sent = program_[parcel.type], &expected = program_[type];
  if (sent != expected)
    refuse(Rule::kOneType, "expects {} from rank {}, which sends {}{}{}", to_text(expected), action.peer,
           to_text(sent),
           sent.shape == expected.shape && sent.dtype == expected.dtype ? " with other strides" : "",
           parcel.meaning ? " (" + show(*parcel.meaning) + ")" : "");
}

void Certifier::note(const At& at, const Instr& instr) {
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
Box Certifier::somewhere(const SpanBox& part) {
  Box box;
  for (const std::vector<Span>& spans : part) {
    std::vector<Interval>& dim = box.emplace_back();
    for (const Span& span : spans)
      dim.push_back(is_anywhere(span) ? Interval{0, span.length()} : Interval{span.begin, span.end});
  }
  return box;
}

void Certifier::forget_outputs(const At& at, const Instr& instr) {
  Ledger& ledger = ranks_[at.rank];
  for (size_t o = 0; o < instr.out.size(); ++o)
    if (instr.out[o].index >= 0)
      ledger.force(
          instr.out[o], microbatch(at),
          {.type = o < instr.types.size() ? instr.types[o] : TypeId{}, .storage = ledger.allocate()});
}

void Certifier::drop_all(const At& at, const Instr& instr) {
  for (Slot slot : instr.drop) allowed(at, [&] { ranks_[at.rank].drop(slot, microbatch(at), at); });
}

std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program) {
  return certify(model, atoms, program, Fold{});
}

std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program,
                                 const Fold& fold) {
  std::vector<std::string> wrong = check(program, model, fold);
  if (!wrong.empty() && in_force(Rule::kWellFormed)) return wrong;
  return Certifier(model, atoms, program, fold).run();
}

std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program,
                                 const OptimizerSpec& optimizer, const Fold& fold) {
  if (program.optimizer == optimizer || !in_force(Rule::kPlanNumbers))
    return certify(model, atoms, program, fold);
  auto show = [](const OptimizerSpec& spec) {
    return optimizer_json(spec).dump() + " " + precision_json(spec.precision).dump();
  };
  return {fmt::format("the program updates by {}, its plan by {}", show(program.optimizer), show(optimizer))};
}

std::vector<Made> made_by(const Model& model, const Atoms& atoms, const Program& program) {
  std::vector<Made> made;
  Certifier(model, atoms, program, Fold{}).run(&made);
  return made;
}

}  // namespace partita::certify
