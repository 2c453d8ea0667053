#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/names.h"
#include "cli/lab_schedule.h"

namespace partita::cli {
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
  request.to_write = !flags.write_csv.empty() || !flags.csv.empty();
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

std::vector<SearchOption> open_options(const ScheduleRequest& request) {
  constexpr int64_t kQuick = 20'000;
  const ScheduleParams& params = request.params;
  std::vector<SearchOption> options{{Placement::kLinear, 1},
                                    {Placement::kLoop, 2},
                                    {Placement::kLoop, 4},
                                    {Placement::kZigzag, 2},
                                    {Placement::kZigzag, 4}};
  if (int64_t(params.devices) * params.microbatches * 8 * 3 <= kQuick)
    options.push_back({Placement::kZigzag, 8});
  if (params.microbatches % 2 == 0) {
    options.push_back({Placement::kBidirectional, 1});
    options.push_back({Placement::kBidirectional, 2});
  }
  return options;
}

namespace {

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

std::vector<SearchOption> options_of(const ScheduleRequest& request) {
  const int chunks = chunks_asked(request);
  std::vector<SearchOption> options;
  auto add = [&](Placement placement) {
    auto same = [&](const SearchOption& other) {
      return other.placement == placement && other.chunks == chunks;
    };
    if (std::none_of(options.begin(), options.end(), same)) options.push_back({placement, chunks});
  };
  for (const SearchOption& open : open_options(request)) {
    if (request.placement && *request.placement != open.placement) continue;
    if (chunks == 0) options.push_back(open);
    // With one chunk loop and zigzag are the linear placement again.
    if (chunks > 0 && (request.placement || open.placement == Placement::kBidirectional ||
                       (open.placement == Placement::kLinear) == (chunks == 1)))
      add(open.placement);
  }
  // Asked for by name, the refusal says why.
  if (options.empty() && request.placement) options.push_back({*request.placement, std::max(1, chunks)});
  return options;
}

// The better of both where a fused backward is cheaper than its halves; else splitting is never worse.
Found search_option(const ScheduleRequest& request, const SearchOption& option) {
  SearchProblem problem = make_problem(request, option.placement, option.chunks);
  Found found = search_schedule(problem);
  const StageCost& cost = request.pricing.cost;
  if (!problem.split || !request.fused_priced || cost.backward >= cost.input_grad + cost.weight_grad)
    return found;
  problem.split = false;
  Found fused = search_schedule(problem);
  return fused.objective < found.objective ? fused : found;
}

// A schedule whose embedding and head lie on all devices, as it is: no pipeline of the search is like it.
// Nothing if it is over the cap.
std::optional<Found> rival(const ScheduleRow& row, const ScheduleRequest& request) {
  Schedule schedule = make_schedule(row.name, request.params);
  Costs costs = price(request.pricing, schedule);
  Evaluation run = evaluate(schedule, costs, request.queue);
  std::vector<int64_t> cap = cap_memory(request, request.params.devices, 1);
  if (run.deadlock) return std::nullopt;
  for (size_t device = 0; device < cap.size(); ++device)
    if (run.peak_memory[device] > cap[device]) return std::nullopt;
  Rational most_work = 0;
  for (const std::vector<Step>& list : schedule.order) {
    Rational work = 0;
    for (const Step& step : list)
      work = work + (step.kind == StepKind::kForward ? costs.stages[step.stage].forward
                                                     : costs.stages[step.stage].backward);
    most_work = std::max(most_work, work);
  }
  Rational length = request.objective == Objective::kSpan ? run.span : run.makespan;
  return Found{.schedule = schedule,
               .objective = length,
               .bound = most_work,
               .certified = "work",
               .origin = std::string(row.name)};
}

}  // namespace

Found search_request(const ScheduleRequest& request) {
  std::optional<Found> best;
  const std::vector<SearchOption> options = options_of(request);
  if (!request.to_write && !request.placement && chunks_asked(request) == 0 && request.params.devices > 1 &&
      request.params.microbatches > 0)
    for (const ScheduleRow& row : schedule_rows())
      if (row.on_all_devices) best = rival(row, request);
  for (const SearchOption& option : options) {
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

}  // namespace partita::cli
