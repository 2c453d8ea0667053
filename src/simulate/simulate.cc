#include "simulate/simulate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "program/memory.h"
#include "program/slot_table.h"
#include "program/walk.h"
#include "program/words.h"
#include "simulate/instr_cost.h"

namespace partita {
namespace {

class Simulation {
 public:
  Simulation(const Model& model, const Program& program, const Prices& prices)
      : program_(program), prices_(prices), costs_(model, program, prices) {
    for (const RankProgram& rank : program.ranks) {
      Rank& self = ranks_.emplace_back(rank, program.microbatches);
      for (const Load& load : rank.loads) self.types.at(load.slot, load.microbatch) = load.type;
    }
  }

  Trace run() {
    Walker walker(program_);
    while (const Event* event = walker.next()) happen(*event);
    CHECK_EQ(walker.story(), "");
    return finish();
  }

 private:
  struct Rank {
    Rank(const RankProgram& rank, int32_t microbatches) : types(rank, microbatches) {}
    SlotTable<TypeId> types;
    Seconds now = 0;
    Seconds begun = -1;  // the body that runs
    Seconds computed = 0, communicated = 0;
    std::vector<TraceEvent> events;
  };
  struct Ends {
    Seconds sent = -1, posted = -1, start = 0, end = 0;
    int32_t from = -1, to = -1, tag = 0;
    Bytes bytes = 0;
    std::string name;
  };

  const Action& action_at(const At& at) const { return program_.ranks[at.rank].actions[at.action]; }
  const Instr& instr_at(const At& at) const { return program_[action_at(at).body].instrs[at.instr]; }

  void happen(const Event& event) {
    const At& at = event.members[0];
    switch (event.kind) {
      case Event::kInstr:
        return compute(at);
      case Event::kCollective:
        return meet(event.members);
      case Event::kReturn:
        return leave(at);
      case Event::kSend:
      case Event::kPostReceive:
        return open(event, at);
      case Event::kWaitReceive:
      case Event::kWaitSend:
        return wait(event, at);
      case Event::kFree:
        return;
    }
  }

  void enter(const At& at) {
    Rank& rank = ranks_[at.rank];
    if (rank.begun >= 0) return;
    rank.begun = rank.now;
    rank.types.open(program_[action_at(at).body]);
  }

  std::vector<TypeId> input_types(const At& at) const {
    std::vector<TypeId> types;
    for (Slot slot : instr_at(at).in)
      types.push_back(ranks_[at.rank].types.at(slot, action_at(at).microbatch));
    return types;
  }

  void set_types(const At& at, const std::vector<TypeId>& in) {
    const Instr& instr = instr_at(at);
    for (size_t o = 0; o < instr.out.size(); ++o)
      if (instr.out[o].index >= 0)
        ranks_[at.rank].types.at(instr.out[o], action_at(at).microbatch) =
            o < instr.types.size() ? instr.types[o] : in[0];
  }

  void compute(const At& at) {
    enter(at);
    Rank& rank = ranks_[at.rank];
    std::vector<TypeId> in = input_types(at);
    Seconds cost = costs_.local(action_at(at).body, at.instr, in, at.rank);
    rank.now += cost;
    rank.computed += cost;
    set_types(at, in);
  }

  void meet(const std::vector<At>& members) {
    Seconds start = 0;
    std::vector<int32_t> group;
    for (const At& at : members) {
      enter(at);
      start = std::max(start, ranks_[at.rank].now);
      group.push_back(at.rank);
    }
    Seconds cost = costs_.collective(instr_at(members[0]), input_types(members[0])[0], group);
    for (const At& at : members) {
      Rank& rank = ranks_[at.rank];
      set_types(at, input_types(at));
      rank.events.push_back({at.rank, "collective", row_of(instr_at(at).kind).name, start, start + cost});
      rank.now = start + cost;
      rank.communicated += cost;
    }
  }

  void leave(const At& at) {
    enter(at);
    Rank& rank = ranks_[at.rank];
    const Action& action = action_at(at);
    std::string name = program_[action.body].name;
    if (program_.microbatches > 1) name += fmt::format(" {}", action.microbatch);
    rank.events.push_back({at.rank, "compute", std::move(name), rank.begun, rank.now});
    rank.begun = -1;
  }

  void open(const Event& event, const At& at) {
    const Action& action = action_at(at);
    Rank& rank = ranks_[at.rank];
    Ends& ends = transfers_[event.transfer];
    if (event.kind == Event::kSend) {
      ends.sent = rank.now;
      ends.from = at.rank, ends.to = action.peer, ends.tag = action.tag;
      ends.bytes = bytes_of(program_[rank.types.at(action.slot, action.microbatch)]);
      ends.name = fmt::format("{} {}", to_text(action.slot), action.microbatch);
    } else {
      ends.posted = rank.now;
      rank.types.at(action.slot, action.microbatch) = action.type;
    }
    if (ends.sent >= 0 && ends.posted >= 0) carry(ends);
  }

  void carry(Ends& ends) {
    Seconds& free = channels_[{ends.from, ends.to, ends.tag}];
    ends.start = std::max({ends.sent, ends.posted, free});
    ends.end = free = ends.start + prices_.send(ends.bytes, ends.from, ends.to);
    ranks_[ends.from].events.push_back(
        {ends.from, fmt::format("to {}, tag {}", ends.to, ends.tag), ends.name, ends.start, ends.end});
  }

  void wait(const Event& event, const At& at) {
    const Ends& ends = transfers_[event.transfer];
    Rank& rank = ranks_[at.rank];
    if (ends.end <= rank.now) return;
    rank.communicated += ends.end - std::max(rank.now, ends.start);
    rank.now = ends.end;
  }

  Trace finish() {
    Trace trace{.clock = "simulated"};
    Seconds computed = 0, communicated = 0;
    for (const Rank& rank : ranks_) trace.step_seconds = std::max(trace.step_seconds, rank.now);
    for (Rank& rank : ranks_) {
      computed += rank.computed, communicated += rank.communicated;
      std::stable_sort(rank.events.begin(), rank.events.end(),
                       [](const TraceEvent& a, const TraceEvent& b) { return a.start < b.start; });
      std::move(rank.events.begin(), rank.events.end(), std::back_inserter(trace.events));
    }
    double count = static_cast<double>(ranks_.size());
    trace.exposed_comm_seconds = communicated / count;
    double all = trace.step_seconds * count;
    trace.bubble = all > 0 ? std::max(0.0, 1 - (computed + communicated) / all) : 0;
    share_cores(computed + communicated, trace);
    return trace;
  }

  // Cores that always find a rank to work for need this long for all of them; a rank that waits leaves its
  // core to another, so waiting is hidden first.
  void share_cores(Seconds worked, Trace& trace) const {
    if (prices_.cores() == 0 || trace.step_seconds <= 0) return;
    double stretch = worked / prices_.cores() / trace.step_seconds;
    if (stretch <= 1) return;
    trace.step_seconds *= stretch;
    trace.exposed_comm_seconds *= stretch;
    for (TraceEvent& event : trace.events) event.start *= stretch, event.end *= stretch;
  }

  const Program& program_;
  const Prices& prices_;
  InstrCosts costs_;
  std::vector<Rank> ranks_;
  std::map<int32_t, Ends> transfers_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, Seconds> channels_;
};

}  // namespace

Trace simulate(const Model& model, const Program& program, const Prices& prices) {
  const Cluster& cluster = prices.cluster();
  if (num_ranks(cluster) < static_cast<int>(program.ranks.size()))
    input_error(
        "simulate: the program has {} ranks, {} has {} devices; take a larger cluster or another plan",
        program.ranks.size(), cluster.name, num_ranks(cluster));
  Trace trace = Simulation(model, program, prices).run();
  for (const RankMemory& memory : memory_of(model, program)) trace.peak_bytes.push_back(memory.peak);
  return trace;
}

}  // namespace partita
