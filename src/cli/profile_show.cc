#include "cli/profile_show.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/pricing.h"

namespace partita::cli {
namespace {

constexpr int kColumns = 60;        // of the curve of memory over time
constexpr size_t kLargest = 12;     // storages listed at the peak
constexpr size_t kLabelWidth = 34;  // of the tree

/// "12.3 G", "456 M": flops and counts.
std::string show_count(double count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P", " E"};
  int unit = 0;
  while (count >= 1000 && unit < 6) count /= 1000, ++unit;
  return fmt::format("{:.{}f}{}", count, unit ? 2 : 0, kUnits[unit]);
}

std::string show_share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

std::string show_line(std::string_view label, const ModuleCost& cost, const ModuleCost& total) {
  return fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7}\n", label, kLabelWidth,
                     show_count(static_cast<double>(cost.params)), show_count(cost.forward),
                     show_count(cost.backward), show_seconds(cost.total_seconds()),
                     show_share(cost.total_seconds(), total.total_seconds()), show_bytes(cost.saved_bytes),
                     show_bytes(cost.peak_bytes),
                     show_share(static_cast<double>(cost.peak_bytes), static_cast<double>(total.peak_bytes)));
}

std::string show_tree(const StepProfile& profile) {
  std::string text =
      fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7}\n", "module", kLabelWidth, "params",
                  "forward", "backward", "time", "share", "saved", "at peak", "share");
  for (const TreeRow& row : profile.tree) {
    if (row.depth == 0) continue;
    std::string label(2 * (row.depth - 1), ' ');
    label += row.label;
    if (row.count > 1) label += fmt::format(" x{}", row.count);
    text += show_line(label, row.cost, profile.total);
  }
  return text + show_line("total", profile.total, profile.total);
}

/// The most bytes held in each of `kColumns` equal parts of the predicted time.
std::vector<Bytes> curve_of(const StepProfile& profile) {
  std::vector<Bytes> columns(kColumns, 0);
  Seconds total = profile.total.total_seconds(), now = 0;
  for (size_t i = 0; i < profile.op_seconds.size(); ++i) {
    Seconds end = now + profile.op_seconds[i];
    int from = total > 0 ? static_cast<int>(now / total * kColumns) : 0;
    int to = total > 0 ? static_cast<int>(end / total * kColumns) : 0;
    for (int c = std::min(from, kColumns - 1); c <= std::min(to, kColumns - 1); ++c)
      columns[c] = std::max(columns[c], profile.memory.during[i]);
    now = end;
  }
  return columns;
}

std::string sparkline(const std::vector<Bytes>& columns) {
  constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  Bytes most = std::max<Bytes>(*std::max_element(columns.begin(), columns.end()), 1);
  std::string text;
  for (Bytes bytes : columns) text += kBlocks[(bytes * 8 + most - 1) / most];
  return text;
}

/// The op during which memory is highest.
std::string peak_op(const Model& model, const StepMemory& memory) {
  if (memory.peak_op < 0) return "the start";
  if (memory.peak_op >= static_cast<int32_t>(model.ops.size())) return "the optimizer's update";
  return model.ops[memory.peak_op].name;
}

std::string show_purposes(const StepMemory& memory) {
  std::string text;
  for (int p = 0; p < kPurposes; ++p) {
    if (memory.at_peak[p] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(static_cast<Purpose>(p)),
                        show_bytes(memory.at_peak[p]));
  }
  return text;
}

std::string show_upkeep(const BytesPerParameter& each) {
  std::string text = fmt::format("{} parameter + {} gradient", each.parameter, each.gradient);
  if (each.master) text += fmt::format(" + {} master", each.master);
  if (each.states) text += fmt::format(" + {} optimizer", each.states);
  return fmt::format("{} bytes a parameter: {}\n", each.total(), text);
}

/// Numbers of a name as stars, so that layers alike share a line: "h.*.attn/addmm".
std::string starred(std::string_view name) {
  std::string out;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find_first_of("./", begin), name.size());
    std::string_view part = name.substr(begin, end - begin);
    bool number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    // Numbers after the slash tell ops of one module apart and stay.
    out += number && out.find('/') == out.npos ? "*" : part;
    if (end < name.size()) out += name[end];
    begin = end + 1;
  }
  return out;
}

/// The op that made what is alive, or the parameter it belongs to.
std::string maker_of(const Profiled& p, const std::vector<const Op*>& makers, const AlivePart& part) {
  if (!part.owner) return peak_op(p.model, p.profile.memory);
  const Op* maker = makers[part.owner.value];
  return maker ? maker->name : p.model[part.owner].name;
}

std::vector<const Op*> makers_of(const Model& model) {
  std::vector<const Op*> makers(model.tensors.size(), nullptr);
  for (const Op& op : model.ops)
    for (TensorId id : op.outputs)
      if (id) makers[id.value] = &op;
  return makers;
}

struct AliveLine {
  std::string name;
  Purpose purpose;
  int64_t count = 0;
  Bytes bytes = 0;
};

/// What is alive at the peak, alike things together, the largest first.
std::vector<AliveLine> alive_lines(const Profiled& p) {
  std::vector<const Op*> makers = makers_of(p.model);
  std::map<std::pair<std::string, Purpose>, AliveLine> lines;
  for (const AlivePart& part : p.profile.memory.alive) {
    std::string name = starred(maker_of(p, makers, part));
    AliveLine& line = lines.try_emplace({name, part.purpose}, AliveLine{name, part.purpose}).first->second;
    ++line.count;
    line.bytes += part.bytes;
  }
  std::vector<AliveLine> sorted;
  for (auto& [key, line] : lines) sorted.push_back(std::move(line));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const AliveLine& a, const AliveLine& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::string show_alive(const Profiled& p) {
  std::vector<AliveLine> lines = alive_lines(p);
  std::string text = "alive at the peak, alike ones together:\n";
  Bytes rest = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const AliveLine& line = lines[i];
    if (i >= kLargest) {
      rest += line.bytes;
      continue;
    }
    text += fmt::format("  {:<10} {:>10} {:>5} x {}\n", name_of(line.purpose), show_bytes(line.bytes),
                        line.count, line.name);
  }
  if (rest)
    text += fmt::format("  {:<10} {:>10} in {} more\n", "", show_bytes(rest), lines.size() - kLargest);
  return text;
}

Json write_cost(const ModuleCost& row) {
  return {{"name", row.name},
          {"ops", row.ops},
          {"params", row.params},
          {"param_bytes", row.param_bytes},
          {"flops", {{"forward", row.forward}, {"backward", row.backward}}},
          {"saved_bytes", row.saved_bytes},
          {"bytes_at_peak", row.peak_bytes},
          {"seconds", row.total_seconds()},
          {"phases",
           {{"forward", row.seconds[0]}, {"input_grad", row.seconds[1]}, {"weight_grad", row.seconds[2]}}}};
}

Json write_memory(const Profiled& p) {
  const StepMemory& memory = p.profile.memory;
  const BytesPerParameter& each = p.profile.per_parameter;
  Json causes = Json::object();
  for (int c = 0; c < kPurposes; ++c)
    causes[std::string(name_of(static_cast<Purpose>(c)))] = memory.at_peak[c];
  Json json = {{"peak_by_cause", causes},
               {"over_time", curve_of(p.profile)},
               {"bytes_per_parameter",
                {{"parameter", each.parameter},
                 {"gradient", each.gradient},
                 {"master", each.master},
                 {"optimizer", each.states},
                 {"total", each.total()}}}};
  if (!p.at_peak) return json;
  json["at_peak"] = Json::array();
  for (const AliveLine& line : alive_lines(p))
    json["at_peak"].push_back({{"name", line.name},
                               {"cause", name_of(line.purpose)},
                               {"count", line.count},
                               {"bytes", line.bytes}});
  return json;
}

void write_targets(const StepProfile& profile, Json& json) {
  int64_t count = 0, assumed = 0;
  Json opaque = Json::object(), inferred = Json::object(), all = Json::array();
  for (const TargetCost& target : profile.targets) {
    count += target.opaque;
    assumed += target.inferred;
    if (target.opaque) opaque[target.target] = target.opaque;
    if (target.inferred) inferred[target.target] = target.inferred;
    all.push_back({{"target", target.target},
                   {"ops", target.ops},
                   {"flops", target.flops},
                   {"seconds", target.seconds}});
  }
  json["opaque_ops"] = count;
  json["opaque_targets"] = opaque;
  json["inferred_ops"] = assumed;
  json["inferred_targets"] = inferred;
  json["targets"] = all;
}

}  // namespace

std::string show_profile(const Profiled& p) {
  const StepMemory& memory = p.profile.memory;
  std::string text = fmt::format(
      "{} on one {}: forward and backward, {}\n", p.model.name, p.prices.cluster().device.name,
      p.upkeep.optimizer.name == "none" ? "without optimizer" : "states of " + p.upkeep.optimizer.name);
  text += show_tree(p.profile);
  text += fmt::format("memory over time {}\n", sparkline(curve_of(p.profile)));
  text += fmt::format("peak {} during {}: {}\n", show_bytes(memory.peak), peak_op(p.model, memory),
                      show_purposes(memory));
  text += fmt::format("eager PyTorch: peak {}, {} saved for backward\n", show_bytes(p.profile.eager_peak),
                      show_bytes(p.profile.eager_saved));
  text += show_upkeep(p.profile.per_parameter);
  if (p.at_peak) text += show_alive(p);
  for (const TargetCost& target : p.profile.targets)
    if (target.opaque)
      text += fmt::format("{} x {} has no row: it cannot be split, its flops count as 0\n", target.opaque,
                          target.target);
  for (const TargetCost& target : p.profile.targets)
    if (target.inferred)
      text += fmt::format("{} x {} has an inferred row, which is an assumption; its flops count as 0\n",
                          target.inferred, target.target);
  return text + show_tier(p.prices);
}

Json write_profile(const Profiled& p) {
  Json json = write_cost(p.profile.total);
  json["name"] = p.model.name;
  json["device"] = p.prices.cluster().device.name;
  write_tier(p.prices, json);
  json["peak_bytes"] = p.profile.memory.peak;
  json["peak_op"] = peak_op(p.model, p.profile.memory);
  json["memory"] = write_memory(p);
  json["eager"] = {{"peak_bytes", p.profile.eager_peak}, {"saved_bytes", p.profile.eager_saved}};
  write_targets(p.profile, json);
  json["modules"] = Json::array();
  for (const ModuleCost& row : p.profile.modules) json["modules"].push_back(write_cost(row));
  json["tree"] = Json::array();
  for (const TreeRow& row : p.profile.tree) {
    json["tree"].push_back(write_cost(row.cost));
    json["tree"].back()["depth"] = row.depth;
    json["tree"].back()["count"] = row.count;
  }
  return json;
}

}  // namespace partita::cli
