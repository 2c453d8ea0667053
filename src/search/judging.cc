#include "search/judging.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "search/write_plan.h"

namespace partita::search {
namespace {

/// Plans judged side by side; fixed, so that what is learned does not depend on the cores.
constexpr size_t kRound = 8;
/// Work is counted in ops: to lower one costs as much as to walk it for so many micro-batches.
constexpr int64_t kLowering = 10;
constexpr int64_t kWorkPerEffort = 300'000;  // about 0.15 s of one core; times the square of the effort
constexpr int64_t kCheapWork = 80'000;       // of a plan that is judged without counting how many
constexpr int64_t kMostWork = 4'000'000;     // of one plan: some seconds
constexpr int kMostCostly = 8;               // of the others, one at a time, until one fits
/// Of expectations of one kind some are off by less than those that were judged. Estimates are of the very
/// plan; recipes do not cut their stages quite as evenly as is expected of them, and what they need is up to
/// a quarter less than expected.
constexpr double kEstimateSlack = 0.97, kRecipeSlack = 0.9, kBytesSlack = 0.8;
/// Of the best, below which a plan that is costly to judge must promise to be.
constexpr double kWorthMuch = 0.99;
/// What they are multiplied with where there is work left.
constexpr double kDoubt = 0.9;
/// How often an estimate is made again with less memory, and the share of what was missing that is left
/// beside.
constexpr int kTries = 3, kLumps = 16;

}  // namespace

Character character_of(const RecipeSpec& spec) {
  return {spec.dp, spec.replicas, spec.tp, spec.pp, spec.experts, spec.pp > 1 ? spec.schedule : ""};
}

bool ranks_before(const Candidate& a, const Candidate& b) {
  return std::tuple(!a.lowered, a.step_seconds, a.worst_peak()) <
         std::tuple(!b.lowered, b.step_seconds, b.worst_peak());
}

Judging::Judging(CostBook& book, const SearchRequest& request, const Freedom& freedom, SearchResult& result)
    : book_(book), request_(request), freedom_(freedom), result_(result), judge_(book.model(), request) {
  work_left_ = forgiven_left_ = kWorkPerEffort * request.effort * request.effort;
}

// Estimates are off by what waits for each other, which the mesh and the schedule decide; recipes also by
// where their stages are cut and by what is computed again.
Judging::Kind Judging::kind_of(const Entry& entry) {
  const RecipeSpec& spec = entry.spec;
  bool recipe = !entry.estimate;
  return {recipe,
          spec.dp > 1,
          spec.tp > 1,
          spec.sequence,
          spec.pp > 1 ? spec.schedule : "",
          recipe && spec.pp > 1 ? spec.chunks : 0,
          recipe && spec.recompute};
}

void Judging::add(const Estimate& estimate, bool always) {
  entries_.push_back({.spec = estimate.spec,
                      .estimate = estimate,
                      .expected = estimate.seconds,
                      .peak = estimate.worst_peak(),
                      .always = always});
}

void Judging::add(const Textbook& recipe, bool always) {
  entries_.push_back(
      {.spec = recipe.spec, .expected = recipe.seconds, .peak = recipe.peak, .always = always});
}

int64_t Judging::work_of(const RecipeSpec& spec) const {
  return static_cast<int64_t>(book_.model().ops.size()) * (kLowering + spec.microbatches);
}

bool Judging::cheap(const RecipeSpec& spec) const { return work_of(spec) <= kCheapWork; }

// Of plans that each cost as much as many small ones, a few are judged; more only as long as none of them
// fits.
bool Judging::affordable(int64_t work) const {
  if (work <= kCheapWork) return work <= work_left_;
  int most = best_ == HUGE_VAL ? kMostCostly : (request_.effort + 1) / 2;
  return !doubt_ && costly_ < most && work <= kMostWork;
}

Seconds Judging::promise(const Entry& entry) const {
  auto known = ratios_.find(kind_of(entry));
  if (known != ratios_.end()) return entry.expected * known->second;
  // What is hidden of communication makes all of them shorter than expected.
  return entry.estimate || request_.prices.overlaps() ? entry.expected * least_ratio_ : entry.expected;
}

// What is costly to judge is believed to be off by as much as others of its kind were; what was estimated
// again knows that already.
bool Judging::worth_much(const Entry& entry) const {
  auto known = byte_ratios_.find({kind_of(entry), entry.spec.loss_pieces > 1});
  double ratio = known == byte_ratios_.end() ? 1 : known->second;
  bool fits = static_cast<double>(entry.peak) * ratio <= static_cast<double>(freedom_.memory);
  return (fits || entry.tries > 0) && promise(entry) < best_ * kWorthMuch;
}

bool Judging::worth(const Entry& entry, const std::set<Character>& seen) const {
  if (entry.always) return true;
  double doubt = doubt_ ? kDoubt : 1, slack = doubt * (entry.estimate ? kEstimateSlack : kRecipeSlack);
  if (static_cast<double>(entry.peak) * kBytesSlack * doubt > static_cast<double>(freedom_.memory))
    return false;
  if (!cheap(entry.spec)) return worth_much(entry);
  bool fresh = seen.size() < request_.top && !seen.contains(character_of(entry.spec));
  return fresh || promise(entry) * slack < best_;
}

/// The next entries worth judging, and their plans.
Judging::Round Judging::next_round() {
  std::stable_sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    return std::pair(!a.always, promise(a)) < std::pair(!b.always, promise(b));
  });
  Round round;
  std::vector<Entry> left;
  std::set<Character> seen = characters_;
  bool costly = false;
  for (Entry& entry : entries_) {
    int64_t work = work_of(entry.spec);
    bool full = round.size() == kRound || (work > kCheapWork && costly);
    if (full || !worth(entry, seen) || !affordable(work)) {
      left.push_back(std::move(entry));
      continue;
    }
    std::optional<Plan> plan = write(entry);
    if (!plan) continue;
    costly = costly || work > kCheapWork;
    costly_ += work > kCheapWork;
    work_left_ = std::max<int64_t>(work_left_ - work, 0);
    seen.insert(character_of(entry.spec));
    round.emplace_back(std::move(entry), *std::move(plan));
  }
  entries_ = std::move(left);
  return round;
}

/// Nothing where it was judged before, or does not apply.
std::optional<Plan> Judging::write(const Entry& entry) {
  try {
    Plan plan = entry.estimate ? write_plan(book_, *entry.estimate) : textbook(entry.spec);
    plan.memory = request_.memory;
    if (is_new(plan)) return plan;
  } catch (const InputError& error) {
    refuse(entry, error);
  } catch (const std::logic_error& error) {
    if (request_.strict) throw;
    leave_out({summary(entry.spec), error.what(), std::nullopt});
  }
  return std::nullopt;
}

std::string Judging::text_of(Plan plan) {
  plan.summary.clear();
  return to_json(plan);
}

bool Judging::is_new(const Plan& plan) { return known_.try_emplace(text_of(plan)).second; }

RecipeBook& Judging::recipes() {
  if (!recipes_) recipes_.emplace(book_.model());
  return *recipes_;
}

Plan Judging::textbook(const RecipeSpec& spec) {
  Plan plan = recipes().plan(spec);
  plan.batch = book_.batch();
  plan.cluster = request_.prices.cluster().name;
  return plan;
}

// Costs by unit do not see what only the whole step shows; recipes are tried without knowing whether they
// apply.
void Judging::refuse(const Entry& entry, const InputError& error) {
  if (entry.estimate)
    result_.refused.push_back(fmt::format("{}: {}", summary_of(book_, *entry.estimate), error.what()));
}

void Judging::rounds(double share) {
  spend(share, [&] {
    for (Round round = next_round(); !round.empty(); round = next_round()) judge_round(round);
  });
}

void Judging::judge_larger(double more, size_t most) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [&](const Entry& a, const Entry& b) { return promise(a) < promise(b); });
  std::vector<Entry> left;
  Round round;
  for (Entry& entry : entries_) {
    bool near = static_cast<double>(entry.peak) * kBytesSlack <= more * static_cast<double>(freedom_.memory);
    int64_t work = work_of(entry.spec);
    if (round.size() == most || !near || promise(entry) >= best_ || !cheap(entry.spec) || !affordable(work)) {
      left.push_back(std::move(entry));
      continue;
    }
    std::optional<Plan> plan = write(entry);
    if (!plan) continue;
    work_left_ = std::max<int64_t>(work_left_ - work, 0);
    round.emplace_back(std::move(entry), *std::move(plan));
  }
  entries_ = std::move(left);
  judge_round(round);
}

Candidate Judging::judge(const Plan& plan) {
  int64_t number = ++begun_;
  if (request_.progress) request_.progress({"lowering plan", number, 0, best_ == HUGE_VAL ? 0 : best_});
  return judge_.judge(plan);
}

Judging::Outcome Judging::outcome_of(const Plan& plan) {
  try {
    return {.candidate = judge(plan)};
  } catch (const InputError& error) {
    return {.refused = error};
  } catch (const std::logic_error& error) {
    if (request_.strict) throw;
    return {.fault = PlanFault{plan.summary, error.what(), plan}};
  }
}

std::optional<PlanFault> Judging::certify(const Plan& plan) {
  try {
    judge_.certify(plan);
  } catch (const std::logic_error& error) {
    if (request_.strict) throw;
    return PlanFault{plan.summary, error.what(), plan};
  }
  return std::nullopt;
}

void Judging::leave_out(PlanFault fault) {
  if (fault.plan) left_out_.insert(text_of(*fault.plan));
  result_.faults.push_back(std::move(fault));
  std::erase_if(characters_, [&](const Character& character) {
    return std::none_of(judged_.begin(), judged_.end(), [&](const Candidate& one) {
      return one.fits && character_of(one.spec) == character && !left_out(one.plan);
    });
  });
}

// What failed is as good as not tried, as long as that takes no more work than the whole search may.
void Judging::forgive(const RecipeSpec& spec) {
  int64_t back = std::min(work_of(spec), forgiven_left_);
  forgiven_left_ -= back;
  work_left_ += back;
  if (!cheap(spec) && ++costly_failed_ <= kMostCostly) --costly_;
}

void Judging::judge_round(const Round& round) {
  std::vector<Outcome> made(round.size());
  try {
    in_parallel(round.size(), request_.threads, [&](size_t i) { made[i] = outcome_of(round[i].second); });
  } catch (const Interrupted&) {
    for (Outcome& one : made)
      if (one.candidate) judged_.push_back(*std::move(one.candidate));
    throw;
  }
  for (size_t i = 0; i < round.size(); ++i) {
    const Entry& entry = round[i].first;
    if (made[i].refused) work_left_ += work_of(entry.spec), refuse(entry, *made[i].refused);
    if (made[i].fault) forgive(entry.spec), leave_out(*std::move(made[i].fault));
    if (!made[i].candidate) continue;
    known_[text_of(round[i].second)] = judged_.size();
    take(entry, *std::move(made[i].candidate));
  }
}

void Judging::take(const Entry& entry, Candidate candidate) {
  candidate.spec = entry.spec;
  candidate.estimated_seconds = entry.expected;
  learn(entry, candidate);
  if (candidate.fits) {
    best_ = std::min(best_, candidate.step_seconds);
    characters_.insert(character_of(entry.spec));
  } else if (entry.estimate && entry.estimate->fits && entry.tries < kTries) {
    retry(entry, candidate);
  }
  judged_.push_back(std::move(candidate));
}

void Judging::learn(const Entry& entry, const Candidate& candidate) {
  double ratio = candidate.step_seconds / entry.expected;
  if (entry.estimate) least_ratio_ = std::min(least_ratio_, ratio);
  auto [known, fresh] = ratios_.try_emplace(kind_of(entry), ratio);
  known->second = std::min(known->second, ratio);
  if (entry.peak == 0) return;
  double bytes = static_cast<double>(candidate.worst_peak()) / static_cast<double>(entry.peak);
  auto [least, first] = byte_ratios_.try_emplace({kind_of(entry), entry.spec.loss_pieces > 1}, bytes);
  least->second = std::min(least->second, bytes);
}

// Bytes were counted too low: leave as much more room as was missing, and a little for what comes in lumps.
void Judging::retry(const Entry& entry, const Candidate& candidate) {
  Bytes limit = entry.limit ? entry.limit : freedom_.memory,
        missing = candidate.worst_peak() - freedom_.memory;
  Freedom less = freedom_;
  less.memory = std::min<Bytes>(limit - missing - missing / kLumps, limit / 100 * 99);
  Estimate next = Estimator(book_).estimate(entry.spec, less);
  if (!next.fits || !next.refused.empty()) return;
  add(next, entry.always);
  entries_.back().limit = less.memory;
  entries_.back().tries = entry.tries + 1;
}

std::vector<size_t> Judging::judge_all(std::vector<Plan> plans, const RecipeSpec& spec, Seconds estimated) {
  std::vector<Plan> tried;
  std::vector<size_t> places;
  for (Plan& plan : plans) {
    auto known = known_.find(text_of(plan));
    if (known != known_.end() && known->second) places.push_back(*known->second);
    if (known != known_.end() || work_of(spec) > work_left_) continue;
    is_new(plan);
    work_left_ -= work_of(spec);
    tried.push_back(std::move(plan));
  }
  std::vector<Outcome> made(tried.size());
  in_parallel(tried.size(), request_.threads, [&](size_t i) { made[i] = outcome_of(tried[i]); });
  for (size_t i = 0; i < tried.size(); ++i) {
    if (made[i].fault) forgive(spec), leave_out(*std::move(made[i].fault));
    if (!made[i].candidate) continue;  // not every mixture can be lowered
    Candidate& candidate = *made[i].candidate;
    known_[text_of(tried[i])] = judged_.size();
    places.push_back(judged_.size());
    candidate.spec = spec;
    candidate.estimated_seconds = estimated;
    if (candidate.fits) best_ = std::min(best_, candidate.step_seconds);
    judged_.push_back(std::move(candidate));
  }
  return places;
}

}  // namespace partita::search
