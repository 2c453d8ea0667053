#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cluster/library.h"

namespace partita::cluster {
namespace {

constexpr int kMaxCount = 1 << 20;

/// The whole number before the first 'x', which is removed together with it; 0 if there is none.
/// Example: "4x8xH100" gives 4 and leaves "8xH100"; "L4" gives 0.
int take_count(std::string_view& text, std::string_view where) {
  size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == text.npos || text[digits] != 'x') return 0;
  int count = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + digits, count);
  if (error != std::errc() || count < 1 || count > kMaxCount)
    input_error("{}: '{}' devices or nodes; needs 1 to {}", where, text.substr(0, digits), kMaxCount);
  text.remove_prefix(digits + 1);
  return count;
}

/// "8xH100" of "H100x8" and of "8 x H100"; "" where it is neither.
std::string in_order(std::string_view text) {
  std::string joined;
  for (char c : text)
    if (c != ' ') joined += c;
  if (joined != text) return joined;
  size_t x = joined.rfind('x');
  if (x == joined.npos || x == 0 || joined.find_first_not_of("0123456789", x + 1) != joined.npos) return "";
  return x + 1 < joined.size() ? joined.substr(x + 1) + "x" + joined.substr(0, x) : "";
}

}  // namespace

Cluster read_cluster(const std::string& argument) {
  if (argument.ends_with(".json") || std::filesystem::is_regular_file(argument))
    return parse_cluster(read_file(argument), argument);
  std::string where = fmt::format("cluster '{}'", argument);
  if (std::string instead = in_order(argument); !instead.empty())
    input_error("{}: the number comes first, then x and the device, without spaces; write {}", where,
                instead);
  std::string_view rest = argument;
  int first = take_count(rest, where);
  int second = take_count(rest, where);
  if (rest.empty()) input_error("{}: the device is missing; write for example 8xA100-80GB", where);
  int nodes = second ? first : 1, devices = second ? second : std::max(first, 1);
  if (nodes > kMaxCount / devices) input_error("{}: more than {} devices", where, kMaxCount);
  return library_cluster(rest, nodes, devices, where);
}

}  // namespace partita::cluster
