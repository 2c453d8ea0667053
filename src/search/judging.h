#pragma once

#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "estimate/cost_book.h"
#include "estimate/estimate.h"
#include "search/judge.h"
#include "search/textbook.h"

namespace partita::search {

/// What makes plans differ for people: sizes of the mesh and the schedule.
using Character = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, std::string>;
Character character_of(const RecipeSpec& spec);

/// Lowered before estimated, then fast before slow.
bool ranks_before(const Candidate& a, const Candidate& b);

/// Plans that wait to be lowered and simulated, and those that were. What is worth it is judged in the order
/// of its promise, as long as the work of the request's effort lasts, always several side by side, so that
/// the answer does not depend on the cores. How far expectations of one kind are off is learned from those
/// that were judged.
class Judging {
 public:
  /// All must outlive it. What does not apply is added to `result.refused`.
  Judging(CostBook& book, const SearchRequest& request, const Freedom& freedom, SearchResult& result);

  /// `always`: whatever is expected of it. A plan that turns out to need more than was estimated is estimated
  /// again with as much less memory.
  void add(const Estimate& estimate, bool always = false);
  /// As its recipe is written.
  void add(const Textbook& recipe, bool always = false);
  /// Judges the `most` fastest of those that are expected to be faster than the best and to need up to `more`
  /// times the memory: what is made of them may fit.
  void judge_larger(double more, size_t most);
  /// From now on expectations are believed less: what was not worth judging may be.
  void doubt() { doubt_ = true; }

  /// Judges until nothing that waits is worth it. `share` of the work that is left may be used.
  void rounds(double share = 1);
  /// Does something that judges plans with a share of the work that is left.
  template <class Work>
  void spend(double share, Work work) {
    int64_t kept = work_left_ - static_cast<int64_t>(share * static_cast<double>(work_left_));
    work_left_ -= kept;
    work();
    work_left_ += kept;
  }
  /// Judges plans of one recipe, those that are new and affordable; where they and those that were judged
  /// before stand in `judged`.
  std::vector<size_t> judge_all(std::vector<Plan> plans, const RecipeSpec& spec, Seconds estimated);

  /// Could its plans be judged, by the work that is left?
  bool affordable(const RecipeSpec& spec) const { return affordable(work_of(spec)); }
  /// Is it cheap enough to be judged or certified without need?
  bool cheap(const RecipeSpec& spec) const;
  /// Seconds of the fastest that fits; HUGE_VAL without one.
  Seconds best() const { return best_; }
  const std::vector<Candidate>& judged() const { return judged_; }
  /// Of those that fit.
  const std::set<Character>& characters() const { return characters_; }
  /// The fault that the certificate finds in what is lowered of a plan; where the request is strict that is
  /// a Bug.
  std::optional<PlanFault> certify(const Plan& plan);
  /// A plan that failed: it counts as if it had never been judged.
  void leave_out(PlanFault fault);
  /// Was it lowered and simulated? Then `judged` has the truth about it.
  bool was_judged(const Plan& plan) const {
    auto known = known_.find(text_of(plan));
    return known != known_.end() && known->second;
  }
  bool left_out(const Plan& plan) const { return left_out_.contains(text_of(plan)); }
  /// Of the model that plans are judged for.
  RecipeBook& recipes();

 private:
  /// Expectations that are off for the same reasons.
  using Kind = std::tuple<bool, bool, bool, bool, std::string, int64_t, bool>;
  struct Entry {
    RecipeSpec spec;
    std::optional<Estimate> estimate;  // none: as its recipe is written
    Seconds expected = 0;              // by costs of units
    Bytes peak = 0;                    // about; 0: not known
    bool always = false;
    Bytes limit = 0;  // that it was estimated again with; 0: that of the request
    int tries = 0;
  };
  using Round = std::vector<std::pair<Entry, Plan>>;
  /// One of these.
  struct Outcome {
    std::optional<Candidate> candidate;
    std::optional<InputError> refused;
    std::optional<PlanFault> fault;
  };

  static Kind kind_of(const Entry& entry);
  int64_t work_of(const RecipeSpec& spec) const;
  bool affordable(int64_t work) const;
  Seconds promise(const Entry& entry) const;
  bool worth(const Entry& entry, const std::set<Character>& seen) const;
  bool worth_much(const Entry& entry) const;
  Round next_round();
  std::optional<Plan> write(const Entry& entry);
  Plan textbook(const RecipeSpec& spec);
  static std::string text_of(Plan plan);
  bool is_new(const Plan& plan);
  void refuse(const Entry& entry, const InputError& error);
  void judge_round(const Round& round);
  Candidate judge(const Plan& plan);
  Outcome outcome_of(const Plan& plan);
  void forgive(const RecipeSpec& spec);
  void take(const Entry& entry, Candidate candidate);
  void learn(const Entry& entry, const Candidate& candidate);
  void retry(const Entry& entry, const Candidate& candidate);

  CostBook& book_;
  const SearchRequest& request_;
  const Freedom& freedom_;
  SearchResult& result_;
  Judge judge_;
  std::optional<RecipeBook> recipes_;
  std::vector<Entry> entries_;
  std::vector<Candidate> judged_;
  std::map<std::string, std::optional<size_t>> known_;  // plans, as text; where they stand, once judged
  std::set<Character> characters_;
  std::map<Kind, double> ratios_;  // seconds judged over expected, at least
  double least_ratio_ = 1;         // of estimates
  std::map<std::pair<Kind, bool>, double>
      byte_ratios_;  // the same of bytes, by whether the loss is in pieces
  Seconds best_ = HUGE_VAL;
  int64_t work_left_ = 0;
  int costly_ = 0;             // judged
  int64_t forgiven_left_ = 0;  // work on plans that failed which still does not count
  int costly_failed_ = 0;
  std::set<std::string> left_out_;  // plans, as text
  bool doubt_ = false;
  std::atomic<int64_t> begun_ = 0;  // plans that are or were lowered
};

}  // namespace partita::search
