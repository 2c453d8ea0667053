#include "certify/certifier.h"
#include "certify/refuse.h"
#include "program/words.h"

namespace partita::certify {
namespace {

/// Runs of a body on one rank that make it worth noting one, and what differs so often is left alone.
constexpr int32_t kFewTimes = 3, kMostMissed = 4;

}  // namespace

void Certifier::begin_body(const At& at) {
  Course& course = courses_[at.rank] = {};
  LastRun& last = last_run(at);
  const Repeat& repeat = repeats_[action_at(at).body.value];
  if (made_ || !wrong_.empty() || !repeat.possible || last.times < kFewTimes || last.missed > kMostMissed)
    return settle_all(at.rank);
  Ledger& ledger = ranks_[at.rank];
  settle(at.rank, repeat.fixed);
  if (last.run && ledger.is_given(repeat, microbatch(at), *last.run)) {
    course.again = last.run.get();
    return;
  }
  settle_all(at.rank);
  ++last.missed;
  auto notes = std::make_unique<BodyRun>();
  if (ledger.begin_run(repeat, microbatch(at), *notes)) course.notes = std::move(notes);
}

// All that the body did so far is in the ledger only now, instruction by instruction; from the meetings it
// takes what it took then, since all their members were as they were then.
void Certifier::look_back(const At& at) {
  Course course = std::exchange(courses_[at.rank], {});
  settle_all(at.rank);
  walker_.skip(at.rank, false);
  const Repeat& repeat = repeats_[action_at(at).body.value];
  auto notes = std::make_unique<BodyRun>();
  if (ranks_[at.rank].begin_run(repeat, microbatch(at), *notes)) courses_[at.rank].notes = std::move(notes);
  size_t stop = 0;
  for (At past = {at.rank, at.action, 0}; past.instr < at.instr; ++past.instr) {
    if (!row_of(instr_at(past).kind).collective) {
      happen_instr(past);
      continue;
    }
    ranks_[at.rank].enter(program_[action_at(at).body]);
    allowed(past, [&] { take(past, read_member(past, at.rank), course.again->meetings[stop]); });
    end_collective(past);
    ++stop;
  }
}

bool Certifier::meet_again(const std::vector<At>& members) {
  auto meeting = [&](const At& at) {
    const Course& course = courses_[at.rank];
    bool apart = microbatch(at) != microbatch(members[0]);
    return course.again && !apart ? course.again->meetings[course.stops].number : -1;
  };
  int64_t first = meeting(members[0]);
  bool same = first >= 0 &&
              std::all_of(members.begin(), members.end(), [&](const At& at) { return meeting(at) == first; });
  for (const At& at : members) {
    if (same) {
      ++courses_[at.rank].stops;
      walker_.skip(at.rank, true);
    } else if (courses_[at.rank].again) {
      look_back(at);
    }
  }
  return same;
}

void Certifier::end_body(const At& at) {
  Course course = std::exchange(courses_[at.rank], {});
  if (course.again) return do_again(at, *course.again);
  for (Slot slot : ranks_[at.rank].leave())
    allowed(at, [&] { refuse(Rule::kLeft, "never drops {}", to_text(slot)); });
  if (!course.notes || !wrong_.empty()) return;
  ranks_[at.rank].end_run(repeats_[action_at(at).body.value], microbatch(at), *course.notes);
  last_run(at).run = std::move(course.notes);
}

// What is added to sums is looked at; it reads nothing of what the others leave, only what they made.
void Certifier::do_again(const At& at, const BodyRun& run) {
  const Repeat& repeat = repeats_[action_at(at).body.value];
  Ledger& ledger = ranks_[at.rank];
  Ledger::Again storages = ledger.begin_again(repeat, microbatch(at));
  if (repeat.only_adds)
    owe(at);
  else
    for (size_t k = 0; k < repeat.adding.size(); ++k)
      add_again({at.rank, at.action, repeat.adding[k]}, run.addends[k], storages);
  ledger.end_again(repeat, microbatch(at), run, at, std::move(storages));
}

void Certifier::add_again(const At& at, const std::vector<Holding>& addends, const Ledger::Again& storages) {
  const Instr& instr = instr_at(at);
  const Repeat& repeat = repeats_[action_at(at).body.value];
  Ledger& ledger = ranks_[at.rank];
  bool right = allowed(at, [&] {
    std::vector<Holding> in;
    in.reserve(instr.in.size());
    size_t next = 0;
    for (Slot slot : instr.in) {
      if (repeat.is_sum(slot)) {
        in.push_back(ledger.read(slot, microbatch(at)));
        continue;
      }
      in.push_back(addends[next++]);
      int32_t number = in.back().storage;
      in.back().storage = number >= 0 ? storages.storages[number] : storages.own;
    }
    do_instr(at, instr, std::move(in), ledger);
  });
  if (!right) forget_outputs(at, instr);
  for (Slot slot : instr.drop)
    if (repeat.is_sum(slot)) allowed(at, [&] { ledger.drop(slot, microbatch(at), at); });
}

void Certifier::note_adding(const At& at, const Instr& instr, const std::vector<Holding>& in) {
  BodyRun* notes = courses_[at.rank].notes.get();
  const Repeat& repeat = repeats_[action_at(at).body.value];
  if (!notes || !repeat.adds(at.instr)) return;
  std::vector<Holding>& addends = notes->addends.emplace_back();
  for (size_t k = 0; k < in.size(); ++k) {
    if (repeat.is_sum(instr.in[k])) continue;
    addends.push_back(in[k]);
    auto found = std::find(notes->storages.begin(), notes->storages.end(), in[k].storage);
    addends.back().storage =
        found == notes->storages.end() ? -1 : static_cast<int32_t>(found - notes->storages.begin());
  }
}

}  // namespace partita::certify
