#include "search/fault_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "model/rewrite/retype.h"

namespace partita::search {
namespace {

/// One bug often takes many candidates with it: more files say little more.
constexpr size_t kMostFiles = 3;

/// Faults with one reason.
struct Group {
  const PlanFault* first = nullptr;
  size_t count = 0;
};

/// A message without its numbers: ranks, counts and layers differ from plan to plan.
std::string reason_of(const PlanFault& fault) {
  std::string text = fault.message;
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c); });
  return text;
}

std::vector<Group> groups_of(const std::vector<PlanFault>& faults) {
  std::vector<Group> groups;
  for (const PlanFault& fault : faults) {
    auto same = [&](const Group& group) { return reason_of(*group.first) == reason_of(fault); };
    auto known = std::find_if(groups.begin(), groups.end(), same);
    if (known == groups.end()) known = groups.insert(known, {.first = &fault});
    ++known->count;
  }
  return groups;
}

Json describe(const Model& model) {
  std::map<std::string, int64_t> targets;
  for (const Op& op : model.ops) ++targets[op.target];
  int64_t parameters = 0;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kParameter) parameters += numel(tensor.shape);
  return {{"fingerprint", fingerprint(model)},
          {"dtype", parameter_dtype(model)},
          {"ops", model.ops.size()},
          {"parameters", parameters},
          {"targets", targets}};
}

/// What to send along; why there is nothing where the file could not be written.
std::string written(const PlanFault& fault, const FaultSetting& setting) {
  std::string text = to_json(fault, setting);
  std::string name = fmt::format("partita-fault-{:016x}.json", hash_of(text));
  std::string path = setting.folder == "." ? name : setting.folder + "/" + name;
  try {
    write_file(path, text);
  } catch (const InputError& error) {
    return fmt::format("a bug in partita, please report it; its file could not be written ({})",
                       error.what());
  }
  return fmt::format("a bug in partita, please report it with {}", path);
}

std::string plans(size_t count) { return fmt::format("{} plan{}", count, count == 1 ? "" : "s"); }

}  // namespace

std::string to_json(const PlanFault& fault, const FaultSetting& setting) {
  Json json = {{"format", "partita.fault"},        {"version", 1},
               {"partita", setting.version},       {"message", fault.message},
               {"summary", fault.summary},         {"cluster", setting.cluster},
               {"model", describe(setting.model)}, {"plan", nullptr}};
  if (fault.plan) json["plan"] = Json::parse(to_json(*fault.plan));
  return json.dump(1) + "\n";
}

std::vector<std::string> report_faults(const std::vector<PlanFault>& faults, const FaultSetting& setting) {
  std::vector<std::string> warnings;
  std::vector<Group> groups = groups_of(faults);
  size_t rest = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& [first, count] = groups[i];
    if (i < kMostFiles)
      warnings.push_back(fmt::format("{} left out, first {}: {}; {}", plans(count), first->summary,
                                     first->message, written(*first, setting)));
    else
      rest += count;
  }
  if (rest > 0)
    warnings.push_back(
        fmt::format("{} left out for {} other reasons", plans(rest), groups.size() - kMostFiles));
  return warnings;
}

}  // namespace partita::search
