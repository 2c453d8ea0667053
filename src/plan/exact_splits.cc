#include "plan/exact_splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/names.h"

namespace partita::plan {
namespace {

std::string at(const char* side, const Pos& pos) {
  return fmt::format("{}{}:{}.{}", side, pos.operand, pos.dim, pos.leaf);
}

/// A number at the start of `text`, taken off it.
std::optional<int32_t> take_number(std::string_view& text) {
  int32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(end - text.data());
  return number;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<AxisChoice> parse_addends(const OpLoops& op, std::string_view text) {
  std::vector<int> set;
  while (take(text, " in")) {
    std::optional<int32_t> input = take_number(text);
    if (!input) return std::nullopt;
    set.push_back(*input);
  }
  auto found = std::find(op.linear.begin(), op.linear.end(), set);
  if (!text.empty() || found == op.linear.end()) return std::nullopt;
  return AxisChoice{.pass = &*found};
}

std::string_view tail_of(std::string_view name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

std::string text_of(const OpLoops& op, const AxisChoice& choice) {
  if (choice.pass) {
    std::string text = "addends";
    for (int input : *choice.pass) text += fmt::format(" in{}", input);
    return text;
  }
  if (choice.loop < 0) return "whole";
  const Loop& loop = op.loops[choice.loop];
  return loop.ins.empty() ? at("out", loop.outs[0]) : at("in", loop.ins[0]);
}

std::optional<AxisLayout> parse_leaf(std::string_view text) {
  std::optional<int32_t> dim = take_number(text);
  bool dot = take(text, ".");
  std::optional<int32_t> leaf = take_number(text);
  if (!dim || !dot || !leaf || !text.empty() || *dim < 0 || *leaf < 0) return std::nullopt;
  return AxisLayout::shard(*dim, *leaf);
}

std::optional<AxisChoice> parse_choice(const OpLoops& op, std::string_view text) {
  if (text == "whole") return AxisChoice{};
  if (take(text, "addends")) return parse_addends(op, text);
  bool input = take(text, "in");
  if (!input && !take(text, "out")) return std::nullopt;
  std::optional<int32_t> operand = take_number(text);
  if (!operand || !take(text, ":")) return std::nullopt;
  std::optional<AxisLayout> cut = parse_leaf(text);
  if (!cut) return std::nullopt;
  Pos pos{*operand, cut->dim, cut->leaf};
  for (size_t l = 0; l < op.loops.size(); ++l) {
    const std::vector<Pos>& places = input ? op.loops[l].ins : op.loops[l].outs;
    if (!op.loops[l].frozen && std::find(places.begin(), places.end(), pos) != places.end())
      return AxisChoice{.loop = static_cast<int>(l)};
  }
  return std::nullopt;
}

ExactSplits::ExactSplits(const std::vector<SplitRule>& rules, const std::string& axis) {
  for (const SplitRule& rule : rules) {
    if (rule.as.empty() || rule.axis != axis) continue;
    std::string_view tail = tail_of(rule.ops);
    bool plain = rule.ops.find('/') != rule.ops.npos && tail.find('*') == tail.npos;
    (plain ? by_tail_[std::string(tail)] : others_).push_back(rules_.size());
    rules_.push_back(&rule);
  }
}

const SplitRule* ExactSplits::find(const std::string& op) const {
  size_t first = rules_.size();
  auto consider = [&](const std::vector<size_t>& list) {
    for (size_t r : list)
      if (r < first && matches(rules_[r]->ops, op)) first = r;
  };
  if (auto bucket = by_tail_.find(tail_of(op)); bucket != by_tail_.end()) consider(bucket->second);
  consider(others_);
  return first < rules_.size() ? rules_[first] : nullptr;
}

}  // namespace partita::plan
