#include "run/torch/counting_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <mutex>

#include "base/error.h"
#include "run/cpu/memory_pool.h"

namespace partita::run {
namespace {

// One cache line before the data, so that torch's alignment stays.
struct alignas(64) Header {
  MemoryCounter* counter;
  int64_t bytes;
  bool pooled;
};

// The system takes large blocks back when they are freed, and touching them anew page by page costs more than
// a light kernel does with them.
constexpr size_t kPooled = size_t{128} << 10;

// Never destroyed: blocks may be freed while the process ends.
MemoryPool& pool() {
  static auto* pool = new MemoryPool;
  return *pool;
}

thread_local MemoryCounter* counter_of_thread = nullptr;

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* base) : base_(base) { CHECK(base->raw_deleter() != nullptr); }

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    size_t size = bytes + sizeof(Header);
    bool pooled = counter_of_thread && bytes >= kPooled;
    auto* header = static_cast<Header*>(pooled ? pool().take(size) : base_->raw_allocate(size));
    *header = {counter_of_thread, static_cast<int64_t>(bytes), pooled};
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

CountingAllocator& instance() {
  static auto* allocator = new CountingAllocator(c10::GetCPUAllocator());
  return *allocator;
}

void CountingAllocator::release(void* data) {
  if (!data) return;
  Header* header = static_cast<Header*>(data) - 1;
  if (header->counter) header->counter->current.fetch_sub(header->bytes, std::memory_order_relaxed);
  if (header->pooled) return pool().give_back(header);
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

int64_t peak_of(const std::function<void()>& call) {
  install_counting_allocator();
  // Never freed: what `call` leaves behind (gradients) is subtracted when it goes.
  auto* counter = new MemoryCounter;
  CountingScope counting(counter);
  call();
  return counter->peak;
}

void return_free_memory() { pool().trim(); }

}  // namespace partita::run
