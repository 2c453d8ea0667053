#include "cluster/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace partita::cluster {
namespace {

/// A number without a unit below this is a number of GiB whose unit was forgotten: no step fits in it.
constexpr Bytes kForgottenUnit = 4096;

bool has_unit(const std::string& text) { return text.find_first_not_of("0123456789. ") != text.npos; }

Bytes asked_bytes(const std::string& text) {
  Bytes bytes = parse_bytes(text, "--memory");
  if (bytes < 1) input_error("--memory: 0 bytes hold nothing; write for example 80GiB");
  if (bytes < kForgottenUnit && !has_unit(text))
    input_error("--memory: \"{}\" without a unit is {} bytes; write {}GiB", text, bytes, text);
  return bytes;
}

Bytes share_of(Bytes device, double share) {
  return static_cast<Bytes>(std::llround(static_cast<double>(device) * share));
}

Bytes reserve_bytes(const std::string& text, Bytes device) {
  if (!text.ends_with('%')) {
    bool size = !text.empty() && text.find_first_not_of("0123456789.") != 0;
    if (!size) input_error("--reserve: \"{}\" is not a size; write for example 4GiB, 8% or 0", text);
    Bytes bytes = parse_bytes(text, "--reserve");
    if (bytes > 0 && bytes < kForgottenUnit && !has_unit(text))
      input_error("--reserve: \"{}\" without a unit is {} bytes; write {}GiB or {}%", text, bytes, text,
                  text);
    return bytes;
  }
  double percent = -1;
  const char* end = text.data() + text.size() - 1;
  auto [stop, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stop != end || !(percent >= 0))
    input_error("--reserve: \"{}\" is not a share; write for example 8%, 4GiB or 0", text);
  return share_of(device, percent / 100);
}

/// A limit that a plan was made for keeps the reserve that it left.
Bytes default_reserve(const Cluster& cluster, Bytes device, Bytes planned) {
  if (on_cpu(cluster)) return 0;
  Bytes reserve = share_of(device, kReserveShare);
  return planned > 0 ? std::clamp<Bytes>(device - planned, 0, reserve) : reserve;
}

}  // namespace

bool is_cpu(const Device& device) { return device.name.starts_with("cpu"); }

bool on_cpu(const Cluster& cluster) {
  return is_cpu(cluster.device) && std::all_of(cluster.others.begin(), cluster.others.end(),
                                               [](const Section& s) { return is_cpu(s.device); });
}

MemoryLimit memory_limit(const Cluster& cluster, const MemoryRequest& request) {
  MemoryLimit out{.device = least_memory(cluster)};
  bool said = !request.memory.empty() || !request.reserve.empty();
  if (!request.memory.empty()) out.asked = asked_bytes(request.memory);
  if (!said) out.asked = request.planned;
  if (on_cpu(cluster) && out.asked > 0) out.device = out.asked;
  if (!request.memory.empty() && out.asked > out.device)
    input_error("--memory {}: a {} has {}; leave --memory out, or give at most that", request.memory,
                cluster.device.name, show_bytes(out.device));
  out.reserve = request.reserve.empty() ? default_reserve(cluster, out.device, said ? 0 : request.planned)
                                        : reserve_bytes(request.reserve, out.device);
  if (out.reserve >= out.device)
    input_error("--reserve {}: nothing is left of the {} of a {}; write for example 8%", request.reserve,
                show_bytes(out.device), cluster.device.name);
  out.limit = out.device - out.reserve;
  if (out.asked > 0) out.limit = std::min(out.limit, out.asked);
  return out;
}

std::string to_text(const MemoryLimit& limit) {
  std::string text = show_bytes(limit.limit);
  if (limit.reserve == 0 || limit.limit < limit.device - limit.reserve) return text;
  double percent = 100 * static_cast<double>(limit.reserve) / static_cast<double>(limit.device);
  return text + fmt::format(" = {} less {:.2g} % reserve", show_bytes(limit.device), percent);
}

std::string show_fit(const MemoryLimit& limit, Bytes peak) {
  if (limit.fits(peak)) return fmt::format("fits {}", show_bytes(limit.limit));
  return fmt::format("does not fit: {} over {}", show_bytes(peak - limit.limit), show_bytes(limit.limit));
}

}  // namespace partita::cluster
