#include "heap.h"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cohort/device/allocator.h>

namespace cohort::pytorch {
namespace {

/// Smaller tensors are copied through the members' control blocks in any case.
constexpr std::size_t kLeastBytes = std::size_t{16} << 10;

using Held = std::shared_ptr<const Buffer>;

void release(void* held) { delete static_cast<Held*>(held); }

class HeapAllocator final : public c10::Allocator {
 public:
  explicit HeapAllocator(c10::Allocator& usual) : usual_(usual) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < kLeastBytes || ::getpid() != process_) return usual_.allocate(bytes);
    auto held = std::make_unique<Held>(cohort::allocate(bytes, Device()));
    void* const data = (*held)->data();
    return {data, held.release(), &release, c10::Device(c10::DeviceType::CPU)};
  }

  // Whoever frees without a DataPtr cannot be served, as with PyTorch's own profiling allocator.
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    std::memcpy(destination, source, bytes);
  }

  [[nodiscard]] c10::Allocator& usual() const noexcept { return usual_; }

 private:
  c10::Allocator& usual_;
  const pid_t process_ = ::getpid();
};

}  // namespace

void use_heap(bool on) {
  static std::mutex mutex;
  static auto* const heap = new HeapAllocator(*c10::GetCPUAllocator());
  const std::lock_guard lock(mutex);
  c10::SetCPUAllocator(on ? static_cast<c10::Allocator*>(heap) : &heap->usual());
}

}  // namespace cohort::pytorch
