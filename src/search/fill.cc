#include "search/fill.h"

#include <algorithm>
#include <set>

#include "choose/search.h"
#include "search/neighbours.h"

namespace partita::search {
namespace {

/// Plans that are stored anew, groups of one that may differ, the largest first, and choices among them.
constexpr size_t kPlans = 2, kGroups = 24;
constexpr int kChoices = 4, kLevels = 4;
constexpr int64_t kWork = 20'000;
/// Times the best, up to which a plan is worth it.
constexpr double kWorth = 1.2;

/// One plan whose storage is chosen.
class Filling {
 public:
  Filling(Judging& judging, const CostBook& book, const Freedom& freedom, const Candidate& from)
      : judging_(judging), model_(book.model()), freedom_(freedom), from_(from) {}

  void run() {
    groups_ = storage_groups(model_, from_.plan);
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const StorageGroup& a, const StorageGroup& b) { return a.bytes > b.bytes; });
    while (!freedom_.storings[most_] && most_ > 0) --most_;
    for (StorageGroup& group : groups_) group.level = most_;
    std::optional<Candidate> start = judged(groups_);
    if (most_ == 0 || !start || !start->fits) return;
    look_at_each(*start);
    Bytes budget = freedom_.memory - start->worst_peak();
    for (int k = 0; k < kChoices && budget > 0; ++k) {
      std::optional<Candidate> found = judged(chosen(budget));
      if (!found || !seen_.insert(found->plan.summary + std::to_string(found->worst_peak())).second) return;
      budget += freedom_.memory - found->worst_peak();
    }
  }

 private:
  std::optional<Candidate> judged(const std::vector<StorageGroup>& groups) {
    Plan plan = with_storage(model_, from_.plan, groups);
    std::vector<size_t> places = judging_.judge_all({plan}, from_.spec, from_.estimated_seconds);
    return places.empty() ? std::nullopt : std::optional(judging_.judged()[places[0]]);
  }

  /// What each level of each group costs beside `start`, all else being as there.
  void look_at_each(const Candidate& start) {
    std::vector<Plan> plans;
    std::vector<std::pair<size_t, int>> changes;
    for (size_t g = 0; g < std::min(groups_.size(), kGroups); ++g)
      for (int level = 0; level < most_; ++level) {
        if (!freedom_.storings[level]) continue;
        std::vector<StorageGroup> groups = groups_;
        groups[g].level = level;
        changes.emplace_back(g, level);
        plans.push_back(with_storage(model_, from_.plan, groups));
      }
    std::vector<size_t> places = judging_.judge_all(plans, from_.spec, from_.estimated_seconds);
    operators_.assign(groups_.size(), {.options = {{.seconds = 0, .bytes = {0}, .transient = {0}}}});
    levels_.assign(groups_.size(), {most_});
    for (size_t place : places) {
      const Candidate& one = judging_.judged()[place];
      for (size_t i = 0; i < plans.size(); ++i) {
        if (plans[i].store != one.plan.store || plans[i].recompute != one.plan.recompute) continue;
        add_option(changes[i], one.step_seconds - start.step_seconds, one.worst_peak() - start.worst_peak());
        break;
      }
    }
  }

  void add_option(const std::pair<size_t, int>& change, Seconds more, Bytes bytes) {
    auto [group, level] = change;
    if (more >= 0) return;
    std::vector<ChoiceOption>& options = operators_[group].options;
    options.push_back({.seconds = more, .bytes = {std::max<Bytes>(bytes, 0)}, .transient = {0}});
    levels_[group].push_back(level);
  }

  std::vector<StorageGroup> chosen(Bytes budget) const {
    ChoiceProblem problem{.budget = budget, .held = {0}, .operators = operators_};
    for (ChoiceOperator& op : problem.operators) {
      Seconds least = 0;
      for (const ChoiceOption& option : op.options) least = std::min(least, option.seconds);
      for (ChoiceOption& option : op.options) option.seconds -= least;
    }
    ChoiceAnswer answer = search_choices(problem, kWork);
    std::vector<StorageGroup> groups = groups_;
    for (size_t g = 0; answer.best && g < groups.size(); ++g)
      for (size_t o = 0; o < levels_[g].size(); ++o)
        if (answer.best->counts[g][o]) groups[g].level = levels_[g][o];
    return groups;
  }

  Judging& judging_;
  const Model& model_;
  const Freedom& freedom_;
  const Candidate from_;
  int most_ = kLevels - 1;
  std::vector<StorageGroup> groups_;
  std::vector<ChoiceOperator> operators_;
  std::vector<std::vector<int>> levels_;  // of each group, by option
  std::set<std::string> seen_;
};

}  // namespace

void fill(Judging& judging, const CostBook& book, const Freedom& freedom) {
  std::vector<const Candidate*> order;
  for (const Candidate& candidate : judging.judged())
    if (candidate.fits && candidate.spec.dp > 1 && candidate.spec.replicas == 1 &&
        judging.cheap(candidate.spec))
      order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return ranks_before(*a, *b); });
  std::vector<Candidate> plans;
  std::set<std::string> seen;
  for (const Candidate* candidate : order) {
    RecipeSpec spec = candidate->spec;
    spec.zero = 0;
    if (plans.size() < kPlans && seen.insert(summary(spec)).second) plans.push_back(*candidate);
  }
  for (const Candidate& plan : plans)
    if (plan.step_seconds < judging.best() * kWorth) Filling(judging, book, freedom, plan).run();
}

}  // namespace partita::search
