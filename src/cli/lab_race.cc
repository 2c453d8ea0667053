#include <algorithm>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "cli/checks.h"
#include "cli/lab.h"
#include "cli/plan_input.h"
#include "cli/pricing.h"
#include "cluster/library.h"
#include "measure/race.h"
#include "run/host_memory.h"
#include "simulate/simulate.h"

namespace partita::cli {
namespace {

struct RaceFlags {
  ModelInput model;
  std::string calibration;
  std::vector<std::string> plans;
  int rounds = 3;
};

/// A plan of the race, with what was predicted of it.
struct Entry {
  std::string file;
  Plan plan;
  Seconds predicted = 0;
};

Entry entry_of(const std::string& file, const Model& model, const std::string& calibration,
               const Command& command) {
  Entry entry{file, load_plan(file, command)};
  Proved proved = prove_plan(model, entry.plan, file);
  const Lowered& lowered = proved.lowered();
  Prices prices = prices_of(read_cluster(fmt::format("{}xcpu", entry.plan.ranks())), calibration);
  entry.predicted = simulate::simulate(lowered.model, lowered.program, prices).step_seconds;
  return entry;
}

/// Places of the plans, fastest first.
std::vector<size_t> by_time(const std::vector<RaceTime>& times) {
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return times[a].seconds < times[b].seconds; });
  return order;
}

std::string to_text(const std::vector<Entry>& entries, const std::vector<RaceTime>& times) {
  size_t width = 4;
  for (const Entry& entry : entries) width = std::max(width, entry.plan.summary.size());
  std::string text = fmt::format("{:<{}} {:>10} {:>10} {:>6} {:>6}  {}\n", "plan", width, "step", "predicted",
                                 "ratio", "rounds", "file");
  std::vector<size_t> order = by_time(times);
  for (size_t i : order)
    text += fmt::format("{:<{}} {:>10} {:>10} {:>6.3f} {:>6}  {}\n", entries[i].plan.summary, width,
                        show_seconds(times[i].seconds), show_seconds(entries[i].predicted),
                        times[i].seconds / times[order[0]].seconds, times[i].rounds.size(), entries[i].file);
  return text;
}

Json to_json(const std::vector<Entry>& entries, const std::vector<RaceTime>& times) {
  Json plans = Json::array();
  std::vector<size_t> order = by_time(times);
  for (size_t i : order)
    plans.push_back({{"file", entries[i].file},
                     {"summary", entries[i].plan.summary},
                     {"seconds", times[i].seconds},
                     {"predicted_seconds", entries[i].predicted},
                     {"ratio", times[i].seconds / times[order[0]].seconds},
                     {"rounds", times[i].rounds}});
  return {{"plans", plans}};
}

void run(const RaceFlags& flags, const Command& command) {
  need_one_process("lab race");
  Model model = load(flags.model, load_plan(flags.plans.front(), command));
  std::vector<Entry> entries;
  std::vector<Plan> plans;
  for (const std::string& file : flags.plans) {
    entries.push_back(entry_of(file, model, flags.calibration, command));
    plans.push_back(entries.back().plan);
  }
  HostTensors constants = load_constants(flags.model, model);
  std::vector<RaceTime> times = race(model, views_of(constants), plans, flags.rounds,
                                     [&](const std::string& name) { command.say("running", name); });
  command.answer(to_json(entries, times), to_text(entries, times));
}

}  // namespace

void add_lab_race(CLI::App& app, Command& command) {
  auto flags = std::make_shared<RaceFlags>();
  add_model_input(app, flags->model, command);
  app.add_option("PLAN", flags->plans, "plan files of this model; each rank is a thread")->required();
  app.add_option(
         "--rounds", flags->rounds,
         "in which all run, some steps each; those that may be the fastest then run up to three times "
         "as many more")
      ->capture_default_str()
      ->check(whole_number(1, 1000));
  add_calibration_flag(app, flags->calibration);
  app.footer("Example: partita lab race gpt2.model.json dp.json zero1.json --rounds 5");
  app.callback([flags, &command] { run(*flags, command); });
}

}  // namespace partita::cli
