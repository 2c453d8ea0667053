#include "search/changes.h"

#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace partita::search {
namespace {

/// Parts of a plan's JSON that change what runs: those that can be changed alone first, those that make the
/// layout of devices last, since they go together.
constexpr const char* kParts[] = {"precision",    "dtype", "optimizer", "recompute", "overlap", "store",
                                  "microbatches", "loops", "mesh",      "unpack",    "masks",   "key_chunks",
                                  "stages",       "split", "schedule",  "order",     "batch",   "seq"};

std::string shortened(const Json& json, const char* part) {
  constexpr size_t kLongest = 120;
  std::string text = json.contains(part) ? json[part].dump() : "none";
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

std::string mesh_words(const Plan& plan) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : plan.mesh) axes.push_back(fmt::format("{} {}", axis.name, axis.size));
  return axes.empty() ? "one device" : fmt::format("{}", fmt::join(axes, " x "));
}

std::string stage_words(const Plan& plan) {
  size_t stages = plan.stages.size();
  return fmt::format("{} stage{} on {} device{}", stages, stages == 1 ? "" : "s", plan.ranks(),
                     plan.ranks() == 1 ? "" : "s");
}

std::string split_words(const Plan& plan) {
  std::map<std::string, std::set<std::string>> by_axis;
  for (const SplitRule& rule : plan.split) by_axis[rule.axis].insert(rule.atoms.begin(), rule.atoms.end());
  std::vector<std::string> texts;
  for (const auto& [axis, atoms] : by_axis)
    texts.push_back(atoms.size() == 1 ? fmt::format("{}: {}", axis, *atoms.begin())
                                      : fmt::format("{}: {} atoms", axis, atoms.size()));
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string store_words(const Plan& plan) {
  std::map<std::string, std::pair<int, std::string>> by_what;
  for (const StoreRule& rule : plan.store) {
    auto& [count, params] = by_what[rule.what + " over " + rule.axis];
    ++count;
    params = rule.params;
  }
  std::vector<std::string> texts;
  for (const auto& [what, rules] : by_what)
    texts.push_back(rules.first == 1 ? fmt::format("{} of {}", what, rules.second)
                                     : fmt::format("{} of {} patterns", what, rules.first));
  return texts.empty() ? "all whole" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string loop_words(const Plan& plan) {
  std::map<std::string, int> by_name;
  for (const LoopRule& loop : plan.loops) ++by_name[fmt::format("{} in {}", loop.name, loop.size)];
  if (plan.microbatches > 1) by_name[fmt::format("mb in {}", plan.microbatches)] = 1;
  std::vector<std::string> texts;
  for (const auto& [name, count] : by_name)
    texts.push_back(count == 1 ? name : fmt::format("{} ({} times)", name, count));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

/// A part in a few words; its JSON where that is short already.
std::string in_words(const Plan& plan, const std::string& part, const std::string& json) {
  if (part == "mesh") return mesh_words(plan);
  if (part == "stages") return stage_words(plan);
  if (part == "split") return split_words(plan);
  if (part == "store") return store_words(plan);
  if (part == "loops") return loop_words(plan);
  if (part == "recompute" && !plan.recompute.empty()) return fmt::format("{} blocks", plan.recompute.size());
  return json;
}

class Comparison {
 public:
  Comparison(const Model& model, const Plan& from, const Plan& to, const SearchRequest& request)
      : model_(model),
        request_(request),
        from_(from),
        to_(to),
        a_(Json::parse(to_json(from))),
        b_(Json::parse(to_json(to))) {
    out_.before = PricedPlan(model, from).costs(request);
    out_.after = PricedPlan(model, to).costs(request);
  }

  Difference run() {
    for (const char* part : kParts)
      if (differs(part)) compare(part);
    turn();
    return std::move(out_);
  }

 private:
  bool differs(const char* part) const {
    bool here = a_.contains(part), there = b_.contains(part);
    return here != there || (here && a_[part] != b_[part]);
  }

  void put(const char* part, Json& into) const {
    if (b_.contains(part))
      into[part] = b_[part];
    else
      into.erase(part);
  }

  /// Nothing: parts that make sense only with others, such as more stages with more devices.
  std::optional<Candidate> tried(const Json& mixed) const {
    try {
      Plan plan = parse_plan(mixed.dump(), "the first plan with changes");
      return PricedPlan(model_, plan).costs(request_).candidate;
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  void compare(const char* part) {
    Change change{.part = part, .before = shortened(a_, part), .after = shortened(b_, part)};
    change.from = in_words(from_, part, change.before);
    change.to = in_words(to_, part, change.after);
    Json mixed = a_;
    put(part, mixed);
    if (std::optional<Candidate> after = tried(mixed)) {
      change.alone = true;
      change.seconds = after->step_seconds - out_.before.candidate.step_seconds;
      change.bytes = after->worst_peak() - out_.before.candidate.worst_peak();
    }
    out_.changes.push_back(std::move(change));
  }

  // A part that makes no plan yet waits for the next one.
  void turn() {
    Json mixed = a_;
    Seconds seconds = out_.before.candidate.step_seconds;
    Bytes bytes = out_.before.candidate.worst_peak();
    ChangeStep turn;
    for (size_t i = 0; i < out_.changes.size(); ++i) {
      turn.parts.push_back(out_.changes[i].part);
      put(out_.changes[i].part.c_str(), mixed);
      bool last = i + 1 == out_.changes.size();
      std::optional<Candidate> now = last ? out_.after.candidate : tried(mixed);
      if (!now) continue;
      turn.seconds = now->step_seconds - seconds;
      turn.bytes = now->worst_peak() - bytes;
      seconds = now->step_seconds;
      bytes = now->worst_peak();
      out_.turns.push_back(std::exchange(turn, {}));
    }
  }

  const Model& model_;
  const SearchRequest& request_;
  const Plan& from_;
  const Plan& to_;
  Json a_, b_;
  Difference out_;
};

}  // namespace

Difference difference(const Model& model, const Plan& from, const Plan& to, const SearchRequest& request) {
  return Comparison(model, from, to, request).run();
}

}  // namespace partita::search
