#include "search/search.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/names.h"
#include "lower/lower.h"
#include "simulate/simulate.h"

namespace partita {
namespace {

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= number; ++d)
    if (number % d == 0) out.push_back(d);
  return out;
}

bool uses(const RecipeSpec& spec, std::string_view way) {
  if (way == "dp") return spec.dp > 1 && spec.zero == 0;
  if (way == "zero1") return spec.zero == 1;
  if (way == "zero3") return spec.zero == 3;
  if (way == "tp") return spec.tp > 1;
  if (way == "pipeline") return spec.pp > 1;
  if (way == "recompute") return spec.recompute;
  return spec.microbatches > 1;
}

void check_ways(const std::vector<std::string>& ways, const char* flag) {
  std::vector<std::string> known(std::begin(kWays), std::end(kWays));
  for (const std::string& way : ways)
    if (std::find(known.begin(), known.end(), way) == known.end())
      input_error("{}: unknown \"{}\"{}; known are {}", flag, way, did_you_mean(way, known),
                  fmt::join(known, ", "));
}

bool allowed(const RecipeSpec& spec, const SearchRequest& request) {
  for (const char* way : kWays) {
    auto has = [&](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), way) != list.end();
    };
    if (uses(spec, way) && (has(request.forbid) || (!request.allow.empty() && !has(request.allow))))
      return false;
  }
  return true;
}

std::vector<RecipeSpec> all_specs(int64_t ranks, int64_t batch, const SearchRequest& request) {
  std::vector<RecipeSpec> out;
  for (int64_t dp : divisors(ranks))
    for (int64_t tp : divisors(ranks / dp))
      for (int64_t mb : divisors(std::max<int64_t>(batch / dp, 1)))
        for (const char* schedule : {"1f1b", "gpipe"})
          for (int zero : {0, 1, 3}) {
            int64_t pp = ranks / dp / tp;
            if (((pp == 1 || mb == 1) && std::string_view(schedule) != "1f1b") || (zero && dp == 1)) continue;
            RecipeSpec spec{.dp = dp,
                            .tp = tp,
                            .pp = pp,
                            .zero = zero,
                            .microbatches = mb,
                            .schedule = schedule,
                            .optimizer = request.optimizer};
            if (allowed(spec, request)) out.push_back(spec);
          }
  return out;
}

/// A recipe on its way: a candidate, or why it does not apply.
struct Trial {
  Candidate candidate;
  std::string refused;
};

/// The forms of a model that the plans speak of, each prepared once.
using Forms = std::map<Form, Prepared>;

Forms forms_of(const Model& model, const std::vector<Trial>& trials) {
  Forms forms;
  for (const Trial& trial : trials) {
    Form form = form_of(trial.candidate.plan);
    if (trial.refused.empty() && !forms.contains(form)) forms.emplace(form, prepare(model, form));
  }
  return forms;
}

void evaluate(const Forms& forms, const SearchRequest& request, Candidate& candidate) {
  const Prepared& form = forms.at(form_of(candidate.plan));
  PhaseLog log;
  Trace trace = simulate(form.model, lower(form, candidate.plan, log), request.prices);
  candidate.step_seconds = trace.step_seconds;
  candidate.exposed_comm_seconds = trace.exposed_comm_seconds;
  candidate.bubble = trace.bubble;
  candidate.peak_bytes = trace.peak_bytes;
  candidate.fits = candidate.worst_peak() <= request.memory;
}

std::vector<Trial> make_plans(RecipeBook& book, const SearchRequest& request,
                              const std::vector<RecipeSpec>& specs) {
  std::vector<Trial> trials;
  for (const RecipeSpec& spec : specs) {
    Trial& trial = trials.emplace_back();
    try {
      trial.candidate.plan = book.plan(spec);
      trial.candidate.plan.cluster = request.prices.cluster().name;
      trial.candidate.plan.memory = request.memory;
    } catch (const InputError& error) {
      trial.refused = error.what();
    }
  }
  return trials;
}

// Every trial is worked on by one thread and keeps its place, so the answer does not depend on their number.
void evaluate_all(const Forms& forms, const SearchRequest& request, std::vector<Trial>& trials) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  auto work = [&] {
    for (size_t i; (i = next++) < trials.size();) {
      if (!trials[i].refused.empty()) continue;
      try {
        evaluate(forms, request, trials[i].candidate);
      } catch (const InputError& error) {
        trials[i].refused = error.what();
      } catch (...) {
        std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::max(1u, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

/// Puts every recipe where it belongs in `result`, and returns those that take too much memory.
std::vector<RecipeSpec> try_all(const Model& model, RecipeBook& book, const SearchRequest& request,
                                const std::vector<RecipeSpec>& specs, SearchResult& result) {
  std::vector<Trial> trials = make_plans(book, request, specs);
  evaluate_all(forms_of(model, trials), request, trials);
  std::vector<RecipeSpec> beyond;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!trials[i].refused.empty()) {
      result.refused.push_back(fmt::format("{}: {}", summary(specs[i]), trials[i].refused));
      continue;
    }
    Candidate& candidate = trials[i].candidate;
    if (!candidate.fits) beyond.push_back(specs[i]);
    (candidate.fits ? result.fitting : result.beyond).push_back(std::move(candidate));
    ++result.evaluated;
  }
  return beyond;
}

// The first thing in which a loser is worse than the winner, in words.
std::string why_slower(const Candidate& loser, const Candidate& winner) {
  double ratio = loser.step_seconds / winner.step_seconds;
  std::string text = fmt::format("{:.2f}x the time", ratio);
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

int64_t batch_of(const Model& model) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput && !tensor.shape.empty()) return tensor.shape[0];
  return 1;
}

}  // namespace

Bytes Candidate::worst_peak() const {
  return peak_bytes.empty() ? 0 : *std::max_element(peak_bytes.begin(), peak_bytes.end());
}

SearchResult search(const Model& model, const SearchRequest& request) {
  check_ways(request.allow, "--allow");
  check_ways(request.forbid, "--forbid");
  SearchResult result;
  RecipeBook book(model);
  std::vector<RecipeSpec> specs = all_specs(num_ranks(request.prices.cluster()), batch_of(model), request);
  std::vector<RecipeSpec> beyond = try_all(model, book, request, specs, result);
  for (RecipeSpec& spec : beyond) spec.recompute = true;
  std::erase_if(beyond, [&](const RecipeSpec& spec) { return !allowed(spec, request); });
  try_all(model, book, request, beyond, result);
  std::stable_sort(result.fitting.begin(), result.fitting.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.step_seconds, a.worst_peak()) < std::pair(b.step_seconds, b.worst_peak());
  });
  std::stable_sort(result.beyond.begin(), result.beyond.end(),
                   [](const Candidate& a, const Candidate& b) { return a.worst_peak() < b.worst_peak(); });
  give_reasons(request, result);
  return result;
}

std::string least_that_would_do(const SearchResult& result) {
  if (result.beyond.empty())
    return result.refused.empty() ? "no plan was allowed; loosen --allow or --forbid"
                                  : "no recipe applies: " + result.refused.front();
  const Candidate& least = result.beyond.front();
  return fmt::format("the least that would do is {} per device ({})", show_bytes(least.worst_peak()),
                     least.plan.summary);
}

}  // namespace partita
