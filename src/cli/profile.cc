#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/inputs.h"
#include "cli/verbs.h"
#include "cluster/library.h"
#include "profile/step.h"

namespace partita {
namespace {

struct Options {
  ModelInput model;
  std::string device = "A100-80GB";
  int depth = 3;
};

/// "12.3 G", "456 M": flops and counts.
std::string show_count(double count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P", " E"};
  int unit = 0;
  while (count >= 1000 && unit < 6) count /= 1000, ++unit;
  return fmt::format("{:.{}f}{}", count, unit ? 2 : 0, kUnits[unit]);
}

std::string show_row(const ModuleCost& row) {
  return fmt::format("{:<32} {:>6} {:>9} {:>10} {:>10} {:>10} {:>10}\n", row.name.empty() ? "-" : row.name,
                     row.ops, show_count(static_cast<double>(row.params)), show_count(row.forward),
                     show_count(row.backward), show_bytes(row.saved_bytes), show_seconds(row.seconds));
}

std::string show(const Model& model, const Cluster& cluster, const StepProfile& profile) {
  std::string text =
      fmt::format("{} on one {}, forward and backward, without optimizer\n", model.name, cluster.device.name);
  text += fmt::format("{:<32} {:>6} {:>9} {:>10} {:>10} {:>10} {:>10}\n", "module", "ops", "params",
                      "forward", "backward", "saved", "time");
  for (const ModuleCost& row : profile.modules) text += show_row(row);
  text += show_row(profile.total);
  text += fmt::format("peak {} during {}\n", show_bytes(profile.peak_bytes), profile.peak_op);
  for (const auto& [target, count] : profile.opaque)
    text += fmt::format("{} x {} has no row: it cannot be split, and its flops are a guess\n", count, target);
  return text + "Time from the spec sheet: expect 15 % off or more.\n";
}

Json write_cost(const ModuleCost& row) {
  return {{"name", row.name},
          {"ops", row.ops},
          {"params", row.params},
          {"param_bytes", row.param_bytes},
          {"flops", {{"forward", row.forward}, {"backward", row.backward}}},
          {"saved_bytes", row.saved_bytes},
          {"seconds", row.seconds}};
}

Json write(const Model& model, const Cluster& cluster, const StepProfile& profile, Seconds taken) {
  Json json = write_cost(profile.total);
  json["name"] = model.name;
  json["device"] = cluster.device.name;
  json["peak_bytes"] = profile.peak_bytes;
  json["peak_op"] = profile.peak_op;
  int64_t opaque = 0;
  Json targets = Json::object();
  for (const auto& [target, count] : profile.opaque) {
    opaque += count;
    targets[target] = count;
  }
  json["opaque_ops"] = opaque;
  json["opaque_targets"] = targets;
  json["seconds_to_profile"] = taken;
  json["modules"] = Json::array();
  for (const ModuleCost& row : profile.modules) json["modules"].push_back(write_cost(row));
  return json;
}

void run(const Options& options, const Command& command) {
  Model model = load(options.model);
  Cluster cluster = library_cluster(options.device, 1, 1, "--device");
  auto start = std::chrono::steady_clock::now();
  StepProfile profile = profile_step(model, cluster, options.depth);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  command.answer(write(model, cluster, profile, taken.count()), show(model, cluster, profile));
}

}  // namespace

void add_profile(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model);
  app.add_option("--device", options->device, "a device of the library; `partita devices` lists them")
      ->capture_default_str();
  app.add_option("--depth", options->depth, "parts of a module's path to keep apart")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  app.footer("Example: partita profile gpt2.model.json --device H100-80GB --dtype bf16 --depth 2");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
