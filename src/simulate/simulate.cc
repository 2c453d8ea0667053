#include "simulate/simulate.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "program/memory.h"
#include "program/routes.h"
#include "program/tape.h"
#include "program/words.h"
#include "simulate/price.h"

namespace partita {
namespace {

/// All ranks in order of time: whoever is earliest goes on until it has to wait, so that messages reach a
/// shared link in the order in which they really would.
class Simulation {
 public:
  Simulation(const Program& program, const Timing& timing, Contention contention, bool events)
      : program_(program),
        timing_(timing),
        shared_(contention == Contention::kOn),
        routes_(routes_of(program)),
        ranks_(program.ranks.size()),
        tapes_(program.ranks.size()),
        transfers_(routes_.transfers) {
    for (Tape& tape : tapes_) tape.begin(events);
    for (size_t r = 0; r < ranks_.size(); ++r) wake(static_cast<int32_t>(r));
  }

  std::vector<Tape> run() {
    while (!agenda_.empty()) {
      auto [time, order, rank, transfer] = agenda_.top();
      agenda_.pop();
      rank >= 0 ? go_on(rank) : carry(transfers_[transfer]);
    }
    for (size_t r = 0; r < ranks_.size(); ++r)
      CHECK_EQ(static_cast<size_t>(ranks_[r].action), program_.ranks[r].actions.size());
    return std::move(tapes_);
  }

 private:
  struct Rank {
    Picoseconds now = 0;
    int32_t action = 0;
    int32_t instr = -1;  // >= 0: inside a body, at its collective `instr`
    int32_t piece = 0;
    Picoseconds begun = 0, computed = 0;  // of the body that runs
  };
  struct Ends {
    Picoseconds sent = -1, posted = -1, start = 0, end = -1;
    MessageTime takes;
    int32_t from = -1, to = -1, action = -1;
    int32_t waiting[2] = {-1, -1};  // ranks that stand still until it is known when it ends
  };
  struct Meeting {
    size_t arrived = 0;
    Picoseconds start = 0;
  };
  using Due =
      std::tuple<Picoseconds, int64_t, int32_t, int32_t>;  // time, order of coming, rank or -1, transfer

  const RankProgram& program(int32_t rank) const { return program_.ranks[rank]; }

  void wake(int32_t rank) { agenda_.emplace(ranks_[rank].now, coming_++, rank, -1); }

  void go_on(int32_t r) {
    Rank& rank = ranks_[r];
    const std::vector<Action>& actions = program(r).actions;
    while (static_cast<size_t>(rank.action) < actions.size()) {
      const Action& action = actions[rank.action];
      if (action.kind == ActionKind::kRun) return body(r, action);
      if (action.kind == ActionKind::kSend || action.kind == ActionKind::kPostReceive) open(r, action);
      bool waits = action.kind == ActionKind::kWaitSend || action.kind == ActionKind::kWaitReceive;
      if (waits && !wait(r)) return;
      ++rank.action;
    }
    tapes_[r].finish(rank.now);
  }

  void body(int32_t r, const Action& action) {
    Rank& rank = ranks_[r];
    const Body& body = program_[action.body];
    if (rank.instr < 0) {
      rank.begun = rank.now, rank.computed = 0;
      rank.piece = timing_.ranks[r].first[rank.action];
    }
    Picoseconds own = timing_.ranks[r].pieces[rank.piece++];
    rank.now += own;
    rank.computed += own;
    do ++rank.instr;
    while (static_cast<size_t>(rank.instr) < body.instrs.size() &&
           !row_of(body.instrs[rank.instr].kind).collective);
    if (static_cast<size_t>(rank.instr) < body.instrs.size()) return meet(r, body.instrs[rank.instr]);
    tapes_[r].body(rank.action, rank.begun, rank.now, rank.computed);
    rank.instr = -1;
    ++rank.action;
    wake(r);
  }

  // Members of a group meet in the order of their programs, so one meeting of a group is open at a time.
  void meet(int32_t r, const Instr& instr) {
    const std::vector<int32_t>& group = program(r).groups[instr.group];
    Meeting& meeting = meetings_[group];
    meeting.start = std::max(meeting.start, ranks_[r].now);
    if (++meeting.arrived < group.size()) return;
    Picoseconds start = std::exchange(meeting, {}).start;
    // The first member's price is everybody's.
    Picoseconds end = start + timing_.ranks[group[0]].pieces[ranks_[group[0]].piece];
    for (int32_t member : group) {
      Rank& other = ranks_[member];
      tapes_[member].collective(other.action, instr.kind, start, end);
      other.now = end;
      ++other.piece;
      wake(member);
    }
  }

  void open(int32_t r, const Action& action) {
    Ends& ends = transfers_[routes_.transfer[r][ranks_[r].action]];
    if (action.kind == ActionKind::kSend) {
      ends.sent = ranks_[r].now;
      ends.from = r, ends.to = action.peer, ends.action = ranks_[r].action;
      ends.takes = timing_.ranks[r].messages[timing_.ranks[r].first[ends.action]];
    } else {
      ends.posted = ranks_[r].now;
    }
    if (ends.sent >= 0 && ends.posted >= 0)
      agenda_.emplace(std::max(ends.sent, ends.posted), coming_++, -1,
                      static_cast<int32_t>(&ends - transfers_.data()));
  }

  void carry(Ends& ends) {
    ends.start = std::max(ends.sent, ends.posted);
    if (shared_) {
      Picoseconds& free = links_[{ends.from, ends.to}];
      ends.start = std::max(ends.start, free);
      free = ends.start + ends.takes.occupies;
    }
    ends.end = ends.start + ends.takes.occupies + ends.takes.delay;
    tapes_[ends.from].transfer(ends.action, ends.start, ends.end);
    for (int32_t& rank : ends.waiting)
      if (rank >= 0) wake(std::exchange(rank, -1));
  }

  // False: it is not known yet when the message arrives.
  bool wait(int32_t r) {
    Rank& rank = ranks_[r];
    int32_t transfer = routes_.transfer[r][rank.action];
    CHECK(transfer >= 0);
    Ends& ends = transfers_[transfer];
    if (ends.end < 0) {
      ends.waiting[ends.waiting[0] >= 0 ? 1 : 0] = r;
      return false;
    }
    tapes_[r].waited(rank.now, ends.start, ends.end);
    rank.now = std::max(rank.now, ends.end);
    return true;
  }

  const Program& program_;
  const Timing& timing_;
  bool shared_;
  Routes routes_;
  std::vector<Rank> ranks_;
  std::vector<Tape> tapes_;
  std::vector<Ends> transfers_;
  std::map<std::vector<int32_t>, Meeting> meetings_;
  std::map<std::pair<int32_t, int32_t>, Picoseconds> links_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> agenda_;
  int64_t coming_ = 0;
};

// Cores that always find a rank to work for need this long for all of them; a rank that waits leaves its
// core to another, so waiting is hidden first.
void share_cores(int cores, Trace& trace) {
  if (cores == 0 || trace.step_seconds <= 0) return;
  auto ranks = static_cast<double>(trace.peak_bytes.size());
  double stretch = (1 - trace.bubble) * ranks / cores;
  if (stretch <= 1) return;
  trace.step_seconds *= stretch;
  trace.exposed_comm_seconds *= stretch;
  for (TraceEvent& event : trace.events) event.start *= stretch, event.end *= stretch;
}

}  // namespace

Trace simulate(const Program& program, const Timing& timing, Contention contention) {
  return trace_of(program, Simulation(program, timing, contention, true).run(), "simulated");
}

namespace {

void demand_devices(const Cluster& cluster, size_t ranks) {
  if (num_ranks(cluster) < static_cast<int>(ranks))
    input_error(
        "simulate: the program has {} ranks, {} has {} devices; take a larger cluster or another plan", ranks,
        cluster.name, num_ranks(cluster));
}

}  // namespace

Trace simulate(const Model& model, const Program& program, const Prices& prices, Contention contention) {
  demand_devices(prices.cluster(), program.ranks.size());
  Trace trace = simulate(program, price(model, program, prices), contention);
  for (const RankMemory& memory : memory_of(model, program)) trace.peak_bytes.push_back(memory.peak);
  if (contention == Contention::kOn) share_cores(prices.cores(), trace);
  return trace;
}

// A rank speaks to the one with its own coordinates, and meets in groups with ranks of the same classes:
// where all links are alike a class is one rank.
std::optional<Trace> simulate(const Model& model, const Program& program, const Fold& fold,
                              const Prices& prices, Contention contention) {
  if (fold.empty()) {
    Trace trace = simulate(model, program, prices, contention);
    trace.events.clear();
    return trace;
  }
  std::vector<int32_t> classes = classes_by_rank(program, fold);
  demand_devices(prices.cluster(), classes.size());
  std::vector<ClassPlace> places = class_places(program, fold, prices.cluster());
  if (places.empty()) return std::nullopt;
  std::vector<int64_t> ranks;
  for (size_t c = 0; c < places.size(); ++c) ranks.push_back(fold.ranks(static_cast<int32_t>(c)));
  Timing timing = price(model, program, places, prices);
  Trace trace = trace_of(program, Simulation(program, timing, contention, false).run(), "simulated", ranks);
  std::vector<RankMemory> memory = memory_of(model, program);
  for (int32_t one : classes) trace.peak_bytes.push_back(memory[one].peak);
  if (contention == Contention::kOn) share_cores(prices.cores(), trace);
  return trace;
}

}  // namespace partita
