#include "cli/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/names.h"

namespace partita::cli {
namespace {

template <class Number>
bool reads(const std::string& text, Number& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  std::string known = fmt::format("{{{}}}", fmt::join(words, ","));
  auto wrong = [words = std::move(words)](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    return fmt::format("\"{}\"; there are {}{}", text, fmt::join(words, ", "), did_you_mean(text, words));
  };
  return {wrong, known};
}

CLI::Validator whole_number(int64_t least, int64_t most) {
  std::string range =
      most == INT64_MAX ? fmt::format("of {} or more", least) : fmt::format("from {} to {}", least, most);
  auto wrong = [=](const std::string& text) -> std::string {
    int64_t value = 0;
    if (reads(text, value) && value >= least && value <= most) return "";
    return fmt::format("\"{}\" is not a whole number {}", text, range);
  };
  return {wrong, most == INT64_MAX ? "" : fmt::format("{} to {}", least, most)};
}

CLI::Validator number(double least, double most) {
  auto wrong = [=](const std::string& text) -> std::string {
    double value = 0;
    if (reads(text, value) && value >= least && value <= most) return "";
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
  return {wrong, ""};
}

}  // namespace partita::cli
