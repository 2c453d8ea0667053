#include "reshard_execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "reshard/script.h"
#include "run/cpu/cpu_memory.h"
#include "run/threads/crew.h"
#include "run/threads/thread_communicator.h"

namespace partita::reshard {

using namespace run;

namespace {

using Values = std::vector<int64_t>;

std::vector<int64_t> sizes_of(const Region& region) {
  std::vector<int64_t> sizes;
  for (const Interval& side : region) sizes.push_back(side.length());
  return sizes;
}

/// Calls visit(offset in `a`, offset in `b`) for every common element.
template <class Visit>
void each_common(const Region& a, const Region& b, const Visit& visit) {
  std::optional<Region> common = intersect(a, b);
  if (!common) return;
  std::vector<int64_t> at;
  for (const Interval& side : *common) at.push_back(side.begin);
  for (;;) {
    int64_t in_a = 0, in_b = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      in_a = in_a * a[d].length() + at[d] - a[d].begin;
      in_b = in_b * b[d].length() + at[d] - b[d].begin;
    }
    visit(in_a, in_b);
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == (*common)[d - 1].end) at[d - 1] = (*common)[d - 1].begin, --d;
    if (d == 0) return;
  }
}

/// Runs one script with the communicator of its rank.
class Player {
 public:
  Player(const Script& script, const std::map<int32_t, int32_t>& rank_of)
      : script_(script), rank_of_(rank_of), buffers_(script.buffers.size()) {
    for (size_t b = 0; b < buffers_.size(); ++b)
      buffers_[b].assign(volume(script.buffers[b]), int64_t{1} << 40);
    for (const Step& step : script.steps)
      if (!step.group.empty() &&
          std::find(groups_.begin(), groups_.end(), ranks(step.group)) == groups_.end())
        groups_.push_back(ranks(step.group));
  }

  const std::vector<std::vector<int32_t>>& groups() const { return groups_; }
  Values& operator[](int32_t buffer) { return buffers_[buffer]; }

  /// Numbers the transfers: the k-th send to a peer is the k-th receive there.
  void number(std::map<std::tuple<int32_t, int32_t, int64_t>, int32_t>& known) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const Step& step : script_.steps) {
      if (step.kind != StepKind::kSend && step.kind != StepKind::kReceive) continue;
      int32_t self = rank_of_.at(script_.device), peer = rank_of_.at(step.peer);
      auto [from, to] = step.kind == StepKind::kSend ? std::pair(self, peer) : std::pair(peer, self);
      int64_t k = counts[{from, to}]++;
      wires_.push_back({known.try_emplace({from, to, k}, known.size()).first->second, peer, 0});
    }
  }

  void run(Communicator& comm) {
    std::vector<Wire> sends;
    size_t next = 0;
    for (const Step& step : script_.steps) {
      if (step.kind == StepKind::kSend) {
        sends.push_back(wires_[next++]);
        comm.send(sends.back(), view_of(kept_.emplace_back(span(step.in))));
      } else if (step.kind == StepKind::kReceive) {
        const Wire& wire = wires_[next++];
        comm.receive(wire, view_of(kept_.emplace_back(span(step.out))));
        comm.wait_receive(wire);
      } else {
        play(step, comm);
      }
    }
    for (const Wire& wire : sends) comm.wait_send(wire);
  }

 private:
  std::vector<int32_t> ranks(const std::vector<int32_t>& devices) const {
    std::vector<int32_t> list;
    for (int32_t device : devices) list.push_back(rank_of_.at(device));
    return list;
  }
  int32_t group(const Step& step) const {
    return std::find(groups_.begin(), groups_.end(), ranks(step.group)) - groups_.begin();
  }
  TensorSpan span(int32_t buffer) {
    Shape shape = sizes_of(script_.buffers[buffer]);
    return {{buffers_[buffer].data()}, {shape, row_major(shape), DType::kInt64}};
  }

  void play(const Step& step, Communicator& comm) {
    Cut cut{.dim = std::max(0, step.dim)};
    switch (step.kind) {
      case StepKind::kFill:
        buffers_[step.out].assign(buffers_[step.out].size(), 0);
        return;
      case StepKind::kCopy:
        return each_common(script_.buffers[step.in], script_.buffers[step.out],
                           [&](int64_t in, int64_t out) { buffers_[step.out][out] = buffers_[step.in][in]; });
      case StepKind::kAdd:
        for (size_t i = 0; i < buffers_[step.out].size(); ++i) buffers_[step.out][i] += buffers_[step.in][i];
        return;
      case StepKind::kAllGather:
        return comm.all_gather(group(step), span(step.in), span(step.out), cut, step.pieces);
      case StepKind::kReduceScatter:
        return comm.reduce_scatter(group(step), span(step.in), span(step.out), cut, step.pieces);
      case StepKind::kAllReduce:
        return comm.all_reduce(group(step), span(step.out));
      case StepKind::kReceive:
      case StepKind::kSend:
        return;
    }
  }

  const Script& script_;
  const std::map<int32_t, int32_t>& rank_of_;
  std::vector<Values> buffers_;  // poison until written, so that reading what was never made shows
  std::vector<std::vector<int32_t>> groups_;
  std::vector<Wire> wires_;      // of sends and receives, in order
  std::deque<TensorSpan> kept_;  // shapes that views refer to
};

/// Plays all scripts at once; the failure, or "".
std::string play_all(std::deque<Player>& players) {
  int32_t ranks = static_cast<int32_t>(players.size());
  World world(ranks);
  std::map<std::tuple<int32_t, int32_t, int64_t>, int32_t> transfers;
  for (Player& player : players) player.number(transfers);
  CpuMemory memory;
  run::Exchange exchange(world, memory, static_cast<int32_t>(transfers.size()));
  RealClock clock;
  std::deque<Timeline> times;
  std::deque<ThreadCommunicator> comms;
  for (int32_t r = 0; r < ranks; ++r) {
    times.emplace_back(clock);
    comms.emplace_back(exchange, r, players[r].groups(), times.back());
  }
  Crew crew(ranks);
  world.start();
  crew.run([&](int32_t rank) {
    try {
      players[rank].run(comms[rank]);
      world.finish(rank);
    } catch (const Stopped&) {
    } catch (const std::exception& error) {
      world.fail(rank, error.what());
    }
  });
  return world.failure().value_or("");
}

/// Elements that a script brings to its device; reducing and gathering as rings do.
int64_t moved_by(const Script& script) {
  int64_t elements = 0;
  for (const Step& step : script.steps) {
    int64_t members = static_cast<int64_t>(step.group.size());
    if (step.kind == StepKind::kReceive) elements += volume(script.buffers[step.out]);
    if (step.kind == StepKind::kAllGather)
      elements += volume(script.buffers[step.out]) - volume(script.buffers[step.in]);
    if (step.kind == StepKind::kReduceScatter) elements += (members - 1) * volume(script.buffers[step.out]);
    // Of all members together 2 (n - 1) S: this member's share of both halves is that of its chunk.
    if (step.kind == StepKind::kAllReduce) {
      int64_t at = std::find(step.group.begin(), step.group.end(), script.device) - step.group.begin();
      elements += 2 * (members - 1) * piece({0, volume(script.buffers[step.out])}, members, at).length();
    }
  }
  return elements;
}

/// Atoms of the value: as many as the finest addend needs; addend i of k is the sum of its share of them.
class Truth {
 public:
  Truth(const Problem& problem, uint64_t seed) : whole_(problem.shape.size()) {
    std::mt19937_64 random(seed);
    for (size_t d = 0; d < problem.shape.size(); ++d) whole_[d] = {0, problem.shape[d]};
    int64_t atoms = 1;
    for (const Piece& piece : problem.from) atoms = std::lcm(atoms, piece.addend.count);
    atoms_.assign(atoms, Values(volume(whole_)));
    for (Values& values : atoms_)
      for (int64_t& value : values) value = static_cast<int64_t>(random() % 2001) - 1000;
  }

  void load(const Piece& piece, Values& values) const {
    each_common(whole_, piece.region,
                [&](int64_t at, int64_t mine) { values[mine] = value(at, piece.addend); });
  }

  std::string compare(const std::vector<std::pair<Piece, const Values*>>& ended) const {
    std::vector<std::map<Addend, int64_t>> dealt(volume(whole_));
    std::string wrong;
    for (const auto& [piece, values] : ended)
      each_common(whole_, piece.region, [&](int64_t at, int64_t mine) {
        int64_t found = (*values)[mine];
        if (piece.addend.complete() && found != value(at, {}))
          wrong =
              fmt::format("element {} on device {} is {}, not {}", at, piece.device, found, value(at, {}));
        if (piece.addend.complete()) return;
        if (auto [known, fresh] = dealt[at].emplace(piece.addend, found); !fresh && known->second != found)
          wrong = fmt::format("element {}: equal addends differ on device {}", at, piece.device);
      });
    for (size_t at = 0; at < dealt.size(); ++at) {
      int64_t sum = 0;
      for (const auto& [addend, value] : dealt[at]) sum += value;
      if (!dealt[at].empty() && sum != value(at, {}))
        wrong = fmt::format("element {}: addends make {}, not {}", at, sum, value(at, {}));
    }
    return wrong;
  }

 private:
  int64_t value(int64_t at, Addend addend) const {
    int64_t share = static_cast<int64_t>(atoms_.size()) / addend.count, sum = 0;
    for (int64_t a = addend.index * share; a < (addend.index + 1) * share; ++a) sum += atoms_[a][at];
    return sum;
  }

  Region whole_;
  std::vector<Values> atoms_;
};

}  // namespace

std::string execute(const Problem& problem, const Answer& answer, uint64_t seed) {
  std::vector<Script> scripts = write_scripts(problem, answer);
  std::map<int32_t, int32_t> rank_of;
  for (const Script& script : scripts) rank_of.emplace(script.device, static_cast<int32_t>(rank_of.size()));
  int64_t moved = 0;
  std::deque<Player> players;
  for (const Script& script : scripts) {
    players.emplace_back(script, rank_of);
    moved += moved_by(script);
  }
  Truth truth(problem, seed);
  std::map<int32_t, int32_t> next;  // buffer by rank
  for (const Piece& piece : problem.from) {
    int32_t rank = rank_of[piece.device];
    truth.load(piece, players[rank][next[rank]++]);
  }
  if (std::string failure = play_all(players); !failure.empty()) return failure;
  next.clear();
  std::vector<std::pair<Piece, const Values*>> ended;
  for (const Piece& piece : problem.to) {
    int32_t rank = rank_of[piece.device];
    ended.emplace_back(piece, &players[rank][scripts[rank].targets[next[rank]++]]);
  }
  if (moved * problem.elem_bytes != answer.total_bytes)
    return fmt::format("the scripts move {} bytes, the answer {}", moved * problem.elem_bytes,
                       answer.total_bytes);
  return truth.compare(ended);
}

}  // namespace partita::reshard
