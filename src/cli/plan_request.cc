#include "cli/plan_request.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "cli/checks.h"
#include "cli/pricing.h"
#include "plan/recipes/aliases.h"
#include "search/recipes.h"

namespace partita::cli {
namespace {

/// All sizes of a plan and its schedule.
void pin_plan(const Plan& plan, SearchRequest& request) {
  RecipeSpec& to = request.pinned;
  for (const MeshAxis& axis : plan.mesh)
    if (!axis.across) (axis.name.starts_with("tp") ? to.tp : to.dp) *= axis.size;
  to.pp = plan.ranks() / plan.mesh_size();
  to.microbatches = plan.microbatches;
  to.schedule = plan.schedule;
  request.pin_dp = request.pin_tp = request.pin_pp = request.pin_microbatches = true;
  request.pin_schedule = to.pp > 1;
}

/// {"dp": 4, "tp": 2, "pp": 1, "microbatches": 8, "schedule": "1f1b"}, each where it is not to change; or a
/// plan.
void read_pins(const std::string& file, SearchRequest& request) {
  std::string text = read_file(file);
  Json json = parse_json(text, file);
  JsonIn in(json, file);
  if (in.has("format")) return pin_plan(parse_plan(text, file), request);
  in.only({"dp", "tp", "pp", "microbatches", "schedule"});
  auto size = [&](const char* key, int64_t& value, bool& pin) {
    pin = in.has(key);
    if (!pin) return;
    value = in[key].integer();
    if (value < 1) input_error("{}: {}: {} is no size; give 1 or more", file, key, value);
  };
  size("dp", request.pinned.dp, request.pin_dp);
  size("tp", request.pinned.tp, request.pin_tp);
  size("pp", request.pinned.pp, request.pin_pp);
  size("microbatches", request.pinned.microbatches, request.pin_microbatches);
  request.pin_schedule = in.has("schedule");
  if (request.pin_schedule) request.pinned.schedule = in["schedule"].text();
}

void check_pins(const std::string& file, const SearchRequest& request) {
  const RecipeSpec& pinned = request.pinned;
  int64_t product = pinned.dp * pinned.tp * pinned.pp;
  bool all = request.pin_dp && request.pin_tp && request.pin_pp;
  if (request.ranks() % product || (all && request.ranks() != product))
    input_error("{}: dp {} x tp {} x pp {} is {} devices, which {} the {} of {}", file, pinned.dp, pinned.tp,
                pinned.pp, product, all ? "are not" : "do not divide", request.ranks(),
                request.prices.cluster().name);
}

// To allow hsdp is to allow what each of its replicas keeps in shards; to forbid it leaves that alone.
std::vector<std::string> named_ways(const std::vector<std::string>& ways, bool allowed) {
  std::vector<std::string> out;
  for (const std::string& way : ways) {
    if (way == "hsdp") out.push_back(way);
    if (way != "hsdp" || allowed) out.push_back(without_alias(way));
  }
  return out;
}

}  // namespace

void add_plan_request(CLI::App& app, PlanRequestInput& input) {
  add_cluster_input(app, input.cluster);
  add_training_input(app, input.training);
  add_calibration_flag(app, input.calibration);
  app.add_option("--top", input.top, "how many plans to list")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.add_option("--allow", input.allow,
                 fmt::format("only these ways: {}; also {}", fmt::join(known_ways(), ","), show_aliases()))
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--forbid", input.forbid, "not these ways")->delimiter(',')->allow_extra_args(false);
  app.add_option("--pin", input.pin,
                 "a JSON file with what is not to change: dp, tp, pp, microbatches, schedule; or a plan");
  app.add_option("--effort", input.effort, "how much work, 1 to 5: micro-batch sizes tried, plans lowered")
      ->check(whole_number(1, 5))
      ->capture_default_str();
}

PlanRequest load(const PlanRequestInput& input, ModelInput& model) {
  PlanRequest out;
  SearchRequest& request = out.search;
  request.optimizer = load(input.training, model);
  request.prices = prices_of(load(input.cluster), input.calibration);
  out.limit = limit_of(input.cluster, request.prices.cluster());
  request.memory = out.limit.limit;
  request.allow = named_ways(input.allow, true);
  request.forbid = named_ways(input.forbid, false);
  request.top = input.top;
  request.effort = input.effort;
  if (!input.pin.empty()) {
    read_pins(input.pin, request);
    check_pins(input.pin, request);
  }
  return out;
}

void read_batch(const std::string& text, ModelInput& model) {
  if (text.empty() || text == "auto") return;
  bool whole = text.size() < 16 && text.find_first_not_of("0123456789") == text.npos;
  if (!whole || text.find_first_not_of('0') == text.npos)
    input_error("--batch: \"{}\" is not a whole number of 1 or more, nor auto", text);
  model.batch = std::stoll(text);
}

}  // namespace partita::cli
