// Random models under random plans: plan_campaign [COUNT] [SEED] [FIRST] [FILE.model.json ...].
// COUNT plans (300) that apply are lowered, certified and run three steps in float64 on thread ranks beside
// one device; the counted peak of every rank must be the predicted one. Plans that do not apply are drawn
// again and, where PARTITA_CAMPAIGN names a folder, counted by reason; model and plan of failures are left
// there. FIRST begins with that case instead of case 0. Captured files are drawn beside the families that
// Partita builds. Exit 1 and the numbers of the case if one fails.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/rewrite/retype.h"
#include "number_at.h"
#include "plan_draws.h"
#include "plan_trial.h"
#include "run/constants.h"

namespace partita::run {
namespace {

/// PARTITA_CAMPAIGN, or null.
const char* folder() { return std::getenv("PARTITA_CAMPAIGN"); }

void keep(uint64_t number, const std::string& model, const std::string& plan) {
  std::ofstream(fmt::format("{}/case-{}.model.json", folder(), number)) << model;
  std::ofstream(fmt::format("{}/case-{}.plan.json", folder(), number)) << plan;
}

struct Tally {
  size_t run = 0, failed = 0, drawn = 0;
  std::map<std::string, size_t> refused;  // by the beginning of the reason
};

void try_case(uint64_t seed, uint64_t number, const std::vector<Captured>& captured, Tally& tally) {
  Draw draw(seed * 1'000'003 + number);
  std::string text, fault;
  DrawnModel drawn;
  Plan plan;
  try {
    drawn = draw_model(draw, captured);
    text = drawn.text;
    plan = draw_plan(draw, drawn);
    text += ": " + plan.summary;
    fault = try_plan(drawn.model, plan, {.ignored_labels = drawn.ignores_labels}, drawn.constants).fault;
    ++tally.run;
  } catch (const InputError& error) {
    constexpr size_t kBeginning = 70;
    ++tally.refused[std::string(error.what()).substr(0, kBeginning)];
  } catch (const std::exception& error) {
    fault = error.what();
    ++tally.run;
  }
  if (fault.empty()) return;
  ++tally.failed;
  if (folder()) keep(number, to_json(drawn.model), to_json(plan));
  fmt::print("case {}: {}: {}\n", number, text, fault);
  std::fflush(stdout);
}

int campaign(size_t count, uint64_t seed, uint64_t first, const std::vector<Captured>& captured) {
  Tally tally;
  for (; tally.run < count; ++tally.drawn) try_case(seed, first + tally.drawn, captured, tally);
  if (folder())
    for (const auto& [why, times] : tally.refused) fmt::print("{:6} {}\n", times, why);
  fmt::print("seed {}: {} random plans of random models, {} failed; {} more did not apply\n", seed, tally.run,
             tally.failed, tally.drawn - tally.run);
  return tally.failed > 0;
}

}  // namespace
}  // namespace partita::run

int main(int argc, char** argv) {
  using namespace partita::run;
  std::vector<Captured> captured;
  for (int k = 4; k < argc; ++k) {
    Model model = retype(parse_model(read_file(argv[k]), argv[k]), DType::kFloat64);
    captured.push_back({model, load_constants(argv[k], model)});
  }
  return campaign(number_at(argc, argv, 1, 300), number_at(argc, argv, 2, 1), number_at(argc, argv, 3, 0),
                  captured);
}
