#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "cli/lab_schedule.h"

namespace partita {
namespace {

Rational cost_flag(const std::string& text, const char* flag) {
  Rational value = parse_rational(text, flag);
  if (value < Rational(0)) input_error("{}: {} is negative; needs 0 or more", flag, text);
  return value;
}

void read_costs(const ScheduleFlags& flags, ScheduleRequest& request) {
  StageCost& cost = request.pricing.cost;
  if (!flags.forward.empty()) cost.forward = cost_flag(flags.forward, "--forward");
  if (flags.input_grad.empty() != flags.weight_grad.empty())
    input_error(
        "lab schedule: --input-grad and --weight-grad belong together; give both, or --backward alone");
  request.split_priced = !flags.input_grad.empty();
  request.fused_priced = !flags.backward.empty();
  if (request.split_priced) {
    cost.input_grad = cost_flag(flags.input_grad, "--input-grad");
    cost.weight_grad = cost_flag(flags.weight_grad, "--weight-grad");
    cost.backward = cost.input_grad + cost.weight_grad;
  }
  if (request.fused_priced) cost.backward = cost_flag(flags.backward, "--backward");
  if (!request.split_priced && !request.fused_priced) cost.backward = cost.input_grad + cost.weight_grad;
  request.pricing.hop = cost_flag(flags.comm, "--comm");
  request.pricing.embedding = cost_flag(flags.embedding, "--embedding");
  request.pricing.head = cost_flag(flags.head, "--head");
}

template <class Value>
Value word(const char* flag, const std::string& text,
           const std::vector<std::pair<std::string, Value>>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    if (name == text) return value;
    names.push_back(name);
  }
  input_error("{}: unknown '{}'; use {}{}", flag, text, fmt::join(names, " or "), did_you_mean(text, names));
}

void read_memory(const ScheduleFlags& flags, ScheduleRequest& request) {
  Rational after = cost_flag(flags.held_after, "--held-after");
  if (after > Rational(1))
    input_error("--held-after: {} is more than the whole chunk; needs 0 to 1", flags.held_after);
  request.per_chunk_memory = after.den();
  request.pricing.held = after.den();
  request.pricing.held_after = after.num();
  request.weight_memory = cost_flag(flags.weight_memory, "--weight-memory");
  request.cap_in_microbatches =
      word<bool>("--cap-unit", flags.cap_unit, {{"chunks", false}, {"microbatches", true}});
  for (size_t at = 0; at < flags.memory_cap.size();) {
    size_t end = std::min(flags.memory_cap.find(',', at), flags.memory_cap.size());
    request.cap.push_back(cost_flag(flags.memory_cap.substr(at, end - at), "--memory-cap"));
    at = end + 1;
  }
}

}  // namespace

ScheduleRequest read_request(const ScheduleFlags& flags) {
  ScheduleRequest request;
  request.params = {flags.devices, flags.microbatches, flags.chunks, flags.waves, flags.group};
  if (flags.waves && flags.chunks && flags.chunks != 2 * flags.waves)
    input_error("lab schedule: --waves {} means {} chunks, not {}; give one of them", flags.waves,
                2 * flags.waves, flags.chunks);
  read_costs(flags, request);
  read_memory(flags, request);
  request.pricing.per_chunk = word<bool>("--unit", flags.unit, {{"device-stage", false}, {"chunk", true}});
  request.queue =
      word<Queue>("--queue", flags.queue, {{"per-peer", Queue::kPerPeer}, {"single", Queue::kSingle}});
  request.objective = word<Objective>("--objective", flags.objective,
                                      {{"makespan", Objective::kMakespan}, {"span", Objective::kSpan}});
  if (!flags.placement.empty()) request.placement = parse_placement(flags.placement, "--placement");
  if (flags.effort < 1 || flags.effort > 5) input_error("--effort: {}; needs 1 to 5", flags.effort);
  request.effort = flags.effort;
  if (!flags.stage_costs.empty())
    parse_stage_costs(read_file(flags.stage_costs), flags.stage_costs, request.pricing);
  if (!flags.links.empty()) request.pricing.links = parse_links(read_file(flags.links), flags.links);
  return request;
}

std::vector<int64_t> cap_memory(const ScheduleRequest& request, int devices, int chunks) {
  if (request.cap.empty()) return {};
  if (request.cap.size() != 1 && int(request.cap.size()) != devices)
    input_error("--memory-cap: {} caps for {} devices; give one, or one for each", request.cap.size(),
                devices);
  std::vector<int64_t> cap;
  for (int device = 0; device < devices; ++device) {
    Rational held = request.cap[request.cap.size() == 1 ? 0 : device] * Rational(request.per_chunk_memory);
    if (request.cap_in_microbatches) held = held * Rational(chunks);
    cap.push_back(held.num() / held.den());
  }
  return cap;
}

SearchProblem make_problem(const ScheduleRequest& request, Placement placement, int chunks) {
  const ScheduleParams& params = request.params;
  if (params.devices < 1 || params.microbatches < 1)
    input_error("lab schedule: needs --devices and --microbatches, 1 or more each");
  if (int64_t(params.devices) * params.microbatches * chunks > 2'000'000)
    input_error("lab schedule: more than 2,000,000 (stage, micro-batch) pairs to search; use fewer");
  if (placement == Placement::kLinear && chunks > 1)
    input_error("--placement linear: {} chunks a device; it holds one, so use loop or zigzag", chunks);
  Schedule shape = blank("search", placement, params, chunks);
  bool staged = !request.pricing.stages.empty();
  SearchProblem problem{.devices = params.devices,
                        .microbatches = params.microbatches,
                        .chunks = chunks,
                        .placement = placement,
                        .costs = price(request.pricing, shape),
                        .cap = cap_memory(request, params.devices, chunks),
                        .split = request.split_priced || (staged && !request.fused_priced),
                        .objective = request.objective,
                        .effort = request.effort};
  // A second copy of the weights uses up the cap.
  Rational copy =
      request.weight_memory * Rational(int64_t(shape.streams - 1) * chunks * request.per_chunk_memory);
  for (int64_t& cap : problem.cap) cap -= (copy.num() + copy.den() - 1) / copy.den();
  return problem;
}

namespace {

struct Option {
  Placement placement;
  int chunks;
};

// Chunks a device as the request has them: said, or by the rows of stage costs; 0: open.
int chunks_asked(const ScheduleRequest& request) {
  const ScheduleParams& params = request.params;
  if (params.waves) return 2 * params.waves;
  if (params.chunks || request.pricing.stages.empty()) return params.chunks;
  int rows = int(request.pricing.stages.size());
  if (params.devices < 1 || rows % params.devices)
    input_error("--stage-costs: {} rows for {} devices; needs a whole number of stages a device", rows,
                params.devices);
  return rows / params.devices;
}

std::vector<Option> options_of(const ScheduleRequest& request) {
  const int chunks = chunks_asked(request);
  std::vector<Option> options;
  auto add = [&](Placement placement, std::vector<int> open) {
    if (request.placement && *request.placement != placement) return;
    if (chunks > 0) open = {chunks};
    for (int count : open) options.push_back({placement, count});
  };
  if (request.placement || chunks <= 1) add(Placement::kLinear, {1});
  // With one chunk these are the linear placement again.
  if (request.placement || chunks != 1) add(Placement::kLoop, {2, 4});
  if (request.placement || chunks != 1) add(Placement::kZigzag, {2, 4});
  // Two streams need an even number; asked for by name, the refusal says so.
  if (request.placement || request.params.microbatches % 2 == 0) add(Placement::kBidirectional, {1, 2});
  return options;
}

// The better of both where a fused backward is cheaper than its halves; else splitting is never worse.
Found search_option(const ScheduleRequest& request, const Option& option) {
  SearchProblem problem = make_problem(request, option.placement, option.chunks);
  Found found = search_schedule(problem);
  const StageCost& cost = request.pricing.cost;
  if (!problem.split || !request.fused_priced || cost.backward >= cost.input_grad + cost.weight_grad)
    return found;
  problem.split = false;
  Found fused = search_schedule(problem);
  return fused.objective < found.objective ? fused : found;
}

}  // namespace

Found search_request(const ScheduleRequest& request) {
  std::optional<Found> best;
  const std::vector<Option> options = options_of(request);
  for (const Option& option : options) {
    std::optional<Found> found;
    try {
      found = search_option(request, option);
    } catch (const Infeasible&) {
      if (options.size() == 1) throw;
    }
    if (found && (!best || found->objective < best->objective)) best = std::move(found);
  }
  if (!best) throw Infeasible("no placement holds one micro-batch under this cap; raise --memory-cap");
  return *best;
}

}  // namespace partita
