#include "rival_plans.h"

#include <algorithm>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/parallel.h"
#include "estimate/device_choice.h"
#include "search/judge.h"
#include "search/recipes.h"
#include "search/textbook.h"
#include "search/write_plan.h"

namespace partita::search {
namespace {

std::vector<Plan> recipe_plans(const Model& model, CostBook& costs, const Prices& prices) {
  std::vector<Plan> out;
  RecipeBook book(model);
  SearchRequest request{.prices = prices};
  for (const Textbook& one : textbook_recipes(costs, request)) try {
      out.push_back(book.plan(one.spec));
    } catch (const InputError&) {
      continue;  // does not apply to this model
    }
  return out;
}

std::vector<Plan> random_plans(CostBook& book, const Prices& prices, int count, uint32_t seed) {
  std::mt19937 dice(seed);
  auto roll = [&](size_t sides) { return static_cast<size_t>(dice() % sides); };
  const Shrunk& shrunk = book.shrunk();
  int units = static_cast<int>(shrunk.stands_for.size());
  SearchRequest request{.prices = prices};
  std::vector<RecipeSpec> specs = all_recipes(request, book);
  std::vector<Plan> out;
  for (int tries = 0; tries < 10 * count && out.size() < static_cast<size_t>(count); ++tries) {
    const RecipeSpec& spec = specs[roll(specs.size())];
    book.measure({book.key_of(spec)});
    Estimate estimate = Estimator(book).estimate(spec, {.memory = INT64_MAX / 4});
    if (!estimate.refused.empty()) continue;
    std::vector<int> cuts;
    for (int u = 1; u < units; ++u) cuts.push_back(u);
    std::shuffle(cuts.begin(), cuts.end(), dice);
    std::copy_n(cuts.begin(), estimate.firsts.size() - 1, estimate.firsts.begin() + 1);
    std::sort(estimate.firsts.begin(), estimate.firsts.end());
    for (int u = 0; u < units; ++u)
      estimate.again[u] = !shrunk.units.all[u].module.empty() && roll(3) == 0
                              ? static_cast<uint8_t>(kAgain + roll(kKeeps))
                              : uint8_t{0};
    const UnitCosts& costs = book.table(book.key_of(spec)).keep;
    StoringPrices stored(prices, spec);
    for (size_t p = 0; p < estimate.storing.size(); ++p)
      for (Storing& storing : estimate.storing[p])
        if (stored.cuts(costs.parameters[p]) && costs.parameters[p].units.size() == 1)
          storing = static_cast<Storing>(roll(spec.microbatches > 1 ? kStorings : kStorings - 1));
    out.push_back(write_plan(book, estimate));
    out.back().summary += " (random)";
  }
  return out;
}

}  // namespace

std::vector<Known> simulated(const Model& model, const Prices& prices, const std::vector<Plan>& plans) {
  SearchRequest request{.prices = prices};
  Judge judge(model, request);
  std::vector<std::optional<Known>> made(plans.size());
  in_parallel(plans.size(), 0, [&](size_t i) {
    try {
      Candidate candidate = judge.judge(plans[i]);
      made[i] = {candidate.step_seconds, candidate.worst_peak(), plans[i].summary};
    } catch (const InputError&) {
      made[i].reset();
    }
  });
  std::vector<Known> out;
  for (std::optional<Known>& one : made)
    if (one) out.push_back(*std::move(one));
  return out;
}

std::vector<Known> rivals(const Model& model, const Prices& prices, int random, uint32_t seed) {
  CostBook book(model, prices, {});
  std::vector<Plan> plans = recipe_plans(model, book, prices);
  std::vector<Plan> others = random_plans(book, prices, random, seed);
  plans.insert(plans.end(), others.begin(), others.end());
  return simulated(model, prices, plans);
}

}  // namespace partita::search
