// The kernel's walk looks at every instruction of every micro-batch. Most of them are what they were in the
// micro-batch before, and on a large plan that is nearly all of the time. The driver remembers: it sends the
// same events through the same functions of the kernel, and leaves out those whose outcome follows from one
// that it has seen. Whatever does not fit makes it look, and whatever is refused makes it give up.
#include "certify/memo/driver.h"

#include <algorithm>
#include <utility>

#include "certify/kernel/meeting.h"
#include "certify/kernel/put.h"
#include "program/words.h"

namespace partita::certify {
namespace {

/// Runs of a body on one rank that make it worth noting one, and what differs so often is left alone.
constexpr int32_t kFewTimes = 3, kMostMissed = 4;

std::vector<Repeat> repeats_of(const Program& program) {
  std::vector<Repeat> out;
  for (const Body& body : program.bodies) out.push_back(repeat_of(body));
  return out;
}

}  // namespace

Driver::Driver(const Given& given)
    : given_(given),
      walker_(given.program),
      state_(given, walker_.transfers()),
      calls_(given),
      repeats_(repeats_of(given.program)),
      sums_(given, repeats_, state_, calls_),
      sent_in_(walker_.transfers()) {
  for (size_t r = 0; r < state_.ranks.size(); ++r) {
    Rank& rank = ranks_.emplace_back(Rank{.replay = Replay(state_.ranks[r])});
    rank.runs.resize(given.program.bodies.size());
    for (const Action& action : given.program.ranks[r].actions)
      if (action.kind == ActionKind::kRun) ++rank.runs[action.body.value].times;
  }
}

bool Driver::accepts() {
  try {
    return goes_well();
  } catch (const Refused&) {
    return false;
  } catch (const Unsure&) {
    return false;
  }
}

bool Driver::goes_well() {
  given_.gradients.check_scale();
  load_all(given_, state_);
  if (!state_.wrong.empty()) return false;
  for (size_t r = 0; r < ranks_.size(); ++r) share_in_time(given_, static_cast<int32_t>(r), state_.ranks[r]);
  while (const Event* event = walker_.next()) {
    happen(*event);
    if (!state_.wrong.empty()) return false;
  }
  for (size_t r = 0; r < ranks_.size(); ++r) sums_.settle_all(static_cast<int32_t>(r));
  return end_step(given_, state_, walker_).empty();
}

void Driver::happen(const Event& event) {
  const At& at = event.members[0];
  for (const At& member : event.members)
    if (member.instr == 0) begin_body(member);
  switch (event.kind) {
    case Event::kInstr:
      return course(at).again ? walker_.skip(at.rank, true) : look_at(at);
    case Event::kCollective:
      if (!meet_again(event.members)) meet(event.members);
      return;
    case Event::kReturn:
      return end_body(event, at);
    default:
      return act(event, at);
  }
}

// What arrives in another micro-batch, or lasts longer than one, is of the one in which it was sent.
void Driver::act(const Event& event, const At& at) {
  const Action& action = given_.action(at);
  sums_.settle(at.rank, {action.slot});
  if (event.kind == Event::kSend) sent_in_[event.transfer] = action.microbatch;
  if (event.kind == Event::kWaitReceive) {
    int32_t sent = sent_in_[event.transfer];
    Known& meaning = state_.parcels[event.transfer].meaning;
    if (action.slot.space != Space::kFrame || action.microbatch != sent) meaning = settled_at(meaning, sent);
  }
  certify::happen(given_, state_, event);
}

void Driver::begin_body(const At& at) {
  Rank& rank = ranks_[at.rank];
  rank.course = {};
  LastRun& last = last_run(at);
  if (!repeat(at).possible || last.times < kFewTimes || last.missed > kMostMissed)
    return sums_.settle_all(at.rank);
  sums_.settle(at.rank, repeat(at).fixed);
  if (last.run && rank.replay.is_given(repeat(at), given_.microbatch(at), *last.run)) {
    rank.course.again = last.run.get();
    return;
  }
  sums_.settle_all(at.rank);
  ++last.missed;
  auto notes = std::make_unique<BodyRun>();
  if (rank.replay.begin_run(repeat(at), given_.microbatch(at), *notes)) rank.course.notes = std::move(notes);
}

// All that the body did so far is in the ledger only now, instruction by instruction; from the meetings it
// takes what it took then, since all their members were as they were then.
void Driver::look_back(const At& at) {
  Rank& rank = ranks_[at.rank];
  Course past_course = std::exchange(rank.course, {});
  sums_.settle_all(at.rank);
  walker_.skip(at.rank, false);
  auto notes = std::make_unique<BodyRun>();
  if (rank.replay.begin_run(repeat(at), given_.microbatch(at), *notes)) rank.course.notes = std::move(notes);
  size_t stop = 0;
  for (At past = {at.rank, at.action, 0}; past.instr < at.instr; ++past.instr) {
    if (!row_of(given_.instr(past).kind).collective) {
      look_at(past);
      continue;
    }
    state_.ranks[at.rank].enter(given_.body(at));
    take_home(past, read(past, at.rank), past_course.again->meetings[stop++]);
    end_instr(given_, state_, past);
  }
}

bool Driver::meet_again(const std::vector<At>& members) {
  auto meeting = [&](const At& at) {
    bool apart = given_.microbatch(at) != given_.microbatch(members[0]);
    return course(at).again && !apart ? course(at).again->meetings[course(at).stops].number : -1;
  };
  int64_t first = meeting(members[0]);
  bool same = first >= 0 &&
              std::all_of(members.begin(), members.end(), [&](const At& at) { return meeting(at) == first; });
  for (const At& at : members) {
    if (same) {
      ++course(at).stops;
      walker_.skip(at.rank, true);
    } else if (course(at).again) {
      look_back(at);
    }
  }
  return same;
}

void Driver::end_body(const Event& event, const At& at) {
  Course done = std::exchange(course(at), {});
  if (done.again) return do_again(at, *done.again);
  certify::happen(given_, state_, event);
  if (!done.notes) return;
  ranks_[at.rank].replay.end_run(repeat(at), given_.microbatch(at), *done.notes);
  last_run(at).run = std::move(done.notes);
}

void Driver::do_again(const At& at, const BodyRun& run) {
  Replay& replay = ranks_[at.rank].replay;
  Replay::Again storages = replay.begin_again(repeat(at), given_.microbatch(at));
  if (repeat(at).only_adds)
    sums_.owe(at, run);
  else
    sums_.add(at, run, storages);
  replay.end_again(repeat(at), given_.microbatch(at), run, at, std::move(storages));
}

void Driver::look_at(const At& at) {
  const Instr& instr = given_.instr(at);
  Ledger& ledger = state_.ranks[at.rank];
  ledger.enter(given_.body(at));
  if (instr.kind == InstrKind::kWait) {
    ledger.finish(instr.in[0], given_.microbatch(at));
  } else {
    std::vector<Holding> in = read_inputs(given_, at, ledger);
    need_known(in);
    note_adding(at, in);
    Answer answer = calls_.make(at, in);
    put(given_, at, in, answer.made, ledger);
    if (answer.of_now && !repeat(at).adds(at.instr)) course(at).notes.reset();
  }
  end_instr(given_, state_, at);
}

void Driver::note_adding(const At& at, const std::vector<Holding>& in) {
  BodyRun* notes = course(at).notes.get();
  if (!notes || !repeat(at).adds(at.instr)) return;
  std::vector<Holding>& addends = notes->addends.emplace_back();
  for (size_t k = 0; k < in.size(); ++k) {
    if (repeat(at).is_sum(given_.instr(at).in[k])) continue;
    addends.push_back(in[k]);
    auto found = std::find(notes->storages.begin(), notes->storages.end(), in[k].storage);
    addends.back().storage =
        found == notes->storages.end() ? -1 : static_cast<int32_t>(found - notes->storages.begin());
  }
}

Holding Driver::read(const At& member, int32_t first) const {
  Holding in = read_member(given_, member, first, state_.ranks[member.rank]);
  if (lasts(given_.instr(member))) in.meaning = settled_at(in.meaning, given_.microbatch(member));
  return in;
}

void Driver::take_home(const At& at, const Holding& in, const Meeting& meeting) {
  take(given_, at, in, meeting.made, state_.ranks[at.rank]);
  if (course(at).notes) course(at).notes->meetings.push_back(meeting);
}

// Ranks may meet in different micro-batches; what they bring is then of these alone.
void Driver::meet(const std::vector<At>& members) {
  ++meetings_;
  int32_t microbatch = given_.microbatch(members[0]);
  std::vector<Holding> in;
  bool apart = false;
  for (const At& at : members) {
    state_.ranks[at.rank].enter(given_.body(at));
    in.push_back(read(at, members[0].rank));
    apart = apart || given_.microbatch(at) != microbatch;
  }
  for (size_t m = 0; apart && m < members.size(); ++m)
    in[m].meaning = settled_at(in[m].meaning, given_.microbatch(members[m]));
  check_alike(given_, members, in);
  need_known(in);
  Answer answer = at_once_or_now(
      in, microbatch, [&](const std::vector<Holding>& values) { return met(given_, members, values); });
  for (size_t m = 0; m < members.size(); ++m)
    take_home(members[m], in[m], {meetings_, calls_.remembered(members[m], answer.made[m])});
  for (const At& at : members) {
    if (apart || answer.of_now) course(at).notes.reset();
    end_instr(given_, state_, at);
  }
}

}  // namespace partita::certify
