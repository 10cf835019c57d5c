#include "value_in_peer.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <limits>
#include <optional>

#include <cohort/collective/copy_bytes.h>

#include "device/node_heap.h"

namespace cohort::server {
namespace {

/// Below that the message is quicker than the system call.
constexpr std::size_t kWorthReading = std::size_t{16} << 10;

/// Larger copies go past the caches, which would keep but their ends.
constexpr std::size_t kCached = std::size_t{8} << 20;

constexpr std::uint64_t kNotInHeap = std::numeric_limits<std::uint64_t>::max();

}  // namespace

SenderHeap::SenderHeap(int descriptor) {
  struct stat facts = {};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0 || facts.st_size == 0) return;
  mapping_ = MappedRange::aligned(descriptor, static_cast<std::size_t>(facts.st_size), kHugePage, PROT_READ);
  if (mapping_) static_cast<void>(::madvise(mapping_.data(), mapping_.bytes(), MADV_DONTDUMP));
}

const std::byte* SenderHeap::at(std::uint64_t offset, std::size_t bytes) const noexcept {
  const bool inside = mapping_ && offset <= mapping_.bytes() && bytes <= mapping_.bytes() - offset;
  return inside ? mapping_.data() + offset : nullptr;
}

bool ValueInPeer::is_worth_it(const Tensor& value) noexcept {
  return is_cpu(value.device()) && value.raw().size() >= kWorthReading;
}

void ValueInPeer::encode(Encoder& encoder, const Tensor& value) {
  encoder.number(value.dtype());
  encoder.shape(value.shape());
  encoder.number(reinterpret_cast<std::uint64_t>(value.raw().data()));
  const NodeHeap* const heap = NodeHeap::of_this_process();
  const auto offset =
      heap != nullptr ? heap->offset_of(value.raw().data(), value.raw().size()) : std::nullopt;
  encoder.number(offset.value_or(kNotInHeap));
}

ValueInPeer::ValueInPeer(const Sender& sender, Decoder& decoder)
    : peer_(&sender.peer),
      heap_(&sender.heap),
      dtype_(decoder.dtype()),
      shape_(decoder.shape()),
      address_(decoder.number<std::uint64_t>()),
      offset_(decoder.number<std::uint64_t>()) {}

void ValueInPeer::read(std::size_t at, std::span<std::byte> to) const {
  const std::byte* const from = offset_ == kNotInHeap ? nullptr : heap_->at(offset_ + at, to.size());
  // Without the heap the system copies, page by page.
  if (from != nullptr)
    copy_bytes(to.data(), from, to.size(), to.size() > kCached ? CopyHint::kStream : CopyHint::kCached);
  // Asked afterwards: a task that has given up waiting may have changed the value while it was read.
  if (from != nullptr ? !peer_->is_open() : !peer_->read_memory(address_ + at, to)) throw OutOfReach();
}

Tensor ValueInPeer::read() const {
  Tensor result = Tensor::uninitialized(shape_, dtype_);
  read(0, result.raw());
  return result;
}

}  // namespace cohort::server
