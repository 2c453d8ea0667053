#include "search/finalists.h"

#include <algorithm>
#include <cmath>

#include "search/climb.h"
#include "search/fill.h"
#include "search/judging.h"
#include "search/reasons.h"
#include "search/refine.h"
#include "search/shortlist.h"

namespace partita::search {
namespace {

/// Of the work that is left where recipes are judged; what then is left is for climbing.
constexpr double kTextbookShare = 2.0 / 3;
/// Of the work that is left then where plans are changed one decision at a time, up and then down.
constexpr double kClimbShare = 1.0 / 2;
/// Recipes that are tried together where nothing fits.
constexpr size_t kSmallest = 8;

// Nothing fits yet: those that need least, until one of them fits.
void judge_smallest(Judging& judging, std::vector<Textbook> recipes) {
  std::erase_if(recipes, [](const Textbook& one) { return one.peak == 0; });
  std::stable_sort(recipes.begin(), recipes.end(),
                   [](const Textbook& a, const Textbook& b) { return a.peak < b.peak; });
  for (size_t i = 0; i < recipes.size() && judging.best() == HUGE_VAL; i += kSmallest) {
    for (size_t k = i; k < std::min(i + kSmallest, recipes.size()); ++k) judging.add(recipes[k], true);
    judging.rounds();
  }
}

void judge_textbooks(Judging& judging, CostBook& book, const SearchRequest& request) {
  if (book.large()) return;  // one recipe costs as much as an estimate of them all
  std::vector<Textbook> recipes = textbook_recipes(book, request);
  if (judging.best() == HUGE_VAL) judge_smallest(judging, recipes);
  for (const Textbook& one : recipes) judging.add(one);
  judging.rounds(kTextbookShare);
}

void judge_leads(Judging& judging, CostBook& book, const SearchRequest& request, const Freedom& freedom,
                 const Leads& leads) {
  for (const Estimate& estimate : leads.plain) judging.add(estimate, judging.cheap(estimate.spec));
  for (const Estimate& estimate : leads.fitting) judging.add(estimate);
  judging.rounds();
  refine(judging, book, freedom, leads.beyond);
  judging.rounds();
  judge_textbooks(judging, book, request);
  if (judging.best() == HUGE_VAL)
    for (const Estimate& estimate : leads.beyond) judging.add(estimate, true);
  judging.rounds(kTextbookShare);
  judging.spend(kClimbShare, [&] { climb(judging, book, freedom); });
  judging.spend(kClimbShare, [&] { descend(judging, book, freedom); });
  judging.spend(kClimbShare, [&] { fill(judging, book, freedom); });
  judging.doubt();
  judging.rounds(kTextbookShare);
  climb(judging, book, freedom);
}

}  // namespace

void judge_finalists(CostBook& book, const SearchRequest& request, const Freedom& freedom, const Leads& leads,
                     SearchResult& result) {
  Judging judging(book, request, freedom, result);
  try {
    if (!result.interrupted) judge_leads(judging, book, request, freedom, leads);
  } catch (const Interrupted&) {
    result.interrupted = true;
  }
  write_shortlist(judging, book, request, leads, result);
  give_reasons(request, result);
}

}  // namespace partita::search
