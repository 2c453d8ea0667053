#include "lower/code.h"

namespace partita::lower {

std::vector<Transfer> sent_from(const Code& code, int site) {
  std::vector<Transfer> sent;
  for (const Transfer& transfer : code.transfers)
    if (transfer.from_site == site) sent.push_back(transfer);
  return sent;
}

std::vector<Uses> find_uses(const SiteCode& code) {
  std::vector<Uses> uses(code.values.size());
  for (const auto& [segment, steps] : code.segments)
    for (size_t k = 0; k < steps.size(); ++k)
      for (const auto* side : {&steps[k].out, &steps[k].in})
        for (int v : *side)
          if (v >= 0) {
            uses[v].segments.insert(segment);
            uses[v].index = k;
          }
  return uses;
}

std::vector<bool> find_results(const SiteCode& code) {
  std::vector<bool> results(code.values.size(), false);
  for (auto [value, parameter] : code.gradients) results[value] = true;
  for (int value : code.parameters) results[value] = true;
  for (auto [value, buffer] : code.buffers) results[value] = true;
  if (code.loss >= 0) results[code.loss] = true;
  return results;
}

}  // namespace partita::lower
