#include "search/reasons.h"

#include "base/error.h"

namespace partita {
namespace {

/// Shares of a step below this are not worth a word.
constexpr double kNoticed = 0.005;

// The first thing in which a loser is worse than the winner, in words.
std::string why_slower(const Candidate& loser, const Candidate& winner) {
  double ratio = loser.step_seconds / winner.step_seconds;
  if (!loser.lowered && ratio < 1)
    return fmt::format("{:.2f}x the time by costs of units alone; a higher --effort would lower it", ratio);
  std::string text = fmt::format("{:.2f}x the time", ratio);
  if (loser.exposed_comm_seconds > winner.exposed_comm_seconds)
    text += fmt::format(", waits {} for communication", show_seconds(loser.exposed_comm_seconds));
  if (loser.bubble > winner.bubble + kNoticed) text += fmt::format(", idle {:.0f} %", 100 * loser.bubble);
  return text;
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
        i == 0 ? "fastest that fits" : why_slower(result.fitting[i], result.fitting[0]);
  for (Candidate& candidate : result.beyond)
    candidate.reason = too_much(candidate.worst_peak(), request.memory);
}

}  // namespace partita
