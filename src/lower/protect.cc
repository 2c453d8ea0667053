#include "lower/protect.h"

#include <fmt/format.h>

#include <set>

#include "lower/checks.h"

namespace partita::lower {
namespace {

struct Readers {
  std::set<int> names;  // the result of the instruction in place and views of it
  bool others = false;  // something reads the storage under another name
};

/// Is the copy made by the time the segment runs?
bool is_over(const Transfer& transfer, const Segment& segment) {
  return transfer.after != segment && precedes(transfer.after, segment) && precedes(transfer.before, segment);
}

Readers readers_after(const SiteCode& code, const std::vector<Transfer>& sent, const Segment& segment,
                      size_t index) {
  const CodeStep& in_place = code.segments.at(segment)[index];
  int storage = code.values[in_place.in[0]].storage;
  Readers readers{.names = {in_place.out[0]}};
  for (const auto& [other, steps] : code.segments) {
    if (other != segment && precedes(other, segment)) continue;
    for (size_t k = other == segment ? index + 1 : 0; k < steps.size(); ++k) {
      const CodeStep& step = steps[k];
      bool derived = false;
      for (int in : step.in) {
        if (code.values[in].storage != storage) continue;
        (readers.names.contains(in) ? derived : readers.others) = true;
      }
      for (int out : step.out)
        if (derived && out >= 0 && code.values[out].storage == storage) readers.names.insert(out);
    }
  }
  for (const Transfer& transfer : sent)
    if (code.values[transfer.from_value].storage == storage && !readers.names.contains(transfer.from_value) &&
        !is_over(transfer, segment))
      readers.others = true;
  return readers;
}

/// A sum of squares belongs to nobody else.
bool works_in_place(const CodeStep& step) {
  return step.kind == InstrKind::kClip || (step.kind == InstrKind::kAllReduce && !step.everyone);
}

void protect_site(const Model& model, const std::vector<Transfer>& sent, SiteCode& code) {
  for (auto& [segment, steps] : code.segments) {
    for (size_t k = 0; k < steps.size(); ++k) {
      if (!works_in_place(steps[k])) continue;
      Readers readers = readers_after(code, sent, segment, k);
      int original = steps[k].in[0];
      if (!readers.others && is_dense(model[code.values[original].tensor])) continue;
      int id = static_cast<int>(code.values.size());
      code.values.push_back({.tensor = code.values[original].tensor,
                             .layout = code.values[original].layout,
                             .made = segment,
                             .storage = id,
                             .as = code.values[original].as,
                             .loop = code.values[original].loop,
                             .piece = code.values[original].piece});
      for (int name : readers.names) code.values[name].storage = id;
      steps[k].in[0] = id;
      steps.insert(steps.begin() + static_cast<ptrdiff_t>(k),
                   {{.kind = InstrKind::kZeros, .out = {id}},
                    {.kind = InstrKind::kAdd, .in = {id, original}, .out = {id}}});
      k += 2;
    }
  }
}

void find_unprotected(const Model& model, const Code& code, int site, std::vector<std::string>& wrong) {
  const SiteCode& here = code.sites[site];
  std::vector<Transfer> sent = sent_from(code, site);
  for (const auto& [segment, steps] : here.segments)
    for (size_t k = 0; k < steps.size(); ++k) {
      if (!works_in_place(steps[k])) continue;
      int changed = steps[k].in[0];
      const Value& value = here.values[changed];
      if (value.storage != changed && !is_dense(model[value.tensor]))
        wrong.push_back(
            fmt::format("site {}: v{} is changed in place and is a view with gaps", site, changed));
      if (readers_after(here, sent, segment, k).others)
        wrong.push_back(fmt::format("site {}: v{} is changed in place, and read as it was", site, changed));
    }
}

}  // namespace

std::vector<std::string> check_protected(const Model& model, const Code& code) {
  std::vector<std::string> wrong;
  for (size_t site = 0; site < code.sites.size(); ++site)
    find_unprotected(model, code, static_cast<int>(site), wrong);
  return wrong;
}

Code protect(const Model& model, Code code) {
  for (size_t site = 0; site < code.sites.size(); ++site)
    protect_site(model, sent_from(code, static_cast<int>(site)), code.sites[site]);
  return code;
}

}  // namespace partita::lower
