#include "base/units.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace partita::base {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kUnits[] = {{"", 1},         {"B", 1},     {"kB", 1e3},     {"KB", 1e3},
                           {"KiB", 1024.0}, {"MB", 1e6},  {"MiB", 0x1p20}, {"GB", 1e9},
                           {"GiB", 0x1p30}, {"TB", 1e12}, {"TiB", 0x1p40}};

}  // namespace

Bytes parse_bytes(std::string_view text, std::string_view where) {
  size_t split = text.find_first_not_of("0123456789.");
  std::string_view digits = text.substr(0, split);
  std::string_view suffix = split == text.npos ? "" : text.substr(split);
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool number = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  for (const Unit& unit : kUnits) {
    if (!number || unit.name != suffix) continue;
    double bytes = std::round(value * unit.factor);
    if (bytes > 9e18) input_error("{}: {} is more bytes than can be counted", where, text);
    return static_cast<Bytes>(bytes);
  }
  input_error("{}: \"{}\" is not a size; write for example 80GiB, 512MiB or 123456", where, text);
}

std::string show_bytes(Bytes bytes) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (std::abs(value) >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kNames[unit]);
}

std::string show_seconds(Seconds seconds) {
  double size = std::abs(seconds);
  if (size >= 1) return fmt::format("{:.2f} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

}  // namespace partita::base
