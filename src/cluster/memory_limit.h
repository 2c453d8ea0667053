#pragma once

#include <string>

#include "cluster/cluster.h"

namespace partita::cluster {

/// Is it a CPU, of the library or of a file that calls it so? Everything else is an accelerator.
bool is_cpu(const Device& device);
/// Are all devices CPUs?
bool on_cpu(const Cluster& cluster);

/// The share of an accelerator that no plan may use, unless somebody says otherwise. Of an 80 GB card about
/// 0.5 GiB goes to the CUDA context and libraries, 1 to 2 GiB to buffers of collectives, and the allocator
/// loses some percent to fragmentation; people see 76 to 78 GiB that can be used.
inline constexpr double kReserveShare = 0.06;

/// What a plan may use of every device: the least of what was asked for and of the device without its
/// reserve.
struct MemoryLimit {
  Bytes device = 0;   // of the device that has least
  Bytes reserve = 0;  // of it, for context, fragmentation and buffers of communication
  Bytes asked = 0;    // 0: nothing was
  Bytes limit = 0;

  bool fits(Bytes peak) const { return peak <= limit; }
  bool operator==(const MemoryLimit&) const = default;
};

/// What people say about memory, as they write it. Empty: not said.
struct MemoryRequest {
  std::string memory;   // "80GiB"
  std::string reserve;  // "4GiB", "8%", "0"
  Bytes planned = 0;    // the limit that a plan was made for; what is said above goes before it
};

/// The one rule of what fits. A rank on a CPU has no memory of its own: there --memory says how much it has,
/// and nothing is kept in reserve by default. InputError where more is asked for than an accelerator has, or
/// where nothing is left of it.
/// Example: 8xH100-80GB gives 75.2 GiB; with --memory 40GiB 40 GiB; with --reserve 0 80 GiB.
MemoryLimit memory_limit(const Cluster& cluster, const MemoryRequest& request = {});

/// "75.2 GiB = 80.0 GiB less 6 % reserve", "40.0 GiB".
std::string to_text(const MemoryLimit& limit);
/// "fits 75.2 GiB", "does not fit: 270.0 GiB over 75.2 GiB".
std::string show_fit(const MemoryLimit& limit, Bytes peak);

}  // namespace partita::cluster
