#include "run/torch/counting_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <new>

#include "base/error.h"

namespace partita {
namespace {

// One cache line before the data, so that torch's alignment stays.
struct alignas(64) Header {
  MemoryCounter* counter;
  int64_t bytes;
  bool huge;  // came from `allocate_huge`
};

// Large blocks go back to the system when they are freed, and touching them anew page by page costs several
// times what a kernel does with them; huge pages bring that down.
constexpr size_t kHugePage = size_t{2} << 20;

void* allocate_huge(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kHugePage, bytes) != 0) throw std::bad_alloc();
  madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

thread_local MemoryCounter* counter_of_thread = nullptr;

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* base) : base_(base) { CHECK(base->raw_deleter() != nullptr); }

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    size_t size = bytes + sizeof(Header);
    bool huge = counter_of_thread && bytes >= kHugePage;
    auto* header = static_cast<Header*>(huge ? allocate_huge(size) : base_->raw_allocate(size));
    *header = {counter_of_thread, static_cast<int64_t>(bytes), huge};
    if (MemoryCounter* counter = header->counter) {
      int64_t current = counter->current.fetch_add(header->bytes, std::memory_order_relaxed) + header->bytes;
      // Only the rank's own thread allocates on its account, so nobody else raises the peak.
      if (current > counter->peak.load(std::memory_order_relaxed))
        counter->peak.store(current, std::memory_order_relaxed);
    }
    void* data = header + 1;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void release(void* data);
  c10::Allocator* base_;
};

// Never destroyed: blocks may be freed while the process ends.
CountingAllocator& instance() {
  static auto* allocator = new CountingAllocator(c10::GetCPUAllocator());
  return *allocator;
}

void CountingAllocator::release(void* data) {
  if (!data) return;
  Header* header = static_cast<Header*>(data) - 1;
  if (header->counter) header->counter->current.fetch_sub(header->bytes, std::memory_order_relaxed);
  if (header->huge) return std::free(header);
  instance().base_->raw_deallocate(header);
}

}  // namespace

CountingScope::CountingScope(MemoryCounter* counter) : before_(counter_of_thread) {
  counter_of_thread = counter;
}
CountingScope::~CountingScope() { counter_of_thread = before_; }

void install_counting_allocator() {
  static std::once_flag once;
  std::call_once(once, [] { c10::SetCPUAllocator(&instance(), /*priority=*/1); });
}

}  // namespace partita
