#include "cli/lab_schedule.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/names.h"
#include "cli/ask.h"
#include "cli/lab.h"
#include "schedule/csv.h"
#include "schedule/draw.h"
#include "schedule/search/bound.h"

namespace partita::cli {
namespace {

bool is_split(const Schedule& schedule) {
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list)
      if (step.kind == StepKind::kInputGrad) return true;
  return false;
}

bool is_mixed(const Schedule& schedule) {
  bool fused = false;
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list) fused |= step.kind == StepKind::kBackward;
  return fused && is_split(schedule);
}

int chunks_of(const Schedule& schedule) {
  return std::max(1, schedule.stages * schedule.streams / schedule.devices / schedule.passes);
}

// What no order of the same pipeline can beat; for shapes outside `make_flow`, the busiest device's work.
Rational bound_of(const Schedule& schedule, const Costs& costs, const std::vector<int64_t>& cap,
                  Objective objective) {
  Ticks ticks = to_ticks(costs, schedule.devices, schedule.stages, schedule.microbatches);
  if (fits_flow(schedule)) {
    std::vector<int64_t> limit = cap.empty() ? std::vector<int64_t>(schedule.devices, INT64_MAX) : cap;
    // A mixed schedule may fuse or split as it likes, so the bound allows what is cheaper: splitting.
    Flow flow = make_flow(schedule, ticks, is_split(schedule), limit);
    return ticks.time(objective == Objective::kSpan ? span_bound(flow) : makespan_bound(flow));
  }
  int64_t most = 0;
  for (const std::vector<Step>& list : schedule.order) {
    int64_t work = 0;
    for (const Step& step : list) work += ticks.cost(step);
    most = std::max(most, work);
  }
  return ticks.time(most);
}

// Pricing a split schedule by --backward alone would invent numbers.
void check_priced(const Schedule& schedule, const ScheduleRequest& request) {
  if (is_split(schedule) && !request.split_priced && request.fused_priced && request.pricing.stages.empty())
    input_error(
        "schedule {}: runs input and weight gradients apart; give --input-grad and --weight-grad instead of "
        "--backward",
        schedule.name);
}

void check_cap(const Schedule& schedule, const Evaluation& run, const std::vector<int64_t>& cap,
               int64_t unit) {
  for (size_t device = 0; device < cap.size(); ++device)
    if (run.peak_memory[device] > cap[device])
      throw Infeasible(
          fmt::format("schedule {}: device {} needs {} chunks, the cap is {}; try --memory-cap {} or --name "
                      "search",
                      schedule.name, device, Rational(run.peak_memory[device], unit).str(),
                      Rational(cap[device], unit).str(), Rational(run.peak_memory[device], unit).str()));
}

struct Answer {
  Schedule schedule;
  Evaluation run;
  Rational bound;
  Objective objective = Objective::kMakespan;
  std::string origin, certified = "heads, tails and memory";
  int64_t per_chunk_memory = 1;
};

Rational gap_of(const Answer& answer) {
  const Rational& value = answer.objective == Objective::kSpan ? answer.run.span : answer.run.makespan;
  return answer.bound == Rational(0) ? Rational(0) : value / answer.bound - Rational(1);
}

Json to_json(const Answer& answer) {
  Json json{{"name", answer.schedule.name},
            {"devices", answer.schedule.devices},
            {"stages", answer.schedule.stages},
            {"microbatches", answer.schedule.microbatches},
            {"weight_copies", answer.schedule.streams},
            {"deadlock", answer.run.deadlock}};
  if (answer.run.deadlock)
    json["cycle"] = answer.run.cycle;
  else {
    json["makespan"] = answer.run.makespan.str();
    json["span"] = answer.run.span.str();
    json["bubble_makespan"] = answer.run.bubble_makespan.str();
    json["bubble_span"] = answer.run.bubble_span.str();
  }
  json["peak_chunks"] = answer.run.peak_chunks;
  Json memory = Json::array();
  for (int64_t peak : answer.run.peak_memory) memory.push_back(Rational(peak, answer.per_chunk_memory).str());
  json["peak_memory"] = memory;
  json["lower_bound"] = answer.bound.str();
  json["bound_of"] = answer.objective == Objective::kSpan ? "span" : "makespan";
  json["bound_by"] = answer.certified;
  if (!answer.run.deadlock) json["gap"] = gap_of(answer).to_double();
  if (!answer.origin.empty()) json["origin"] = answer.origin;
  return json;
}

std::string decimal(const Rational& value) {
  return value.den() == 1 ? value.str() : fmt::format("{} ({:.4f})", value.str(), value.to_double());
}

std::string to_text(const Answer& answer) {
  const Schedule& schedule = answer.schedule;
  const Evaluation& run = answer.run;
  std::string text = fmt::format("{} on {} devices, {} stages, {} micro-batches\n", schedule.name,
                                 schedule.devices, schedule.stages, schedule.microbatches);
  if (run.deadlock) {
    text += "deadlock: every line waits for the next, the last for the first\n";
    for (const std::string& line : run.cycle) text += "  " + line + "\n";
    return text;
  }
  text += fmt::format("makespan     {}  bubble {:.2f}%\n", decimal(run.makespan),
                      100 * run.bubble_makespan.to_double());
  text +=
      fmt::format("span         {}  bubble {:.2f}%\n", decimal(run.span), 100 * run.bubble_span.to_double());
  text += fmt::format("peak chunks  {}\n", fmt::join(run.peak_chunks, " "));
  text += fmt::format("lower bound  {}  of the {}, by {}; gap {:.2f}%\n", decimal(answer.bound),
                      answer.objective == Objective::kSpan ? "span" : "makespan", answer.certified,
                      100 * gap_of(answer).to_double());
  if (!answer.origin.empty()) text += fmt::format("found from   {}\n", answer.origin);
  if (schedule.streams > 1)
    text += fmt::format("weights      {} copies: micro-batches enter at both ends\n", schedule.streams);
  return text;
}

int terminal_width(bool terminal) {
  winsize size{};
  if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 160;
}

Answer judge(Schedule schedule, const ScheduleRequest& request) {
  check_priced(schedule, request);
  Costs costs = price(request.pricing, schedule);
  // One schedule may fuse some backwards and split others: a fused one is then the sum of its halves.
  if (is_mixed(schedule) && !request.fused_priced && request.pricing.stages.empty())
    for (StageCost& stage : costs.stages) stage.backward = stage.input_grad + stage.weight_grad;
  std::vector<int64_t> cap = cap_memory(request, schedule.devices, chunks_of(schedule));
  Answer answer{.schedule = std::move(schedule),
                .objective = request.objective,
                .per_chunk_memory = request.per_chunk_memory};
  answer.run = evaluate(answer.schedule, costs, request.queue);
  answer.bound = bound_of(answer.schedule, costs, cap, request.objective);
  check_cap(answer.schedule, answer.run, cap, request.per_chunk_memory);
  return answer;
}

Schedule named(const std::string& name, const ScheduleRequest& request) {
  ScheduleParams params = request.params;
  if (params.devices < 1 || params.microbatches < 1)
    input_error("lab schedule: --name {} needs --devices and --microbatches, 1 or more each", name);
  int chunks = params.waves ? 2 * params.waves : params.chunks ? params.chunks : 2;
  if (schedule_row(name).obeys_cap && !request.cap.empty()) {
    std::vector<int64_t> cap = cap_memory(request, params.devices, chunks);
    int64_t least = *std::min_element(cap.begin(), cap.end());
    params.cap = int(std::clamp<int64_t>(least / request.pricing.held, 1, INT32_MAX));
  }
  return make_schedule(name, params);
}

void search_and_answer(const ScheduleRequest& request, Answer& answer) {
  Found found = search_request(request);
  answer = judge(found.schedule, request);
  answer.bound = found.bound;
  answer.certified = found.certified;
  answer.origin = found.origin;
}

void write_schedule(const Schedule& schedule, const std::string& file) {
  if (!fits_flow(schedule) && schedule.streams == 1)
    input_error("schedule {}: a stage on several devices has no place in PyTorch's CSV form", schedule.name);
  write_file(file, to_csv(schedule));
}

Schedule read_schedule(const std::string& file, const Command& command) {
  const std::string* given = given_text(command, file);
  return parse_csv(given ? *given : read_file(file), file);
}

void run(const ScheduleFlags& flags, const Command& command) {
  ScheduleRequest request = read_request(flags);
  if (flags.compare) return compare_schedules(request, command);
  if (flags.name.empty() && flags.csv.empty())
    input_error("lab schedule: give --name (one of {}, search), --csv FILE to read one, or --compare",
                fmt::join(schedule_names(), ", "));
  Answer answer;
  if (flags.name.empty())
    answer = judge(read_schedule(flags.csv, command), request);
  else if (flags.name == "search")
    search_and_answer(request, answer);
  else
    answer = judge(named(flags.name, request), request);
  if (!flags.name.empty() && !flags.csv.empty()) write_schedule(answer.schedule, flags.csv);
  if (!flags.write_csv.empty()) write_schedule(answer.schedule, flags.write_csv);
  std::string text = to_text(answer);
  bool terminal = !command.question() && isatty(STDOUT_FILENO);
  if (flags.show && !answer.run.deadlock)
    text = draw(answer.schedule, answer.run, terminal, terminal_width(terminal)) + text;
  command.answer(to_json(answer), text);
}

void add_what(CLI::App& app, ScheduleFlags& flags) {
  app.add_option("--name", flags.name, fmt::format("{} or search", fmt::join(schedule_names(), ", ")));
  app.add_option("--devices", flags.devices, "P");
  app.add_option("--microbatches", flags.microbatches, "m");
  app.add_option("--waves", flags.waves, "wave: W, 2 W chunks a device");
  app.add_option("--chunks", flags.chunks,
                 "stages a device holds (interleaved, looped-bfs, interleaved-zb, wave, search)");
  app.add_option("--group", flags.group, "interleaved: micro-batches a group");
  app.add_option("--placement", flags.placement,
                 "search: linear, loop, v, zigzag or bidirectional; all are tried without it");
  app.add_option("--objective", flags.objective, "search: makespan (default) or span");
  app.add_option("--effort", flags.effort, "search: 1 to 5, default 3");
  app.add_option("--csv", flags.csv, "PyTorch's form: written with --name, read without");
  app.add_option("--write-csv", flags.write_csv,
                 "writes the answer in PyTorch's form, also one that was read");
  app.add_flag("--show", flags.show, "draw it");
  app.add_flag("--compare", flags.compare, "a table of all schedules at these costs, cap and transfer");
}

void add_costs(CLI::App& app, ScheduleFlags& flags) {
  app.add_option("--forward", flags.forward, "time of a forward, default 1; whole, decimal or 6/5");
  app.add_option("--backward", flags.backward, "time of a fused backward, default 2");
  app.add_option("--input-grad", flags.input_grad, "time of an input gradient");
  app.add_option("--weight-grad", flags.weight_grad, "time of a weight gradient");
  app.add_option("--comm", flags.comm, "time of one hop between devices, default 0");
  app.add_option("--unit", flags.unit, "costs are of one device-stage (default) or of one chunk");
  app.add_option("--embedding", flags.embedding, "extra forward time on the first stage");
  app.add_option("--head", flags.head, "extra forward time on the last stage");
  app.add_option("--stage-costs", flags.stage_costs, "CSV with a row for each stage");
  app.add_option("--links", flags.links, "CSV table of hops, a row for each sending device");
  app.add_option("--memory-cap", flags.memory_cap,
                 "live chunks a device may hold; one number or one a device, 8,8,6,6");
  app.add_option("--cap-unit", flags.cap_unit,
                 "the cap counts chunks (default) or whole microbatches of a device");
  app.add_option("--held-after", flags.held_after,
                 "what a chunk holds between input and weight gradient, default 1");
  app.add_option(
      "--weight-memory", flags.weight_memory,
      "--compare: weights of a device-stage, in micro-batches of activations; a second copy uses up the cap");
  app.add_option("--queue", flags.queue, "per-peer (default) or single: one in-order queue a device");
}

}  // namespace

void add_lab_schedule(CLI::App& app, Command& command) {
  auto flags = std::make_shared<ScheduleFlags>();
  add_what(app, *flags);
  add_costs(app, *flags);
  app.footer("Example: partita lab schedule --name wave --devices 4 --microbatches 4 --waves 2 --show");
  app.callback([flags, &command] { run(*flags, command); });
}

}  // namespace partita::cli
