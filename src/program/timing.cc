#include "program/timing.h"

#include "base/error.h"
#include "program/words.h"

namespace partita::program {

int32_t pieces_of(const Body& body) {
  int32_t stops = 0;
  for (const Instr& instr : body.instrs) stops += is_stop(instr.kind);
  return 2 * stops + 1;
}

Timing timing_of(const Program& program, const TimingSource& source) {
  Timing timing;
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    auto rank = static_cast<int32_t>(r);
    RankTiming& times = timing.ranks.emplace_back();
    for (const Action& action : program.ranks[r].actions) {
      bool sends = action.kind == ActionKind::kSend;
      times.first.push_back(static_cast<int32_t>(sends ? times.messages.size() : times.pieces.size()));
      if (sends) times.messages.push_back(source.message(rank, action));
      if (action.kind != ActionKind::kRun) continue;
      source.body(rank, action, times.pieces);
      CHECK_EQ(times.pieces.size() - times.first.back(),
               static_cast<size_t>(pieces_of(program[action.body])));
    }
  }
  return timing;
}

Timing even_timing(const Program& program, const std::function<Seconds(const Body&)>& seconds,
                   MessageTime message) {
  std::vector<Picoseconds> by_body;
  std::vector<int32_t> counts;
  for (const Body& body : program.bodies) {
    by_body.push_back(to_picoseconds(seconds(body)));
    counts.push_back(pieces_of(body));
  }
  auto fill = [&](int32_t, const Action& action, std::vector<Picoseconds>& pieces) {
    pieces.push_back(by_body[action.body.value]);
    pieces.resize(pieces.size() + counts[action.body.value] - 1);
  };
  return timing_of(program, {fill, [&](int32_t, const Action&) { return message; }});
}

}  // namespace partita::program
