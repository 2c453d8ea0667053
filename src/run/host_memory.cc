#include "run/host_memory.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/error.h"

namespace partita::run {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kNoLimit = std::numeric_limits<Bytes>::max();

/// The number after `key` in a file of lines "key number"; the first number where `key` is empty.
std::optional<Bytes> number_in(const fs::path& file, const std::string& key = "") {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    Bytes value = 0;
    if (!key.empty() && (!(words >> word) || word != key)) continue;
    if (words >> value) return value;
  }
  return std::nullopt;
}

/// Pages of files count as used, and the kernel drops them when somebody needs the memory.
Bytes left_in_group(const fs::path& folder, const char* limit, const char* used) {
  std::optional<Bytes> most = number_in(folder / limit), held = number_in(folder / used);
  if (!most || !held) return kNoLimit;  // "max", or no such controller
  Bytes files = number_in(folder / "memory.stat", "inactive_file").value_or(0);
  return std::max<Bytes>(*most - std::max<Bytes>(*held - files, 0), 0);
}

/// A group has no more than the groups around it.
Bytes left_in_groups(const fs::path& top, fs::path group, const char* limit, const char* used) {
  Bytes least = left_in_group(top, limit, used);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path())
    least = std::min(least, left_in_group(top / group, limit, used));
  return least;
}

/// Lines "0::/user.slice" of version 2 and "9:memory:/docker/1f3" of version 1.
Bytes left_by_groups(const fs::path& root) {
  Bytes least = kNoLimit;
  fs::path top = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, left_in_groups(top, group, "memory.max", "memory.current"));
    if (controllers == "memory")
      least = std::min(
          least, left_in_groups(top / "memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return least;
}

}  // namespace

Bytes available_memory(const std::string& root) {
  constexpr Bytes kKiB = 1024;
  std::optional<Bytes> free = number_in(fs::path(root) / "proc/meminfo", "MemAvailable:");
  Bytes least = std::min(free ? *free * kKiB : kNoLimit, left_by_groups(root));
  return least == kNoLimit ? 0 : least;
}

Bytes host_bytes(const Model& model) {
  Bytes sum = 0;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kParameter || tensor.role == Role::kBuffer || tensor.role == Role::kConstant)
      sum += bytes_of(tensor);
  return sum;
}

void need_memory(const std::string& what, Bytes needed, int64_t ranks, Bytes available) {
  if (available == 0 || needed <= available) return;
  input_error(
      "{}: needs {} for {}, this machine has {} free; `partita simulate` says what it takes without running "
      "it, a smaller --batch or another plan may need less",
      what, show_bytes(needed), ranks == 1 ? "one rank" : fmt::format("{} ranks", ranks),
      show_bytes(available));
}

void need_one_process(const std::string& what) {
  const char* size = std::getenv("WORLD_SIZE");
  if (!size || std::atoll(size) <= 1) return;
  input_error(
      "{}: WORLD_SIZE is {}, but ranks are threads of one process; run it once, without torchrun, and give "
      "the ranks to the plan",
      what, size);
}

}  // namespace partita::run
