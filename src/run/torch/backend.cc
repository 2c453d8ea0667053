#include "run/torch/backend.h"

#include <c10/core/CPUAllocator.h>

#include "base/error.h"
#include "run/cpu/cpu_memory.h"
#include "run/threads/thread_ranks.h"

namespace partita::run {
namespace {

/// The host's memory out of torch's hands, so that kernels and the runtime share a pool and an account
/// (counting_allocator.h).
class TorchCpuMemory final : public CpuMemory {
 public:
  Block allocate(Bytes bytes) override {
    c10::DataPtr taken = c10::GetCPUAllocator()->allocate(static_cast<size_t>(bytes));
    CHECK(taken.get_context() == taken.get());
    return taken.move_context();
  }
};

}  // namespace

std::unique_ptr<Memory> make_memory() { return std::make_unique<TorchCpuMemory>(); }

std::unique_ptr<Ranks> make_ranks(const Program& program, const RunOptions& options, Memory& memory) {
  return std::make_unique<ThreadRanks>(program, options, memory);
}

}  // namespace partita::run
