#include "program/tape.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/words.h"

namespace partita::program {

void Tape::begin(bool keep) {
  keep_ = keep;
  computed_ = communicated_ = hidden_ = finished_ = 0;
  marks_.clear();
}

void Tape::body(int32_t action, Picoseconds start, Picoseconds end, Picoseconds computed) {
  computed_ += computed;
  if (keep_) marks_.push_back({kBody, InstrKind::kCompute, action, start, end});
}

void Tape::collective(int32_t action, InstrKind kind, const Held& held) {
  communicated_ += held.end - held.ready;
  if (keep_) marks_.push_back({kCollective, kind, action, held.start, held.end});
}

void Tape::started(int32_t action, InstrKind kind, int32_t group, const Held& held) {
  hidden_ += held.end - held.start;
  if (keep_) marks_.push_back({kStarted, kind, action, held.start, held.end, group});
}

void Tape::waited_started(Picoseconds from, const Held& held) {
  if (held.end <= from) return;
  communicated_ += held.end - std::max(from, held.ready);
  hidden_ -= held.end - std::max(from, held.start);
}

void Tape::transfer(int32_t action, Picoseconds start, Picoseconds end) {
  if (keep_) marks_.push_back({kTransfer, InstrKind::kCompute, action, start, end});
}

void Tape::waited(Picoseconds from, Picoseconds begun, Picoseconds end) {
  if (end > from) communicated_ += end - std::max(from, begun);
}

TraceEvent Tape::event(const Program& program, int32_t rank, const Mark& mark) const {
  const Action& action = program.ranks[rank].actions[mark.action];
  TraceEvent event{rank, "", "", to_seconds(mark.start), to_seconds(mark.end)};
  if (mark.stream == kBody) {
    event.stream = "compute";
    event.name = program[action.body].name;
    if (program.microbatches > 1) event.name += fmt::format(" {}", action.microbatch);
  } else if (mark.stream == kCollective) {
    event.stream = "collective";
    event.name = row_of(mark.kind).name;
  } else if (mark.stream == kStarted) {
    event.stream = fmt::format("collective, group {}", mark.group);
    event.name = row_of(mark.kind).name;
  } else {
    event.stream = fmt::format("to {}, tag {}", action.peer, action.tag);
    event.name = fmt::format("{} {}", to_text(action.slot), action.microbatch);
  }
  return event;
}

Trace trace_of(const Program& program, const std::vector<Tape>& tapes, std::string_view clock,
               const std::vector<int64_t>& ranks) {
  Trace trace{.clock = std::string(clock)};
  // Of thousands of ranks: more than picoseconds can count.
  double computed = 0, communicated = 0, hidden = 0, count = 0;
  Picoseconds end = 0;
  for (size_t r = 0; r < tapes.size(); ++r) {
    const Tape& tape = tapes[r];
    double times = ranks.empty() ? 1 : static_cast<double>(ranks[r]);
    computed += times * static_cast<double>(tape.computed_);
    communicated += times * static_cast<double>(tape.communicated_);
    hidden += times * static_cast<double>(tape.hidden_);
    count += times;
    end = std::max(end, tape.finished_);
    std::vector<Tape::Mark> marks = tape.marks_;
    std::stable_sort(marks.begin(), marks.end(),
                     [](const Tape::Mark& a, const Tape::Mark& b) { return a.start < b.start; });
    for (const Tape::Mark& mark : marks)
      trace.events.push_back(tape.event(program, static_cast<int32_t>(r), mark));
  }
  trace.step_seconds = to_seconds(end);
  trace.exposed_comm_seconds = communicated / 1e12 / count;
  trace.hidden_comm_seconds = hidden / 1e12 / count;
  double all = static_cast<double>(end) * count;
  trace.bubble = all > 0 ? std::max(0.0, 1 - (computed + communicated) / all) : 0;
  return trace;
}

}  // namespace partita::program
