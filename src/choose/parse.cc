#include <cmath>
#include <set>

#include "base/error.h"
#include "choose/problem.h"

namespace partita::choose {
namespace {

// Sums of bytes stay whole in 64 bits, and exact in a double but for what rounds away in 1e-16.
constexpr double kMostBytes = 1e18;
constexpr int64_t kMostCount = 1'000'000'000;
constexpr size_t kMostOptions = 4096;

Bytes read_size(const JsonIn& in) {
  Bytes bytes = 0;
  try {
    bytes = parse_bytes(in.text(), "");
  } catch (const InputError&) {
    parse_bytes(in.text(), in.where());  // the path is searched for only now that it is needed
  }
  if (static_cast<double>(bytes) > kMostBytes) in.fail(fmt::format("is more than {:.0g} bytes", kMostBytes));
  return bytes;
}

/// A whole number, a decimal or a size such as "80GiB". A part of a byte counts as one where something needs
/// it, and as none where it is offered, so that a choice never exceeds its budget.
Bytes read_bytes(const JsonIn& in, bool needed) {
  if (in.raw().is_string()) return read_size(in);
  if (!in.raw().is_number()) in.fail("needs to be bytes: a number, or text such as \"80GiB\"");
  if (in.raw().is_number_float()) {
    double value = needed ? std::ceil(in.number()) : std::floor(in.number());
    if (value < 0 || value > kMostBytes)
      in.fail(fmt::format("is {}, needs to be from 0 to {}", in.number(), kMostBytes));
    return static_cast<Bytes>(value);
  }
  return in.integer(0, static_cast<int64_t>(kMostBytes));
}

/// A number stands for every moment.
std::vector<Bytes> read_by_moment(const JsonIn& in, size_t moments) {
  if (!in.raw().is_array()) return std::vector<Bytes>(moments, read_bytes(in, true));
  if (in.size() != moments)
    in.fail(fmt::format("has {} numbers, needs {}: one for each moment", in.size(), moments));
  std::vector<Bytes> bytes;
  for (size_t t = 0; t < in.size(); ++t) bytes.push_back(read_bytes(in[t], true));
  return bytes;
}

ChoiceOption read_option(const JsonIn& in, size_t moments) {
  in.only({"name", "seconds", "bytes", "transient"});
  ChoiceOption option{in["name"].text(), in["seconds"].number(), read_by_moment(in["bytes"], moments),
                      std::vector<Bytes>(moments)};
  if (option.seconds < 0 || option.seconds > 1e15)
    in["seconds"].fail(fmt::format("is {}, needs to be from 0 to 1e15", option.seconds));
  if (in.has("transient")) option.transient = read_by_moment(in["transient"], moments);
  return option;
}

ChoiceOperator read_operator(const JsonIn& in, size_t moments) {
  in.only({"name", "count", "options"});
  ChoiceOperator op;
  if (in.has("name")) in["name"].text();
  if (in.has("count")) op.count = in["count"].integer(1, kMostCount);
  JsonIn options = in["options"];
  if (options.size() == 0 || options.size() > kMostOptions)
    options.fail(fmt::format("has {} options, needs 1 to {}", options.size(), kMostOptions));
  std::set<std::string> names;
  for (size_t j = 0; j < options.size(); ++j) {
    op.options.push_back(read_option(options[j], moments));
    if (!names.insert(op.options.back().name).second)
      options[j]["name"].fail(
          fmt::format("the name \"{}\" stands twice; `chosen` counts by name", op.options.back().name));
  }
  return op;
}

/// The first list that gives bytes by moment says how many moments there are.
size_t moments_of(const JsonIn& in) {
  std::vector<JsonIn> found;
  if (in.has("held") && in["held"].raw().is_array()) found.push_back(in["held"]);
  JsonIn operators = in["operators"];
  for (size_t i = 0; i < operators.size() && found.empty(); ++i) {
    JsonIn options = operators[i]["options"];
    for (size_t j = 0; j < options.size(); ++j)
      for (const char* key : {"bytes", "transient"})
        if (options[j].has(key) && options[j][key].raw().is_array()) found.push_back(options[j][key]);
  }
  if (found.empty()) return 1;
  if (found[0].size() == 0 || found[0].size() > kMaxMoments)
    found[0].fail(fmt::format("has {} moments, needs 1 to {}", found[0].size(), kMaxMoments));
  return found[0].size();
}

void check_sums(const JsonIn& in, const ChoiceProblem& problem) {
  for (size_t t = 0; t < problem.moments(); ++t) {
    double sum = static_cast<double>(problem.held[t]), transient = 0;
    for (const ChoiceOperator& op : problem.operators) {
      double most = 0;
      for (const ChoiceOption& option : op.options) {
        most = std::max(most, static_cast<double>(option.bytes[t]));
        transient = std::max(transient, static_cast<double>(option.transient[t]));
      }
      sum += most * static_cast<double>(op.count);
    }
    if (sum + transient > kMostBytes)
      in["operators"].fail(
          fmt::format("add up to {:.3g} bytes, more than {:.0g}", sum + transient, kMostBytes));
  }
}

ChoiceProblem read_problem(const JsonIn& in, bool sweep) {
  in.only({"name", "samples", "budget", "held", "operators"});
  if (in.has("name")) in["name"].text();
  ChoiceProblem problem{.budget = read_bytes(in["budget"], false)};
  size_t moments = moments_of(in);
  problem.held = in.has("held") ? read_by_moment(in["held"], moments) : std::vector<Bytes>(moments);
  JsonIn operators = in["operators"];
  if (operators.size() == 0) operators.fail("is empty; needs at least one operator");
  for (size_t i = 0; i < operators.size(); ++i)
    problem.operators.push_back(read_operator(operators[i], moments));
  if (sweep || in.has("samples")) {
    problem.samples = in["samples"].number();
    if (!(problem.samples > 0))
      in["samples"].fail(fmt::format("is {}, needs to be above 0", problem.samples));
  }
  check_sums(in, problem);
  return problem;
}

}  // namespace

ChoiceFile parse_choices(std::string_view text, const std::string& where) {
  Json json = parse_json(text, where);
  JsonIn in(json, where);
  ChoiceFile file{.sweep = json.is_array()};
  if (!file.sweep) {
    file.problems.push_back(read_problem(in, false));
    return file;
  }
  if (in.size() == 0) in.fail("an empty list; a sweep needs at least one problem with `samples`");
  for (size_t b = 0; b < in.size(); ++b) file.problems.push_back(read_problem(in[b], true));
  return file;
}

}  // namespace partita::choose
