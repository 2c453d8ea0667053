#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "reshard/reshard.h"

namespace partita::reshard {
namespace {

constexpr size_t kLinks = 24;  // shown for one step

std::string ranks_of(const Cells& cells, const std::vector<int32_t>& numbers) {
  std::vector<int32_t> ranks;
  for (int32_t number : numbers) ranks.push_back(cells.devices[number]);
  return fmt::format("{}", fmt::join(ranks, " "));
}

std::string tell(const Hop& hop, const Collective& collective, int64_t elem_bytes) {
  Load load = load_of(*hop.cells, {collective});
  std::string along = collective.dim >= 0 ? fmt::format(" along dimension {}", collective.dim) : "";
  return fmt::format("  {}{} over {}: {}, at most {} into one device\n", to_text(collective.op), along,
                     ranks_of(*hop.cells, collective.ranks), show_bytes(load.total * elem_bytes),
                     show_bytes(load.max_received() * elem_bytes));
}

using Links = std::map<std::pair<int32_t, int32_t>, int64_t>;  // bytes by (from, to)

/// By round.
std::vector<Links> links_of(const Hop& hop, int64_t elem_bytes) {
  std::vector<Links> links(hop.exchange.rounds());
  const Exchange& exchange = hop.exchange;
  for (size_t b = 0; b + 1 < exchange.blocks.size(); ++b) {
    const Block& block = exchange.blocks[b];
    int64_t bytes = elements_of(*hop.cells, block.cls, block.chunk, block.chunks) * elem_bytes;
    for (int32_t m = block.move_begin; m < exchange.blocks[b + 1].move_begin; ++m) {
      const Move& move = exchange.moves[m];
      links[move.round][{hop.cells->devices[move.from], hop.cells->devices[move.to]}] += bytes;
    }
  }
  return links;
}

std::string tell_exchange(const Hop& hop, const Problem& problem) {
  int64_t elem_bytes = problem.elem_bytes;
  std::string text;
  std::vector<Links> rounds = links_of(hop, elem_bytes);
  for (size_t r = 0; r < rounds.size(); ++r) {
    text += fmt::format("  exchange, round {} of {}: {} messages\n", r + 1, rounds.size(), rounds[r].size());
    size_t shown = 0;
    for (const auto& [link, bytes] : rounds[r]) {
      if (++shown > kLinks) break;
      text += fmt::format("    {} -> {}: {}\n", link.first, link.second, show_bytes(bytes));
    }
    if (rounds[r].size() > kLinks) text += fmt::format("    and {} more\n", rounds[r].size() - kLinks);
  }
  return rounds.empty()
             ? fmt::format("  every device slices, joins, adds or fills with {} what it has; nothing moves\n",
                           identity_text(problem.reducer))
             : text;
}

}  // namespace

std::string to_text(const Problem& problem, const Answer& answer) {
  std::string text;
  for (size_t h = 0; h < answer.hops.size(); ++h) {
    const Hop& hop = answer.hops[h];
    if (answer.hops.size() > 1) text += fmt::format("hop {} of {}\n", h + 1, answer.hops.size());
    for (const Collective& collective : hop.collectives) text += tell(hop, collective, problem.elem_bytes);
    if (hop.collectives.empty()) text += tell_exchange(hop, problem);
  }
  text += fmt::format("moves {} bytes; {} {}\n", answer.total_bytes, answer.bound_bytes,
                      answer.proved ? "are unavoidable" : "is a bound that may not be reached");
  text += fmt::format("busiest device receives {}, sends {}\n", answer.max_recv_bytes, answer.max_send_bytes);
  if (!problem.groups.empty())
    text += fmt::format("across groups {} bytes; {} are unavoidable\n", answer.cross_group_bytes,
                        answer.bound_cross_group_bytes);
  for (size_t level = 0; level + 1 < answer.crossing_bytes.size(); ++level)
    text += fmt::format("across wider groups {} bytes; {} are unavoidable\n", answer.crossing_bytes[level],
                        answer.bound_crossing_bytes[level]);
  if (problem.links)
    text += fmt::format("takes {}; the way with the fewest bytes takes {}\n", show_seconds(answer.seconds),
                        show_seconds(answer.least_bytes_seconds));
  return text + "replayed on cell ids: every device ends with what it wants\n";
}

}  // namespace partita::reshard
