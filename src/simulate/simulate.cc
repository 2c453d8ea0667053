#include "simulate/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "program/effects.h"
#include "program/memory.h"
#include "program/routes.h"
#include "program/tape.h"
#include "simulate/price.h"

namespace partita::simulate {
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
    for (size_t r = 0; r < ranks_.size(); ++r) take_seats(static_cast<int32_t>(r));
    for (size_t r = 0; r < ranks_.size(); ++r) wake(static_cast<int32_t>(r));
  }

  std::vector<Tape> run() {
    while (!agenda_.empty()) {
      check_interrupt();
      auto [time, order, what, index] = agenda_.top();
      agenda_.pop();
      if (what == kRank) go_on(index);
      if (what == kTransfer) carry(transfers_[index]);
      if (what == kMeeting) hold(clubs_[index]);
    }
    for (size_t r = 0; r < ranks_.size(); ++r)
      CHECK_EQ(static_cast<size_t>(ranks_[r].action), program_.ranks[r].actions.size());
    return std::move(tapes_);
  }

 private:
  /// The output of a collective that was started, and its micro-batch.
  using Ticket = std::pair<Slot, int32_t>;
  struct Flight {
    Tape::Held held = {.end = -1};
    bool awaited = false;  // the rank stands still until it is known when it ends
  };
  /// A rank's place in a group.
  struct Seat {
    int32_t club = 0;
    size_t member = 0;
  };
  struct Rank {
    Picoseconds now = 0;
    int32_t action = 0;
    int32_t instr = -1;  // >= 0: inside a body, at its stop `instr`
    int32_t piece = 0;
    Picoseconds begun = 0, computed = 0;  // of the body that runs
    std::vector<Seat> seats;              // by group
    std::map<Ticket, Flight> flights;     // started and not waited for
    std::map<int32_t, Picoseconds> free;  // by level of links: when its collectives on it are over
  };
  struct Ends {
    Picoseconds sent = -1, posted = -1, start = 0, end = -1;
    MessageTime takes;
    int32_t from = -1, to = -1, action = -1;
    int32_t waiting[2] = {-1, -1};  // ranks that stand still until it is known when it ends
  };
  /// What a member brings to a collective.
  struct Call {
    int32_t action = -1, group = -1;
    bool later = false;
    Ticket ticket;
  };
  struct Meeting {
    InstrKind kind;
    std::vector<Call> calls;  // by member
    size_t arrived = 0;
    Picoseconds ready = 0, takes = 0;
  };
  /// The members of a group. They come to its meetings in the order of their programs; whoever only starts
  /// may come to several before the others come to the first.
  struct Club {
    std::vector<int32_t> ranks;
    std::vector<size_t> come;  // by member: meetings so far
    std::deque<Meeting> open;
    size_t over = 0;
    int32_t level = 0;
    Picoseconds free = 0;
  };
  enum What : uint8_t { kRank, kTransfer, kMeeting };
  using Due = std::tuple<Picoseconds, int64_t, What, int32_t>;  // time, order of coming, what, which

  const RankProgram& program(int32_t rank) const { return program_.ranks[rank]; }

  void wake(int32_t rank) { agenda_.emplace(ranks_[rank].now, coming_++, kRank, rank); }

  void take_seats(int32_t r) {
    const std::vector<int32_t>& levels = timing_.ranks[r].levels;
    for (const std::vector<int32_t>& group : program(r).groups) {
      auto [known, fresh] = club_of_.try_emplace(group, static_cast<int32_t>(clubs_.size()));
      size_t number = ranks_[r].seats.size();
      if (fresh)
        clubs_.push_back({.ranks = group,
                          .come = std::vector<size_t>(group.size()),
                          .level = number < levels.size() ? levels[number] : 0});
      auto member = std::find(group.begin(), group.end(), r) - group.begin();
      ranks_[r].seats.push_back({known->second, static_cast<size_t>(member)});
    }
  }

  void go_on(int32_t r) {
    Rank& rank = ranks_[r];
    const std::vector<Action>& actions = program(r).actions;
    while (static_cast<size_t>(rank.action) < actions.size()) {
      const Action& action = actions[rank.action];
      if (action.kind == ActionKind::kRun) return body(r, action);
      const ActionRow& row = row_of(action.kind);
      if (row.begins) open(r, action);
      if (row.talks && !row.begins && !wait(r)) return;
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
    while (static_cast<size_t>(rank.instr) < body.instrs.size() && !is_stop(body.instrs[rank.instr].kind));
    if (static_cast<size_t>(rank.instr) < body.instrs.size()) return stop(r, body.instrs[rank.instr]);
    tapes_[r].body(rank.action, rank.begun, rank.now, rank.computed);
    rank.instr = -1;
    ++rank.action;
    wake(r);
  }

  Ticket ticket(int32_t r, Slot slot) const {
    return {slot, slot.space == Space::kFrame ? program(r).actions[ranks_[r].action].microbatch : 0};
  }

  void stop(int32_t r, const Instr& instr) {
    Rank& rank = ranks_[r];
    Picoseconds takes = timing_.ranks[r].pieces[rank.piece++];
    if (effects(instr).waits) return land(r, ticket(r, instr.in[0]));
    come(r, instr, takes);
    if (instr.later) wake(r);
  }

  void come(int32_t r, const Instr& instr, Picoseconds takes) {
    Rank& rank = ranks_[r];
    auto [number, member] = rank.seats[instr.group];
    Club& club = clubs_[number];
    size_t place = club.come[member]++ - club.over;
    if (place == club.open.size()) club.open.push_back({instr.kind, std::vector<Call>(club.ranks.size())});
    Meeting& meeting = club.open[place];
    meeting.calls[member] = {rank.action, instr.group, instr.later, ticket(r, instr.out[0])};
    if (instr.later) rank.flights[meeting.calls[member].ticket] = {};
    meeting.ready = std::max(meeting.ready, rank.now);
    if (member == 0) meeting.takes = takes;  // the first member's price is everybody's
    if (++meeting.arrived == club.ranks.size()) agenda_.emplace(meeting.ready, coming_++, kMeeting, number);
  }

  // Collectives of a group follow each other. Where links are shared, so do all of a rank that use the same
  // level of them: each has the link for itself as long as it lasts.
  void hold(Club& club) {
    Meeting meeting = std::move(club.open.front());
    club.open.pop_front();
    ++club.over;
    auto free = [&](int32_t r) -> Picoseconds& { return shared_ ? ranks_[r].free[club.level] : club.free; };
    Tape::Held held{.ready = meeting.ready, .start = meeting.ready};
    for (int32_t r : club.ranks) held.start = std::max(held.start, free(r));
    held.end = held.start + meeting.takes;
    for (size_t m = 0; m < club.ranks.size(); ++m) {
      free(club.ranks[m]) = held.end;
      part(club.ranks[m], meeting.kind, meeting.calls[m], held);
    }
  }

  void part(int32_t r, InstrKind kind, const Call& call, const Tape::Held& held) {
    if (!call.later) {
      tapes_[r].collective(call.action, kind, held);
      ranks_[r].now = held.end;
      return wake(r);
    }
    tapes_[r].started(call.action, kind, call.group, held);
    Flight& flight = ranks_[r].flights.at(call.ticket);
    flight.held = held;
    if (flight.awaited) land(r, call.ticket);
  }

  void land(int32_t r, const Ticket& ticket) {
    Rank& rank = ranks_[r];
    Flight& flight = rank.flights.at(ticket);
    flight.awaited = flight.held.end < 0;
    if (flight.awaited) return;
    tapes_[r].waited_started(rank.now, flight.held);
    rank.now = std::max(rank.now, flight.held.end);
    rank.flights.erase(ticket);
    wake(r);
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
      agenda_.emplace(std::max(ends.sent, ends.posted), coming_++, kTransfer,
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
  std::deque<Club> clubs_;
  std::map<std::vector<int32_t>, int32_t> club_of_;
  std::map<std::pair<int32_t, int32_t>, Picoseconds> links_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> agenda_;
  int64_t coming_ = 0;
};

// Cores that always find a rank to work for need this long for all of them; a rank that waits leaves its
// core to another, so waiting is hidden first. What is communicated beside computing needs a core too.
void share_cores(int cores, Trace& trace) {
  if (cores == 0 || trace.step_seconds <= 0) return;
  auto ranks = static_cast<double>(trace.peak_bytes.size());
  double busy = 1 - trace.bubble + trace.hidden_comm_seconds / trace.step_seconds;
  double stretch = busy * ranks / cores;
  if (stretch <= 1) return;
  trace.step_seconds *= stretch;
  trace.exposed_comm_seconds *= stretch;
  trace.hidden_comm_seconds *= stretch;
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

}  // namespace partita::simulate
