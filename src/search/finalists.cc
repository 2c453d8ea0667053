#include "search/finalists.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "search/judge.h"
#include "search/neighbours.h"
#include "search/parallel.h"
#include "search/reasons.h"
#include "search/textbook.h"
#include "search/write_plan.h"

namespace partita {
namespace {

/// Plans judged side by side; fixed, so that what is learned does not depend on the cores.
constexpr size_t kRound = 8;
/// Work is counted in ops: to lower one costs as much as to walk it for so many micro-batches.
constexpr int64_t kLowering = 10;
constexpr int64_t kWorkPerEffort = 100'000;  // times the square of the effort
constexpr int64_t kMostWork = 4'000'000;     // of one plan
constexpr int64_t kMostTextbookOps = 4'000;  // of a model that recipes are written for
/// Estimates of one kind are off by about as much; what is left of that.
constexpr double kSlack = 0.97;
/// Recipes whose estimated bytes are so many percent of the limit are not tried; their stages are cut
/// elsewhere than those of the estimate.
constexpr int kTooMuch = 115, kTooMuchInStages = 180;
constexpr int kTries = 3;
/// Recipes that are estimated again, and with how many smaller limits: a fixed ladder, so that more memory
/// offers all that less did.
constexpr size_t kRefined = 8;
constexpr int kRungs = 6;
constexpr double kRungsPerDoubling = 8;
/// Bytes may be counted too high as well.
constexpr int kPercentMore[] = {2, 5, 10};
/// Plans that are changed step by step, and how many ways and steps are tried.
constexpr size_t kSeeds = 6, kNeighbours = 24;
constexpr int kSteps = 8;

/// Estimates that are off for the same reasons.
using Kind = std::tuple<bool, bool, bool, std::string>;
Kind kind_of(const RecipeSpec& spec) {
  return {spec.dp > 1, spec.tp > 1, spec.sequence, spec.pp > 1 ? spec.schedule : ""};
}

struct Entry {
  RecipeSpec spec;
  std::optional<Estimate> estimate;  // none: as its recipe is written
  Seconds expected = 0;              // estimated, or a bound
  bool always = false;
  int tries = 0;
};

bool ranks_before(const Candidate& a, const Candidate& b) {
  return std::tuple(!a.lowered, a.step_seconds, a.worst_peak()) <
         std::tuple(!b.lowered, b.step_seconds, b.worst_peak());
}

class Finals {
 public:
  Finals(CostBook& book, const SearchRequest& request, const Freedom& freedom, SearchResult& result)
      : book_(book), request_(request), freedom_(freedom), result_(result), judge_(book.model(), request) {
    work_left_ = kWorkPerEffort * request.effort * request.effort;
  }

  void run(const Leads& leads) {
    for (const Estimate& estimate : leads.plain) add(estimate, work_of(estimate.spec) <= kWorkPerEffort);
    for (const Estimate& estimate : leads.fitting) add(estimate, false);
    rounds();
    refine();
    rounds();
    judge_textbooks();
    if (best_ == HUGE_VAL)
      for (const Estimate& estimate : leads.beyond) add(estimate, true);
    rounds();
    climb();
    write_lists(leads);
  }

 private:
  void add(const Estimate& estimate, bool always) {
    entries_.push_back(
        {.spec = estimate.spec, .estimate = estimate, .expected = estimate.seconds, .always = always});
  }

  bool stopped() const { return request_.stop && *request_.stop; }

  int64_t work_of(const RecipeSpec& spec) const {
    return static_cast<int64_t>(book_.model().ops.size()) * (kLowering + spec.microbatches);
  }

  // Of plans that each cost as much as many small ones, a few are judged.
  bool affordable(int64_t work) const {
    if (work <= kWorkPerEffort) return work <= work_left_;
    return costly_ < (request_.effort + 1) / 2 && work <= kMostWork;
  }

  double promise(const Entry& entry) const {
    if (!entry.estimate) return entry.expected;
    auto known = ratios_.find(kind_of(entry.spec));
    return entry.expected * (known != ratios_.end() ? known->second : least_ratio_);
  }

  /// The next entries worth judging, and their plans.
  std::vector<std::pair<Entry, Plan>> next_round() {
    std::stable_sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
      return std::pair(!a.always, promise(a)) < std::pair(!b.always, promise(b));
    });
    std::vector<std::pair<Entry, Plan>> round;
    std::vector<Entry> left;
    std::set<Character> seen = characters_;
    for (Entry& entry : entries_) {
      bool fresh = seen.size() < request_.top && !seen.contains(character_of(entry.spec));
      bool worth = entry.always || fresh || promise(entry) * kSlack < best_;
      int64_t work = work_of(entry.spec);
      if (round.size() == kRound || !worth || !affordable(work)) {
        left.push_back(std::move(entry));
        continue;
      }
      std::optional<Plan> plan = write(entry);
      if (!plan) continue;
      costly_ += work > kWorkPerEffort;
      work_left_ = std::max<int64_t>(work_left_ - work, 0);
      seen.insert(character_of(entry.spec));
      round.emplace_back(std::move(entry), *std::move(plan));
    }
    entries_ = std::move(left);
    return round;
  }

  /// Nothing where it was judged before, or does not apply.
  std::optional<Plan> write(const Entry& entry) {
    try {
      Plan plan = entry.estimate ? write_plan(book_, *entry.estimate) : textbook(entry.spec);
      plan.memory = request_.memory;
      Plan nameless = plan;
      nameless.summary.clear();
      if (known_.insert(to_json(nameless)).second) return plan;
    } catch (const InputError& error) {
      refuse(entry, error);
    }
    return std::nullopt;
  }

  Plan textbook(const RecipeSpec& spec) {
    if (!recipes_) recipes_.emplace(book_.model());
    Plan plan = recipes_->plan(spec);
    plan.batch = book_.batch();
    plan.cluster = request_.prices.cluster().name;
    return plan;
  }

  // Costs by unit do not see what only the whole step shows; recipes are tried without knowing whether they
  // apply.
  void refuse(const Entry& entry, const InputError& error) {
    if (entry.estimate)
      result_.refused.push_back(fmt::format("{}: {}", summary_of(book_, *entry.estimate), error.what()));
  }

  void rounds() {
    while (!stopped()) {
      std::vector<std::pair<Entry, Plan>> round = next_round();
      if (round.empty()) return;
      std::vector<std::optional<Candidate>> made(round.size());
      std::vector<std::optional<InputError>> failed(round.size());
      in_parallel(round.size(), [&](size_t i) {
        try {
          made[i] = judge_.judge(round[i].second);
        } catch (const InputError& error) {
          failed[i] = error;
        }
      });
      for (size_t i = 0; i < round.size(); ++i) {
        if (failed[i]) work_left_ += work_of(round[i].first.spec), refuse(round[i].first, *failed[i]);
        if (made[i]) take(round[i].first, *std::move(made[i]));
      }
    }
    result_.interrupted = true;
  }

  void take(const Entry& entry, Candidate candidate) {
    candidate.spec = entry.spec;
    candidate.estimated_seconds = entry.expected;
    if (entry.estimate) learn(entry, candidate);
    if (candidate.fits) {
      best_ = std::min(best_, candidate.step_seconds);
      characters_.insert(character_of(entry.spec));
    } else if (entry.estimate && entry.estimate->fits && entry.tries < kTries) {
      retry(entry, candidate);
    }
    judged_.push_back(std::move(candidate));
  }

  void learn(const Entry& entry, const Candidate& candidate) {
    double ratio = candidate.step_seconds / entry.expected;
    least_ratio_ = std::min(least_ratio_, ratio);
    auto [known, fresh] = ratios_.try_emplace(kind_of(entry.spec), ratio);
    known->second = std::min(known->second, ratio);
  }

  // Bytes were counted too low: leave as much room as was missing.
  void retry(const Entry& entry, const Candidate& candidate) {
    Freedom less = freedom_;
    less.memory -= candidate.worst_peak() - freedom_.memory;
    less.memory = std::min<Bytes>(less.memory, freedom_.memory / 100 * (99 - entry.tries));
    Estimate next = Estimator(book_).estimate(entry.spec, less);
    if (!next.fits || !next.refused.empty()) return;
    add(next, entry.always);
    entries_.back().tries = entry.tries + 1;
  }

  /// The recipes of the best plans.
  std::vector<RecipeSpec> best_specs() const {
    std::vector<const Candidate*> order;
    for (const Candidate& candidate : judged_)
      if (candidate.fits) order.push_back(&candidate);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return ranks_before(*a, *b); });
    std::vector<RecipeSpec> specs;
    for (const Candidate* candidate : order)
      if (specs.size() < kRefined && std::none_of(specs.begin(), specs.end(), [&](const RecipeSpec& spec) {
            return summary(spec) == summary(candidate->spec);
          }))
        specs.push_back(candidate->spec);
    return specs;
  }

  void refine() {
    std::vector<Freedom> freedoms;
    for (const char* way : {"dp", "zero1", "zero2", "zero3"}) {
      Freedom alike = freedom_;
      bool any = false;
      for (const StoringRow& row : kStoringRows) {
        alike.storings[static_cast<int>(row.storing)] &= std::string_view(row.name) == way;
        any = any || alike.storings[static_cast<int>(row.storing)];
      }
      if (any) freedoms.push_back(alike);
    }
    double rung = std::floor(std::log2(static_cast<double>(freedom_.memory)) * kRungsPerDoubling);
    for (int k = 0; k < kRungs; ++k) {
      Freedom less = freedom_;
      less.memory = static_cast<Bytes>(std::exp2((rung - k) / kRungsPerDoubling));
      freedoms.push_back(less);
    }
    for (int percent : kPercentMore) {
      Freedom more = freedom_;
      more.memory += more.memory / 100 * percent;
      freedoms.push_back(more);
    }
    for (const RecipeSpec& spec : best_specs()) {
      if (!affordable(work_of(spec))) continue;
      for (const Freedom& freedom : freedoms)
        if (Estimate estimate = Estimator(book_).estimate(spec, freedom);
            estimate.fits && estimate.refused.empty())
          add(estimate, false);
    }
  }

  void judge_textbooks() {
    if (static_cast<int64_t>(book_.model().ops.size()) > kMostTextbookOps) return;
    std::vector<Textbook> recipes = textbook_recipes(book_, request_);
    if (best_ == HUGE_VAL) judge_smallest(recipes);
    int64_t rest = std::exchange(work_left_, work_left_ / 3 * 2);
    rest -= work_left_;
    for (Textbook& one : recipes)
      if (one.peak <= freedom_.memory / 100 * (one.spec.pp > 1 ? kTooMuchInStages : kTooMuch))
        entries_.push_back({.spec = std::move(one.spec), .expected = one.bound});
    rounds();
    std::erase_if(entries_, [](const Entry& entry) { return !entry.estimate; });
    work_left_ += rest;
  }

  // Nothing fits yet: first those that need least.
  void judge_smallest(std::vector<Textbook> recipes) {
    std::erase_if(recipes, [](const Textbook& one) { return one.peak == 0; });
    std::stable_sort(recipes.begin(), recipes.end(),
                     [](const Textbook& a, const Textbook& b) { return a.peak < b.peak; });
    if (recipes.size() > 2 * kRound) recipes.resize(2 * kRound);
    for (Textbook& one : recipes)
      entries_.push_back({.spec = std::move(one.spec), .expected = one.bound, .always = true});
    rounds();
  }

  // Estimates place things well, and count bytes to within a few percent: at the limit single decisions are
  // tried out.
  void climb() {
    std::vector<std::pair<Seconds, Candidate>> seeds;
    std::set<std::string> seen;
    for (const Candidate& candidate : judged_) {
      if (!candidate.fits || (candidate.plan.recompute.empty() && candidate.plan.store.empty())) continue;
      Seconds bound = without_recompute(candidate.spec);
      if (bound < best_) seeds.emplace_back(bound, candidate);
    }
    // What they may come to first; of one recipe the fastest.
    std::stable_sort(seeds.begin(), seeds.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.step_seconds) < std::pair(b.first, b.second.step_seconds);
    });
    std::erase_if(seeds, [&](const auto& seed) {
      return seen.size() == kSeeds || !seen.insert(summary(plain_spec(seed.second.spec))).second;
    });
    for (auto& [bound, seed] : seeds)
      for (int step = 0; step < kSteps && !stopped() && climb_once(seed); ++step) continue;
  }

  /// What a recipe cannot be below, however its parameters are stored.
  Seconds without_recompute(const RecipeSpec& spec) const {
    RecipeSpec kept = plain_spec(spec);
    Seconds least = HUGE_VAL;
    for (kept.zero = 0; kept.zero <= (spec.dp > 1 ? 3 : 0); ++kept.zero)
      least = std::min(least, Estimator(book_).bound_as_written(kept));
    return least;
  }

  static RecipeSpec plain_spec(RecipeSpec spec) {
    spec.zero = 0;
    spec.recompute = false;
    return spec;
  }

  /// Goes on to the fastest neighbour that fits; false where none is faster.
  bool climb_once(Candidate& seed) {
    std::vector<Plan> plans;
    for (Plan& plan : neighbours(book_.model(), seed.plan, kNeighbours)) {
      Plan nameless = plan;
      nameless.summary.clear();
      if (work_of(seed.spec) > work_left_ || !known_.insert(to_json(nameless)).second) continue;
      work_left_ -= work_of(seed.spec);
      plans.push_back(std::move(plan));
    }
    std::vector<std::optional<Candidate>> made(plans.size());
    in_parallel(plans.size(), [&](size_t i) {
      try {
        made[i] = judge_.judge(plans[i]);
      } catch (const InputError&) {
        made[i].reset();  // not every mixture can be lowered
      }
    });
    bool moved = false;
    for (std::optional<Candidate>& next : made) {
      if (!next) continue;
      next->spec = seed.spec;
      next->estimated_seconds = seed.estimated_seconds;
      judged_.push_back(*next);
      if (!next->fits || !ranks_before(*next, seed)) continue;
      best_ = std::min(best_, next->step_seconds);
      seed = *std::move(next);
      moved = true;
    }
    return moved;
  }

  // One plan of each character, and plain data parallel, which everybody knows.
  void write_lists(const Leads& leads) {
    result_.lowered = static_cast<int64_t>(judged_.size());
    for (Candidate& candidate : judged_)
      (candidate.fits ? result_.fitting : result_.beyond).push_back(std::move(candidate));
    if (characters_.size() < request_.top) add_estimated(leads);
    std::stable_sort(result_.fitting.begin(), result_.fitting.end(), ranks_before);
    keep_characters(leads);
    std::stable_sort(result_.beyond.begin(), result_.beyond.end(),
                     [](const Candidate& a, const Candidate& b) { return a.worst_peak() < b.worst_peak(); });
    keep_least(leads);
    certify_shown();
    give_reasons(request_, result_);
  }

  void add_estimated(const Leads& leads) {
    std::set<Character> seen = characters_;
    for (const Estimate& estimate : leads.fitting)
      if (seen.insert(character_of(estimate.spec)).second) result_.fitting.push_back(estimated(estimate));
    if (judged_.empty())
      for (const auto* list : {&leads.beyond, &leads.plain})
        for (const Estimate& estimate : *list)
          if (!estimate.fits) result_.beyond.push_back(estimated(estimate));
  }

  Candidate estimated(const Estimate& estimate) {
    Candidate candidate{.plan = write_plan(book_, estimate), .spec = estimate.spec};
    candidate.plan.memory = request_.memory;
    candidate.step_seconds = candidate.estimated_seconds = estimate.seconds;
    candidate.fits = estimate.fits;
    int64_t mesh = estimate.spec.dp * estimate.spec.tp;
    for (Bytes peak : estimate.peak_bytes)
      candidate.peak_bytes.insert(candidate.peak_bytes.end(), mesh, peak);
    return candidate;
  }

  static bool is_plain(const Leads& leads, const Candidate& candidate) {
    return !leads.plain.empty() && candidate.plan.store.empty() && candidate.plan.recompute.empty() &&
           candidate.plan.loops.empty() && candidate.spec.dp == leads.plain.front().spec.dp &&
           candidate.spec.microbatches == 1;
  }

  void keep_characters(const Leads& leads) {
    std::set<Character> seen;
    std::vector<Candidate> kept, plain;
    for (Candidate& candidate : result_.fitting) {
      bool fresh = kept.size() < request_.top && seen.insert(character_of(candidate.spec)).second;
      if (fresh)
        kept.push_back(std::move(candidate));
      else if (is_plain(leads, candidate) && plain.empty())
        plain.push_back(std::move(candidate));
    }
    if (request_.top > 1)
      for (Candidate& candidate : plain) kept.push_back(std::move(candidate));
    result_.fitting = std::move(kept);
  }

  void keep_least(const Leads& leads) {
    std::set<std::string> seen;
    std::vector<Candidate> kept;
    for (Candidate& candidate : result_.beyond)
      if ((kept.size() < request_.top && seen.insert(candidate.plan.summary).second) ||
          is_plain(leads, candidate))
        kept.push_back(std::move(candidate));
    result_.beyond = std::move(kept);
  }

  // The first is certified at any cost; the others as far as they are cheap.
  void certify_shown() {
    std::vector<const Plan*> shown;
    for (const Candidate& candidate : result_.fitting)
      if (candidate.lowered && (shown.empty() || work_of(candidate.spec) <= kWorkPerEffort))
        shown.push_back(&candidate.plan);
    in_parallel(shown.size(), [&](size_t i) { judge_.certify(*shown[i]); });
  }

  CostBook& book_;
  const SearchRequest& request_;
  const Freedom& freedom_;
  SearchResult& result_;
  Judge judge_;
  std::optional<RecipeBook> recipes_;
  std::vector<Entry> entries_;
  std::vector<Candidate> judged_;
  std::set<std::string> known_;  // plans, as text
  std::set<Character> characters_;
  std::map<Kind, double> ratios_;
  double least_ratio_ = 1;
  Seconds best_ = HUGE_VAL;
  int64_t work_left_ = 0;
  int costly_ = 0;  // judged
};

}  // namespace

Character character_of(const RecipeSpec& spec) {
  return {spec.dp, spec.tp, spec.pp, spec.pp > 1 ? spec.schedule : ""};
}

void judge_finalists(CostBook& book, const SearchRequest& request, const Freedom& freedom, const Leads& leads,
                     SearchResult& result) {
  Finals(book, request, freedom, result).run(leads);
}

}  // namespace partita
