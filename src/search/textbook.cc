#include "search/textbook.h"

#include <algorithm>
#include <set>

#include "search/parallel.h"
#include "search/recipes.h"

namespace partita {
namespace {

/// Stages are cut between operators, so that there may be more of them than repeated modules.
constexpr int kMostStages = 64;

constexpr Storing kByZero[] = {Storing::kWhole, Storing::kState, Storing::kGradient, Storing::kParameter};

bool stores(const Freedom& freedom, int zero) { return freedom.storings[static_cast<int>(kByZero[zero])]; }

// Without memory to spare everything that may be computed again is.
Textbook textbook_of(const Estimator& estimator, const RecipeSpec& spec) {
  Freedom freedom{.memory = 1, .recompute = spec.recompute};
  freedom.storings.fill(false);
  freedom.storings[static_cast<int>(kByZero[spec.zero])] = true;
  Estimate estimate = estimator.estimate(spec, freedom);
  return {spec, estimator.bound_as_written(spec), estimate.seconds, estimate.worst_peak()};
}

std::vector<RecipeSpec> written(const SearchRequest& request, int64_t batch) {
  Freedom freedom = freedom_of(request);
  std::vector<RecipeSpec> out;
  for (RecipeSpec spec : all_recipes(request, batch, kMostStages))
    for (int zero = 0; zero <= 3; ++zero)
      for (bool recompute : {false, true}) {
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
  std::vector<RecipeSpec> specs = written(request, book.batch());
  std::set<CostKey> keys;
  for (const RecipeSpec& spec : specs) keys.insert(book.key_of(spec));
  book.measure({keys.begin(), keys.end()});
  Estimator estimator(book);
  std::vector<Textbook> all(specs.size()), out;
  in_parallel(specs.size(), [&](size_t i) {
    if (!book.table(book.key_of(specs[i])).refused.empty()) return;
    all[i] = textbook_of(estimator, specs[i]);
  });
  for (Textbook& one : all)
    if (one.bound > 0) out.push_back(std::move(one));
  std::stable_sort(out.begin(), out.end(),
                   [](const Textbook& a, const Textbook& b) { return a.bound < b.bound; });
  return out;
}

}  // namespace partita
