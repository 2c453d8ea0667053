// The walk keeps nothing but what is there: a value per slot, parcels on their way, sentences. So every line
// of it says what one event does, and none what an earlier one has shown already.
#include "certify/kernel/walk.h"

#include "certify/kernel/instruction.h"
#include "certify/kernel/load.h"
#include "certify/kernel/meeting.h"
#include "certify/kernel/outcome.h"
#include "certify/kernel/put.h"
#include "program/words.h"

namespace partita::certify {
namespace {

void do_instr(const Given& given, const At& at, Ledger& ledger) {
  const Instr& instr = given.instr(at);
  if (instr.kind == InstrKind::kWait) return ledger.finish(instr.in[0], given.microbatch(at));
  std::vector<Holding> in = read_inputs(given, at, ledger);
  if (!all_known(in)) return forget_outputs(given, at, ledger);
  std::vector<Known> made = made_of(given, at, in);
  if (Known norm = norm_read(given, instr, in)) given.gradients.check_norm(*norm);
  put(given, at, in, made, ledger);
}

void happen_instr(const Given& given, State& state, const At& at, const Watch& watch) {
  Ledger& ledger = state.ranks[at.rank];
  ledger.enter(given.body(at));
  if (!allowed(given, state, at, [&] { do_instr(given, at, ledger); })) forget_outputs(given, at, ledger);
  if (watch) watch(at, ledger);
  end_instr(given, state, at);
}

void forget_all(const Given& given, const std::vector<At>& members, State& state) {
  for (const At& at : members) forget_outputs(given, at, state.ranks[at.rank]);
}

void do_collective(const Given& given, const std::vector<At>& members, State& state) {
  std::vector<Holding> in;
  for (const At& at : members) in.push_back(read_member(given, at, members[0].rank, state.ranks[at.rank]));
  check_alike(given, members, in);
  if (!all_known(in)) return forget_all(given, members, state);
  std::vector<Known> made = met(given, members, in);
  for (size_t m = 0; m < members.size(); ++m)
    take(given, members[m], in[m], made[m], state.ranks[members[m].rank]);
}

void happen_collective(const Given& given, State& state, const std::vector<At>& members, const Watch& watch) {
  for (const At& at : members) state.ranks[at.rank].enter(given.body(at));
  if (!allowed(given, state, members[0], [&] { do_collective(given, members, state); }))
    forget_all(given, members, state);
  for (const At& at : members) {
    if (watch) watch(at, state.ranks[at.rank]);
    end_instr(given, state, at);
  }
}

void happen_return(const Given& given, State& state, const At& at) {
  for (Slot slot : state.ranks[at.rank].leave())
    allowed(given, state, at, [&] { refuse(Rule::kLeft, "never drops {}", to_text(slot)); });
}

void arrive(const Given& given, const Action& action, const Parcel& parcel, Ledger& ledger) {
  ledger.arrive(action.slot, action.microbatch, parcel.meaning);
  if (!parcel.type) return;
  TypeId type = ledger.read(action.slot, action.microbatch).type;
  const TensorType &sent = given.type(parcel.type), &expected = given.type(type);
  if (sent != expected)
    refuse(Rule::kOneType, "expects {} from rank {}, which sends {}{}{}", to_text(expected), action.peer,
           to_text(sent),
           sent.shape == expected.shape && sent.dtype == expected.dtype ? " with other strides" : "",
           parcel.meaning ? " (" + given.show(*parcel.meaning) + ")" : "");
}

void happen_transfer(const Given& given, State& state, const Event& event, const At& at) {
  const Action& action = given.action(at);
  Ledger& ledger = state.ranks[at.rank];
  if (given.coordinates(at.rank) != given.coordinates(action.peer))
    refuse(Rule::kClasses, "its peer {} stands for ranks with other coordinates", action.peer);
  if (event.kind == Event::kSend) {
    const Holding& value = ledger.read(action.slot, action.microbatch);
    state.parcels[event.transfer] = {value.meaning, value.type};
    ledger.send(action.slot, action.microbatch);
  } else if (event.kind == Event::kPostReceive) {
    ledger.write(action.slot, action.microbatch,
                 {.type = action.type, .storage = ledger.allocate(), .receiving = true});
  } else if (event.kind == Event::kWaitSend) {
    ledger.sent(action.slot, action.microbatch);
  } else {
    arrive(given, action, state.parcels[event.transfer], ledger);
  }
}

}  // namespace

State::State(const Given& given, int32_t transfers) : parcels(transfers) {
  for (const RankProgram& rank : given.program.ranks) ranks.emplace_back(rank, given.program.microbatches);
}

void load_all(const Given& given, State& state) {
  for (size_t r = 0; r < state.ranks.size(); ++r) {
    int32_t rank = static_cast<int32_t>(r);
    Loading loading(given, rank, state.ranks[r]);
    for (size_t k = 0; k < given.program.ranks[r].loads.size(); ++k)
      allowed(given, state, {rank, -1, -1}, [&] { loading.load(k); });
  }
}

void happen(const Given& given, State& state, const Event& event, const Watch& watch) {
  const At& at = event.members[0];
  switch (event.kind) {
    case Event::kInstr:
      return happen_instr(given, state, at, watch);
    case Event::kCollective:
      return happen_collective(given, state, event.members, watch);
    case Event::kReturn:
      return happen_return(given, state, at);
    case Event::kFree:
      allowed(given, state, at,
              [&] { state.ranks[at.rank].drop(given.action(at).slot, given.microbatch(at), at); });
      return;
    default:
      allowed(given, state, at, [&] { happen_transfer(given, state, event, at); });
  }
}

void end_instr(const Given& given, State& state, const At& at) {
  const Instr& instr = given.instr(at);
  Ledger& ledger = state.ranks[at.rank];
  if (instr.later && row_of(instr.kind).collective)
    allowed(given, state, at, [&] { ledger.start(instr.in[0], instr.out[0], given.microbatch(at)); });
  for (Slot slot : instr.drop)
    allowed(given, state, at, [&] { ledger.drop(slot, given.microbatch(at), at); });
}

std::vector<std::string> end_step(const Given& given, State& state, const Walker& walker) {
  std::string story = walker.story();
  if (!story.empty() && in_force(Rule::kDeadlock)) state.wrong.push_back("deadlock: " + story);
  return state.wrong.empty() ? check_outcome(given, state.ranks) : std::move(state.wrong);
}

std::vector<std::string> walk(const Given& given, const Watch& watch) {
  try {
    given.gradients.check_scale();
  } catch (const Refused& refused) {
    return {fmt::format("the program {}", refused.what())};
  }
  Walker walker(given.program);
  State state(given, walker.transfers());
  load_all(given, state);
  while (const Event* event = walker.next()) {
    happen(given, state, *event, watch);
    if (state.wrong.size() >= kMaxSentences) return std::move(state.wrong);
  }
  return end_step(given, state, walker);
}

}  // namespace partita::certify
