// The question is asked of the code alone: where is a value made, and is that over when it is read, whatever
// order of segments the schedule takes? How a pass came to a step does not matter, so the same check stands
// after each of them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lower/checks.h"
#include "lower/passes.h"
#include "model/row.h"
#include "program/walk.h"
#include "program/words.h"

namespace partita::lower {
namespace {

using Faults = std::vector<std::string>;

/// Where a value comes to be: at a step of a segment, or, for what another site sends, before its first
/// step.
struct Origin {
  Segment segment;
  std::optional<size_t> step;
};

class SiteCheck {
 public:
  SiteCheck(const Model& model, const Code& code, int site, Faults& wrong)
      : model_(model), all_(code), site_(site), code_(code.sites[site]), wrong_(wrong) {}

  void run() {
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k) check_ids(segment, k, steps[k]);
    if (!known_) return;
    find_origins();
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k)
        for (int in : steps[k].in)
          if (!there(in, segment, k))
            say("{}, step {} ({}): v{} is not there yet", name_of_segment(segment), k, kind(steps[k]), in);
    for (const Transfer& transfer : all_.transfers)
      if (transfer.from_site == site_ && !there(transfer.from_value, transfer.after, std::nullopt))
        say("v{} is sent after {}, where it is not there yet", transfer.from_value,
            name_of_segment(transfer.after));
    for (size_t v = 0; v < code_.values.size(); ++v) check_value(static_cast<int>(v));
    check_results();
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    wrong_.push_back(fmt::format("site {}: ", site_) + fmt::format(text, std::forward<Args>(args)...));
  }

  std::string kind(const CodeStep& step) const {
    return step.op ? model_[step.op].name : std::string(row_of(step.kind).name);
  }

  bool in_range(int value) const { return value >= 0 && value < static_cast<int>(code_.values.size()); }

  void check_ids(const Segment& segment, size_t k, const CodeStep& step) {
    auto known = [&](int v) { return in_range(v); };
    bool right = std::all_of(step.in.begin(), step.in.end(), known) &&
                 std::all_of(step.out.begin(), step.out.end(), [&](int v) { return v == -1 || known(v); });
    if (right) return;
    known_ = false;
    say("{}, step {} names a value that does not exist", name_of_segment(segment), k);
  }

  void find_origins() {
    origins_.resize(code_.values.size());
    for (const Transfer& transfer : all_.transfers)
      if (transfer.to_site == site_) origins_[transfer.to_value].push_back({transfer.before, std::nullopt});
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k)
        for (int out : steps[k].out)
          if (out >= 0) origins_[out].push_back({segment, k});
  }

  /// At a step of a segment, or at its end.
  bool there(int value, const Segment& segment, std::optional<size_t> step) const {
    if (code_.values[value].loaded) return true;
    return std::any_of(origins_[value].begin(), origins_[value].end(), [&](const Origin& origin) {
      if (origin.segment != segment) return precedes(origin.segment, segment);
      return !origin.step || !step || *origin.step < *step;
    });
  }

  void check_value(int v) {
    const Value& value = code_.values[v];
    bool brought = std::any_of(origins_[v].begin(), origins_[v].end(),
                               [](const Origin& origin) { return !origin.step; });
    bool changes = value.loaded || value.accumulator;
    if (brought && (origins_[v].size() > 1 || value.loaded)) say("v{} is brought, and made here too", v);
    if (!changes && !origins_[v].empty() && origins_[v][0].segment != value.made)
      say("v{} is made in {}, and said to be in {}", v, name_of_segment(origins_[v][0].segment),
          name_of_segment(value.made));
    if (!in_range(value.storage) || code_.values[value.storage].storage != value.storage)
      say("v{} lies in the storage of v{}, which is not its own", v, value.storage);
  }

  void check_results() {
    auto at_end = [&](int value, const char* what) {
      if (!in_range(value) || !there(value, kEpilogue, std::nullopt)) say("a {} is never made", what);
    };
    for (auto [value, parameter] : code_.gradients) at_end(value, "gradient");
    for (int value : code_.parameters) at_end(value, "parameter");
    for (auto [value, buffer] : code_.buffers) at_end(value, "buffer");
    if (code_.loss >= 0) at_end(code_.loss, "loss");
  }

  const Model& model_;
  const Code& all_;
  int site_;
  const SiteCode& code_;
  Faults& wrong_;
  bool known_ = true;                         // all values that are named exist
  std::vector<std::vector<Origin>> origins_;  // by value
};

Faults check_transfers(const Code& code) {
  for (const Transfer& t : code.transfers) {
    int sites = static_cast<int>(code.sites.size());
    bool right = t.from_site >= 0 && t.from_site < sites && t.to_site >= 0 && t.to_site < sites &&
                 t.from_site != t.to_site && t.from_value >= 0 && t.to_value >= 0 &&
                 t.from_value < static_cast<int>(code.sites[t.from_site].values.size()) &&
                 t.to_value < static_cast<int>(code.sites[t.to_site].values.size());
    if (!right) return {"a transfer names a site or a value that does not exist"};
    const Value &sent = code.sites[t.from_site].values[t.from_value],
                &arrives = code.sites[t.to_site].values[t.to_value];
    if (sent.tensor != arrives.tensor || sent.layout != arrives.layout || sent.as != arrives.as)
      return {
          fmt::format("v{} of site {} arrives at site {} as another tensor "
                      "or in another layout",
                      t.from_value, t.from_site, t.to_site)};
  }
  return {};
}

}  // namespace

std::vector<std::string> check_code(const Model& model, const Ordered& ordered, const Code& code) {
  Faults wrong = check_transfers(code);
  if (!wrong.empty()) return wrong;
  for (size_t site = 0; site < code.sites.size(); ++site) {
    SiteCheck(model, code, static_cast<int>(site), wrong).run();
    for (const auto& [segment, steps] : code.sites[site].segments)
      if (segment.in_loop() && !ordered.starts.contains(segment))
        wrong.push_back(fmt::format("site {} has code of a segment that the schedule never runs", site));
  }
  return wrong;
}

std::vector<std::string> check_walk(const Program& program) {
  Walker walker(program);
  while (const Event* event = walker.next())
    if (event->kind == Event::kInstr) walker.skip(event->members[0].rank, true);
  std::string story = walker.story();
  return story.empty() ? Faults{} : Faults{story};
}

}  // namespace partita::lower
