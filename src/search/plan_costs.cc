#include "search/plan_costs.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/effects.h"
#include "simulate/simulate.h"

namespace partita::search {
namespace {

std::vector<int64_t> first_of(const RankClass& ranks) {
  std::vector<int64_t> coordinates;
  for (const Interval& axis : ranks.coordinates) coordinates.push_back(axis.begin);
  return coordinates;
}

Seconds seconds_of(const std::vector<Collective>& all) {
  Seconds sum = 0;
  for (const Collective& one : all) sum += one.all();
  return sum;
}

}  // namespace

PricedPlan::PricedPlan(const Model& model, const Plan& plan)
    : plan_(plan), prepared_(prepare(model, form_of(plan))), folded_(lower_folded(prepared_, plan)) {}

// Where ranks of a class lie across different links, every rank is simulated for itself.
Trace PricedPlan::simulated(const Prices& prices) const {
  if (auto trace = simulate::simulate(prepared_.model, folded_.program, folded_.fold, prices))
    return *std::move(trace);
  return simulate::simulate(prepared_.model, expand(folded_.program, folded_.fold), prices);
}

PlanCosts PricedPlan::costs(const SearchRequest& request) const {
  Trace trace = simulated(request.prices);
  PlanCosts out{.candidate = {.plan = plan_, .lowered = true}};
  Candidate& candidate = out.candidate;
  candidate.step_seconds = trace.step_seconds;
  candidate.exposed_comm_seconds = out.waiting = trace.exposed_comm_seconds;
  candidate.bubble = trace.bubble;
  candidate.peak_bytes = std::move(trace.peak_bytes);
  candidate.fits = candidate.worst_peak() <= request.memory;
  out.idle = trace.bubble * trace.step_seconds;
  out.computing = trace.step_seconds - out.waiting - out.idle;
  Bytes worst = -1;
  for (const RankMemory& rank : memory_of(prepared_.model, folded_.program))
    if (rank.peak > worst) worst = rank.peak, out.bytes = rank.by_cause;
  out.collectives = collectives(request.prices);
  return out;
}

std::vector<Collective> PricedPlan::collectives(const Prices& prices) const {
  const auto& [program, fold] = folded_;
  std::vector<Collective> longest;
  for (size_t c = 0; c < program.ranks.size(); ++c) {
    std::map<std::tuple<std::string, Bytes, std::vector<int32_t>>, int64_t> times;
    for (const Action& action : program.ranks[c].actions) {
      if (action.kind != ActionKind::kRun) continue;
      for (const Instr& instr : program[action.body].instrs) {
        if (instr.group < 0 || instr.types.empty()) continue;
        std::vector<int32_t> ranks = program.ranks[c].groups[instr.group];
        if (!fold.empty())
          ranks = group_at(fold, ranks, fold.group_axes[c][instr.group], first_of(fold.classes[c]));
        Bytes made = bytes_of(program[instr.types[0]]);
        Bytes bytes = whole_bytes(instr, made, static_cast<int64_t>(ranks.size()));
        ++times[{std::string(row_of(instr.kind).name), bytes, std::move(ranks)}];
      }
    }
    std::vector<Collective> mine;
    for (const auto& [what, count] : times) {
      const auto& [kind, bytes, ranks] = what;
      mine.push_back({kind, bytes, ranks, count, prices.collective(kind, bytes, ranks)});
    }
    if (seconds_of(mine) > seconds_of(longest)) longest = std::move(mine);
  }
  std::stable_sort(longest.begin(), longest.end(),
                   [](const Collective& a, const Collective& b) { return a.all() > b.all(); });
  return longest;
}

std::string show(const Collective& collective, const Cluster& cluster) {
  std::vector<int> nodes;
  for (int32_t rank : collective.ranks) nodes.push_back(node_of(cluster, rank));
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return fmt::format("{} of {} over {} ranks of {}", collective.kind, show_bytes(collective.bytes),
                     collective.ranks.size(),
                     nodes.size() == 1 ? "one node" : fmt::format("{} nodes", nodes.size()));
}

}  // namespace partita::search
