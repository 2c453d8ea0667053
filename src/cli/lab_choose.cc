#include <algorithm>
#include <ctime>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "choose/least_budget.h"
#include "choose/sweep.h"
#include "cli/checks.h"
#include "cli/lab.h"

namespace partita::cli {
namespace {

struct ChooseFlags {
  std::string options, budget;
  int effort = 3;
};

// Time of this process alone: a busy machine is not a slow search.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Ten times the work for each step; the third is the library's own.
int64_t work_of(int effort) {
  int64_t work = kChoiceWork / 100;
  for (int step = 1; step < effort; ++step) work *= 10;
  return work;
}

Json chosen(const ChoiceProblem& problem, const Choice& choice) {
  Json list = Json::array();
  for (size_t i = 0; i < choice.counts.size(); ++i) {
    Json counts = Json::object();
    for (size_t j = 0; j < choice.counts[i].size(); ++j)
      counts[problem.operators[i].options[j].name] = choice.counts[i][j];
    list.push_back(counts);
  }
  return list;
}

Json to_json(const ChoiceProblem& problem, const ChoiceAnswer& answer) {
  const Choice& best = *answer.best;
  Json json{{"seconds", best.seconds},
            {"bytes", best.worst_peak()},
            {"transient_bytes", best.transient},
            {"budget", problem.budget},
            {"chosen", chosen(problem, best)},
            {"bound", answer.bound},
            {"relaxed_bound", answer.relaxed_bound},
            {"gap", answer.gap()},
            {"seconds_per_gib", answer.seconds_per_byte * 0x1p30},
            {"work", answer.work}};
  if (problem.moments() > 1) json["bytes_by_moment"] = best.peak;
  return json;
}

std::string shown_counts(const ChoiceOperator& op, const std::vector<int64_t>& counts) {
  std::string text;
  for (size_t j = 0; j < counts.size(); ++j)
    if (counts[j] > 0)
      text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", counts[j], op.options[j].name);
  return text;
}

std::string to_text(const ChoiceProblem& problem, const ChoiceAnswer& answer) {
  const Choice& best = *answer.best;
  std::string text = fmt::format("seconds   {:.9g}, no choice takes less than {:.9g}; gap {:.2g}\n",
                                 best.seconds, answer.bound, answer.gap());
  text += fmt::format("bytes     {} of {}, {} of them transient\n", best.worst_peak(), problem.budget,
                      best.transient);
  if (problem.moments() > 1) text += fmt::format("moments   {}\n", fmt::join(best.peak, " "));
  text += fmt::format("at the margin one byte more saves {:.3g} s\n", answer.seconds_per_byte);
  for (size_t i = 0; i < problem.operators.size(); ++i)
    text += fmt::format("operator {:<3} {}\n", i, shown_counts(problem.operators[i], best.counts[i]));
  return text;
}

[[noreturn]] void nothing_fits(const Command& command, Bytes budget, Bytes least, bool proved) {
  if (command.json)
    command.answer({{"least_bytes", least}, {"least_proved", proved}, {"budget", budget}}, "");
  throw Infeasible(fmt::format("{} bytes hold no choice; the least that {} is {} bytes, {} more", budget,
                               proved ? "would do" : "is known to do", least, least - budget));
}

void solve_one(const ChoiceProblem& problem, int64_t work, const Command& command) {
  double start = cpu_seconds();
  ChoiceAnswer answer = search_choices(problem, work);
  if (!answer.best) {
    LeastBudget least = least_budget(problem, work);
    nothing_fits(command, problem.budget, least.bytes, least.proved);
  }
  Json json = to_json(problem, answer);
  json["solve_seconds"] = cpu_seconds() - start;
  command.answer(json, to_text(problem, answer));
}

Json to_json(const ChoiceProblem& problem, const SweepEntry& entry) {
  Json json{{"samples", problem.samples}, {"solved", entry.solved}};
  if (!entry.answer.best) {
    json["least_bytes"] = entry.least_bytes;
    return json;
  }
  json["seconds"] = entry.answer.best->seconds;
  json["bytes"] = entry.answer.best->worst_peak();
  json["bound"] = entry.solved ? entry.answer.bound : entry.answer.relaxed_bound;
  json["samples_per_second"] = problem.samples / entry.answer.best->seconds;
  return json;
}

std::string to_line(const ChoiceProblem& problem, const SweepEntry& entry, bool best) {
  if (!entry.answer.best)
    return fmt::format("{:>10} does not fit, needs {} bytes\n", problem.samples, entry.least_bytes);
  return fmt::format("{:>10} {:>14.9g} {:>14.6g} {:>16}{}\n", problem.samples, entry.answer.best->seconds,
                     problem.samples / entry.answer.best->seconds, entry.answer.best->worst_peak(),
                     best            ? "  the most per second"
                     : !entry.solved ? "  its bound says it cannot win"
                                     : "");
}

void solve_sweep(const std::vector<ChoiceProblem>& problems, int64_t work, const Command& command) {
  double start = cpu_seconds();
  Sweep sweep = sweep_choices(problems, work);
  double spent = cpu_seconds() - start;
  if (sweep.best < 0) {
    size_t least = 0;
    for (size_t b = 1; b < problems.size(); ++b)
      if (sweep.entries[b].least_bytes < sweep.entries[least].least_bytes) least = b;
    nothing_fits(command, problems[least].budget, sweep.entries[least].least_bytes,
                 sweep.entries[least].least_proved);
  }
  const ChoiceProblem& problem = problems[sweep.best];
  const ChoiceAnswer& answer = sweep.entries[sweep.best].answer;
  Json json{{"samples", problem.samples},
            {"samples_per_second", problem.samples / answer.best->seconds},
            {"index", sweep.best}};
  json.update(to_json(problem, answer));
  std::string text =
      fmt::format("{:>10} {:>14} {:>14} {:>16}\n", "samples", "seconds", "per second", "bytes");
  for (size_t b = 0; b < problems.size(); ++b) {
    json["sweep"].push_back(to_json(problems[b], sweep.entries[b]));
    text += to_line(problems[b], sweep.entries[b], static_cast<int>(b) == sweep.best);
  }
  json["solve_seconds"] = spent;
  command.answer(json, text + to_text(problem, answer));
}

void run(const ChooseFlags& flags, const Command& command) {
  ChoiceFile file = parse_choices(read_file(flags.options), flags.options);
  if (!flags.budget.empty())
    for (ChoiceProblem& problem : file.problems) problem.budget = parse_bytes(flags.budget, "--budget");
  int64_t work = work_of(flags.effort);
  if (file.sweep)
    solve_sweep(file.problems, work, command);
  else
    solve_one(file.problems[0], work, command);
}

}  // namespace

void add_lab_choose(CLI::App& app, Command& command) {
  auto flags = std::make_shared<ChooseFlags>();
  app.add_option("--options", flags->options,
                 "F.json: a budget and operators with options; a list of those with `samples` is a sweep")
      ->required();
  app.add_option("--budget", flags->budget, "bytes, 80GiB: instead of what the file says");
  app.add_option("--effort", flags->effort,
                 "1 to 5, each ten times the work where a proof is hard; default 3")
      ->check(whole_number(1, 5));
  app.footer("Example: partita lab choose --options options.json --budget 8GiB");
  app.callback([flags, &command] { run(*flags, command); });
}

}  // namespace partita::cli
