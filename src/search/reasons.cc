#include "search/reasons.h"

#include <algorithm>

#include "base/error.h"

namespace partita::search {
namespace {

/// Shares of a step below this are not worth a word.
constexpr double kNoticed = 0.005;

// The first thing in which a loser is worse than the winner, in words. Costs of units know neither how long
// it waits nor how long it is idle.
std::string why_slower(const Candidate& loser, const Candidate& winner) {
  std::string text = fmt::format("{:.2f}x the time", loser.step_seconds / winner.step_seconds);
  if (!loser.lowered) return text + " by block costs, not checked";
  if (loser.exposed_comm_seconds > winner.exposed_comm_seconds)
    text += fmt::format(", waits {} for communication", show_seconds(loser.exposed_comm_seconds));
  if (loser.bubble > winner.bubble + kNoticed) text += fmt::format(", idle {:.0f} %", 100 * loser.bubble);
  return text;
}

// What is only estimated may be faster than the answer, or not: nothing was proved of it.
std::string why_first(const std::vector<Candidate>& fitting) {
  if (!fitting[0].lowered) return "fastest that fits by block costs, not checked";
  bool faster = std::any_of(fitting.begin(), fitting.end(), [&](const Candidate& other) {
    return !other.lowered && other.step_seconds < fitting[0].step_seconds;
  });
  return faster ? "fastest that fits of those checked" : "fastest that fits";
}

std::string too_much(Bytes peak, Bytes limit) {
  std::string needed = show_bytes(peak), allowed = show_bytes(limit);
  if (needed == allowed) return fmt::format("{} over the limit", show_bytes(peak - limit));
  return fmt::format("needs {}, the limit is {}", needed, allowed);
}

}  // namespace

void give_reasons(const SearchRequest& request, SearchResult& result) {
  for (size_t i = 0; i < result.fitting.size(); ++i)
    result.fitting[i].reason =
        i == 0 ? why_first(result.fitting) : why_slower(result.fitting[i], result.fitting[0]);
  for (Candidate& candidate : result.beyond)
    candidate.reason = too_much(candidate.worst_peak(), request.memory);
}

}  // namespace partita::search
