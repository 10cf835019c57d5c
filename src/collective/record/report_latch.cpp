#include "report_latch.h"

#include <memory>
#include <new>

#include <cohort/device/allocator.h>

#include "device/node_heap.h"

namespace cohort {
namespace {

constexpr std::chrono::seconds kTimeOfConsequences{10};

}  // namespace

ReportLatch& ReportLatch::of_this_process() {
  // Never given back: other processes may look at it to the end of the job.
  static const auto& block = *new std::shared_ptr<const Buffer>(allocate(sizeof(ReportLatch), Device()));
  static auto* const latch = new (block->data()) ReportLatch;
  return *latch;
}

std::optional<std::uint64_t> ReportLatch::offset() const {
  const NodeHeap* const heap = NodeHeap::of_this_process();
  if (heap == nullptr) return std::nullopt;
  return heap->offset_of(reinterpret_cast<const std::byte*>(this), sizeof *this);
}

std::optional<int> ReportLatch::claim() noexcept {
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  std::int64_t last = last_.load(std::memory_order_relaxed);
  if (last != 0 && now - last < std::chrono::nanoseconds(kTimeOfConsequences).count()) return std::nullopt;
  if (!last_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return std::nullopt;
  return reports_.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace cohort
