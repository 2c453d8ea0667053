#include "search/finalists.h"

#include <algorithm>

#include "base/error.h"
#include "search/judge.h"
#include "search/write_plan.h"

namespace partita {
namespace {

/// Ops times ranks that are lowered and simulated for one point of effort.
constexpr int64_t kLoweredPerEffort = 40'000;
constexpr int kTries = 3;

class Finals {
 public:
  Finals(CostBook& book, const SearchRequest& request, const Freedom& freedom)
      : book_(book), request_(request), freedom_(freedom) {
    int64_t ranks = num_ranks(request.prices.cluster());
    work_of_one_ = static_cast<int64_t>(book.model().ops.size()) * ranks;
    work_left_ = kLoweredPerEffort * request.effort * request.effort;
  }

  Candidate judge(const Estimate& estimate, bool retries) {
    Candidate candidate = estimated(estimate);
    if (work_of_one_ > work_left_) return candidate;
    for (int tries = 0; tries < kTries; ++tries) {
      lower_it(candidate);
      if (candidate.fits || !estimate.fits) break;
      // Bytes were counted too low: leave as much room as was missing.
      Freedom less = freedom_;
      less.memory -=
          candidate.worst_peak() - freedom_.memory + (estimate.worst_peak() < freedom_.memory ? 0 : 1);
      less.memory = std::min<Bytes>(less.memory, freedom_.memory / 100 * (99 - tries));
      if (!retries) break;
      Estimate next = Estimator(book_).estimate(estimate.spec, less);
      if (!next.fits || !next.refused.empty()) break;
      candidate = estimated(next);
    }
    return candidate;
  }

 private:
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

  void lower_it(Candidate& candidate) {
    work_left_ -= work_of_one_;
    Candidate found = judged(book_.model(), candidate.plan, request_);
    found.spec = candidate.spec;
    found.estimated_seconds = candidate.estimated_seconds;
    candidate = std::move(found);
  }

  CostBook& book_;
  const SearchRequest& request_;
  const Freedom& freedom_;
  int64_t work_of_one_ = 0, work_left_ = 0;
};

// The first thing in which a loser is worse than the winner, in words.
std::string why_slower(const Candidate& loser, const Candidate& winner) {
  std::string text = fmt::format("{:.2f}x the time", loser.step_seconds / winner.step_seconds);
  if (loser.exposed_comm_seconds > winner.exposed_comm_seconds)
    text += fmt::format(", waits {} for communication", show_seconds(loser.exposed_comm_seconds));
  if (loser.bubble > winner.bubble) text += fmt::format(", idle {:.0f} %", 100 * loser.bubble);
  return text;
}

std::string too_much(Bytes peak, Bytes limit) {
  std::string needed = show_bytes(peak), allowed = show_bytes(limit);
  if (needed == allowed) return fmt::format("{} over the limit", show_bytes(peak - limit));
  return fmt::format("needs {}, the limit is {}", needed, allowed);
}

void give_reasons(const SearchRequest& request, SearchResult& result) {
  for (size_t i = 0; i < result.fitting.size(); ++i)
    result.fitting[i].reason =
        i == 0 ? "fastest that fits" : why_slower(result.fitting[i], result.fitting[0]);
  for (Candidate& candidate : result.beyond)
    candidate.reason = too_much(candidate.worst_peak(), request.memory);
}

}  // namespace

void judge_finalists(CostBook& book, const SearchRequest& request, const Freedom& freedom,
                     const std::vector<Estimate>& leaders, const std::vector<Estimate>& beyond,
                     const std::vector<Estimate>& plain, SearchResult& result) {
  Finals judge(book, request, freedom);
  for (const auto* list : {&leaders, &beyond, &plain})
    for (const Estimate& estimate : *list) {
      Candidate candidate;
      try {
        candidate = judge.judge(estimate, list != &plain);
      } catch (const InputError& error) {
        // Costs by unit do not see what only the whole step shows.
        result.refused.push_back(fmt::format("{}: {}", summary_of(book, estimate), error.what()));
        continue;
      }
      auto same = [&](const Candidate& other) { return other.plan.summary == candidate.plan.summary; };
      if (list == &plain && std::any_of(result.fitting.begin(), result.fitting.end(), same)) continue;
      result.lowered += candidate.lowered;
      (candidate.fits ? result.fitting : result.beyond).push_back(std::move(candidate));
    }
  std::stable_sort(result.fitting.begin(), result.fitting.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.step_seconds, a.worst_peak()) < std::pair(b.step_seconds, b.worst_peak());
  });
  std::stable_sort(result.beyond.begin(), result.beyond.end(),
                   [](const Candidate& a, const Candidate& b) { return a.worst_peak() < b.worst_peak(); });
  if (result.fitting.size() > request.top) result.fitting.resize(request.top);
  // Plain data parallel is what everybody knows: it needs most, and is shown all the same.
  if (size_t kept = request.top + plain.size(); result.beyond.size() > kept)
    result.beyond.erase(result.beyond.begin() + static_cast<ptrdiff_t>(request.top), result.beyond.end() - 1);
  give_reasons(request, result);
}

}  // namespace partita
