#include "search/shortlist.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "estimate/estimate.h"
#include "search/write_plan.h"

namespace partita::search {
namespace {

class Shortlist {
 public:
  Shortlist(Judging& judging, CostBook& book, const SearchRequest& request, const Leads& leads,
            SearchResult& result)
      : judging_(judging), book_(book), request_(request), leads_(leads), result_(result) {}

  void write() {
    list();
    if (result_.interrupted) return;
    try {
      while (!certify_shown()) list();
      result_.certified = true;
    } catch (const Interrupted&) {
      result_.interrupted = true;
    }
  }

 private:
  // Short, and not interrupted: it gives what there is to whoever interrupted the rest.
  void list() {
    Interruptible not_now(nullptr);
    result_.lowered = static_cast<int64_t>(judging_.judged().size());
    result_.fitting.clear();
    result_.beyond.clear();
    for (const Candidate& candidate : judging_.judged())
      if (!judging_.left_out(candidate.plan))
        (candidate.fits ? result_.fitting : result_.beyond).push_back(candidate);
    if (judging_.characters().size() < request_.top) add_estimated();
    std::stable_sort(result_.fitting.begin(), result_.fitting.end(), ranks_before);
    keep_characters();
    std::stable_sort(result_.beyond.begin(), result_.beyond.end(),
                     [](const Candidate& a, const Candidate& b) { return a.worst_peak() < b.worst_peak(); });
    keep_least();
  }

  void add_estimated() {
    std::set<Character> seen = judging_.characters();
    for (const Estimate& estimate : leads_.fitting) {
      if (seen.size() >= request_.top) break;
      if (seen.contains(character_of(estimate.spec))) continue;
      Candidate candidate = estimated(estimate);
      if (judging_.left_out(candidate.plan) || judging_.was_judged(candidate.plan)) continue;
      seen.insert(character_of(estimate.spec));
      result_.fitting.push_back(std::move(candidate));
    }
    if (judging_.judged().empty())
      for (const auto* list : {&leads_.beyond, &leads_.plain})
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

  bool is_plain(const Candidate& candidate) const {
    return !leads_.plain.empty() && candidate.plan.store.empty() && candidate.plan.recompute.empty() &&
           candidate.plan.loops.empty() && !candidate.spec.experts &&
           candidate.spec.dp == leads_.plain.front().spec.dp && candidate.spec.microbatches == 1;
  }

  void keep_characters() {
    std::set<std::tuple<Character, int64_t, bool>> seen;
    std::vector<Candidate> kept, plain;
    for (Candidate& candidate : result_.fitting) {
      int64_t microbatches = request_.finely ? candidate.spec.microbatches : 0;
      bool again = request_.finely && !candidate.plan.recompute.empty();
      bool fresh = kept.size() < request_.top &&
                   seen.insert({character_of(candidate.spec), microbatches, again}).second;
      if (fresh)
        kept.push_back(std::move(candidate));
      else if (is_plain(candidate) && plain.empty())
        plain.push_back(std::move(candidate));
    }
    if (request_.top > 1)
      for (Candidate& candidate : plain) kept.push_back(std::move(candidate));
    std::stable_sort(kept.begin(), kept.end(), ranks_before);
    result_.fitting = std::move(kept);
  }

  void keep_least() {
    std::set<std::string> seen;
    std::vector<Candidate> kept;
    for (Candidate& candidate : result_.beyond)
      if ((kept.size() < request_.top && seen.insert(candidate.plan.summary).second) || is_plain(candidate))
        kept.push_back(std::move(candidate));
    result_.beyond = std::move(kept);
  }

  /// False where the certificate refuses one of them: others take the places of those that are left out.
  bool certify_shown() {
    std::vector<Candidate*> shown;
    for (Candidate& candidate : result_.fitting)
      if (candidate.lowered && (shown.empty() || judging_.cheap(candidate.spec))) shown.push_back(&candidate);
    if (request_.progress && !shown.empty()) request_.progress({"certifying plans"});
    std::vector<std::optional<PlanFault>> faults(shown.size());
    in_parallel(shown.size(), request_.threads, [&](size_t i) {
      faults[i] = judging_.certify(shown[i]->plan);
      shown[i]->certified = !faults[i];
    });
    bool all = true;
    for (std::optional<PlanFault>& fault : faults)
      if (fault) all = false, judging_.leave_out(*std::move(fault));
    return all;
  }

  Judging& judging_;
  CostBook& book_;
  const SearchRequest& request_;
  const Leads& leads_;
  SearchResult& result_;
};

}  // namespace

void write_shortlist(Judging& judging, CostBook& book, const SearchRequest& request, const Leads& leads,
                     SearchResult& result) {
  Shortlist(judging, book, request, leads, result).write();
}

}  // namespace partita::search
