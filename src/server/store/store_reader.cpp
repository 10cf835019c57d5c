#include "store.h"

#include <algorithm>
#include <atomic>

#include <cohort/base/error.h>
#include <cohort/collective/copy_bytes.h>

#include "store_mapping.h"

namespace cohort::server {
namespace {

/// A read fails if the server begins a second change of the variable before it ends.
constexpr int kAttempts = 8;

/// The sequence after a copy was read. The bytes are read while they may be written, which the C++ memory
/// model has no word for but by atomic elements; the copy kernel is called through a pointer, so that the
/// compiler knows nothing of them, and what was read in vain is thrown away. The thread sanitizer sees no
/// race, since reader and writer have mappings of their own.
std::uint64_t sequence_after_reading(const VariableEntry& entry) {
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  std::atomic_thread_fence(std::memory_order_acquire);
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic pop
#endif
  return entry.sequence.load(std::memory_order_relaxed);
}

}  // namespace

class StoreReader::Impl {
 public:
  explicit Impl(int descriptor)
      : mapping_(descriptor, StoreMapping::Access::kRead),
        copy_(copy_kernel()),
        file_bytes_(mapping_.file_bytes()) {}

  [[nodiscard]] std::uint64_t size() const {
    return mapping_.header().variables.load(std::memory_order_acquire);
  }

  /// @throws InvalidArgument for one that is not there; DataLoss when it is damaged.
  [[nodiscard]] const VariableEntry& entry(VariableIndex variable) const {
    const std::uint64_t count = size();
    if (variable >= count)
      throw InvalidArgument("there is no variable {} on this server, which has {}", variable, count);
    if (count > kMostVariables) throw DataLoss("the memory of a server's variables is damaged");
    const VariableEntry& found = mapping_.entry(variable);
    if (!lies_in_file(found))
      throw DataLoss("the memory of a server's variables is damaged at variable {}", variable);
    return found;
  }

  /// Calls `copy_from` with the current copy until it was not written meanwhile.
  template <class CopyFrom>
  std::optional<std::uint64_t> read(const VariableEntry& entry, CopyFrom&& copy_from) const {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::uint64_t version = entry.sequence.load(std::memory_order_acquire) / 2;
      copy_from(mapping_.base() + entry.value + version % 2 * copy_stride(entry.bytes));
      if (sequence_after_reading(entry) <= 2 * version + 2) return version;
    }
    return std::nullopt;
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
    copy_(to, from, bytes, CopyHint::kCached);
  }

 private:
  /// Asks for the size of the file only for variables that lie behind what it was.
  [[nodiscard]] bool lies_in_file(const VariableEntry& entry) const {
    const auto lies_in = [&](std::uint64_t file_bytes) {
      return entry.bytes <= file_bytes &&
             StoreMapping::in_blocks(entry.value, 2 * copy_stride(entry.bytes), file_bytes);
    };
    if (lies_in(file_bytes_.load(std::memory_order_relaxed))) return true;
    const std::uint64_t file_bytes = mapping_.file_bytes();
    file_bytes_.store(file_bytes, std::memory_order_relaxed);
    return lies_in(file_bytes);
  }

  StoreMapping mapping_;
  CopyKernel copy_;
  mutable std::atomic<std::uint64_t> file_bytes_;
};

StoreReader::StoreReader(int descriptor) : impl_(std::make_unique<Impl>(descriptor)) {}
StoreReader::~StoreReader() = default;

std::uint64_t StoreReader::size() const { return impl_->size(); }

std::optional<std::uint64_t> StoreReader::read(VariableIndex variable,
                                               std::span<std::byte> destination) const {
  const VariableEntry& entry = impl_->entry(variable);
  if (destination.size() != entry.bytes)
    throw InvalidArgument("variable {} has {} bytes, and is read to {}", variable, entry.bytes,
                          destination.size());
  return impl_->read(
      entry, [&](const std::byte* copy) { impl_->copy(destination.data(), copy, destination.size()); });
}

std::optional<std::uint64_t> StoreReader::read_rows(VariableIndex variable,
                                                    std::span<const std::int64_t> rows,
                                                    std::span<std::byte> destination) const {
  const VariableEntry& entry = impl_->entry(variable);
  const std::uint64_t row_bytes = entry.row_bytes;
  const std::uint64_t places = row_bytes == 0 ? rows.size() : destination.size() / row_bytes;
  if (places != rows.size() || destination.size() != places * row_bytes) {
    throw InvalidArgument("{} rows of {} bytes of variable {} are read to {} bytes", rows.size(), row_bytes,
                          variable, destination.size());
  }
  // Rows without bytes are not looked at.
  const std::uint64_t count = row_bytes == 0 ? 0 : entry.bytes / row_bytes;
  for (const std::int64_t row : rows.first(row_bytes == 0 ? 0 : rows.size())) {
    if (row < 0 || static_cast<std::uint64_t>(row) >= count)
      throw InvalidArgument("variable {} has {} rows, and no row {}", variable, count, row);
  }
  return impl_->read(entry, [&](const std::byte* copy) {
    std::byte* to = destination.data();
    for (const std::int64_t row : rows) {
      impl_->copy(to, copy + static_cast<std::uint64_t>(row) * row_bytes, row_bytes);
      to += row_bytes;
    }
  });
}

std::uint64_t StoreReader::version(VariableIndex variable) const {
  return impl_->entry(variable).sequence.load(std::memory_order_acquire) / 2;
}

}  // namespace cohort::server
