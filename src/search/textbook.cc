#include "search/textbook.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/parallel.h"
#include "estimate/estimate.h"
#include "estimate/even_stages.h"
#include "search/recipes.h"

namespace partita::search {
namespace {

constexpr Storing kByZero[] = {Storing::kWhole, Storing::kState, Storing::kGradient, Storing::kParameter};

bool stores(const Freedom& freedom, int zero) { return freedom.storings[static_cast<int>(kByZero[zero])]; }

/// Schedules with stages on all devices or several passes have no more of either than this one.
RecipeSpec as_priced(RecipeSpec spec) {
  if (schedule_row(spec.schedule).has_own_recipe()) spec.schedule = kPlainSchedule;
  return spec;
}

// Recipes cut stages between operators, so evenly. Without memory to spare everything that may be computed
// again is.
Textbook textbook_of(const CostBook& book, const RecipeSpec& spec) {
  if (spec.pp > 1) {
    EvenStages even = even_stages(book, as_priced(spec), kByZero[spec.zero]);
    return {spec, even.seconds, even.peak};
  }
  Freedom freedom{.memory = 1, .recompute = spec.recompute};
  freedom.storings.fill(false);
  freedom.storings[static_cast<int>(kByZero[spec.zero])] = true;
  Estimate estimate = Estimator(book).estimate(spec, freedom);
  return {spec, estimate.seconds, estimate.worst_peak()};
}

std::vector<RecipeSpec> written(const SearchRequest& request, const CostBook& book) {
  Freedom freedom = freedom_of(request);
  std::vector<RecipeSpec> out;
  for (RecipeSpec spec : all_recipes(request, book, true))
    for (int zero = 0; zero <= 3; ++zero)
      for (bool recompute : {false, true}) {
        if (!zero && spec.replicas > 1 && !spec.experts) continue;  // nothing is cut
        if ((zero && spec.dp == 1) || (spec.dp > 1 && !stores(freedom, zero))) continue;
        if (recompute && !freedom.recompute) continue;
        spec.zero = zero;
        spec.recompute = recompute;
        out.push_back(spec);
      }
  return out;
}

}  // namespace

std::vector<Textbook> textbook_recipes(CostBook& book, const SearchRequest& request) {
  std::vector<RecipeSpec> specs = written(request, book);
  std::set<CostKey> keys;
  for (const RecipeSpec& spec : specs) keys.insert(book.key_of(spec));
  book.measure({keys.begin(), keys.end()});
  std::vector<Textbook> all(specs.size()), out;
  in_parallel(specs.size(), book.threads(), [&](size_t i) {
    if (!book.table(book.key_of(specs[i])).refused.empty()) return;
    try {
      all[i] = textbook_of(book, specs[i]);
    } catch (const InputError&) {
      return;  // micro-batches that do not suit the schedule
    }
  });
  for (Textbook& one : all)
    if (one.seconds > 0) out.push_back(std::move(one));
  std::stable_sort(out.begin(), out.end(),
                   [](const Textbook& a, const Textbook& b) { return a.seconds < b.seconds; });
  return out;
}

}  // namespace partita::search
