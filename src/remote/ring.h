// A stream of bytes from one process to another through memory that both share: a buffer that is used round
// and round, seen twice in a row by either end, so that nothing is ever cut at its end.
//
// One thread writes and one reads. Each end keeps to its own count and only looks at the other's, which is
// not believed: a count that cannot be is an error, and never a place outside the buffer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "frame.h"

namespace cohort::remote {

inline constexpr std::size_t kRingBytes = std::size_t{1} << 20;

/// The counts of a ring, in shared memory. All zeros is a ring that nothing was written to.
struct RingCounts {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  /// The writer sleeps until there is room. It sets this and then looks at `read`, and the reader moves
  /// `read` and then looks at this, all in one order that both agree on: one of the two sees the other.
  alignas(64) std::atomic<std::uint32_t> writer_waits;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The memory of a connection has the counts of both rings, and then the buffers. Ring 0 leads from the task
/// that has connected to the one that listens.
inline constexpr std::size_t kRingCountsBytes = std::size_t{64} << 10;  ///< pages of any system
inline constexpr std::size_t kRingsBytes = kRingCountsBytes + 2 * kRingBytes;
static_assert(2 * sizeof(RingCounts) <= kRingCountsBytes);

class RingWriter {
 public:
  RingWriter(RingCounts& counts, std::byte* buffer) noexcept : counts_(&counts), buffer_(buffer) {}

  /// Bytes that can be written now; looks at the reader's count only if there are fewer than `wanted`.
  [[nodiscard]] std::size_t room(std::size_t wanted) {
    if (kRingBytes - (written_ - read_) < wanted) look();
    return kRingBytes - static_cast<std::size_t>(written_ - read_);
  }

  /// Adds bytes for which there is room. The reader sees them after `publish`.
  void write(std::span<const std::byte> bytes) noexcept {
    std::copy_n(bytes.data(), bytes.size(), buffer_ + written_ % kRingBytes);
    written_ += bytes.size();
  }
  void publish() noexcept { counts_->written.store(written_); }

  /// Asks for the bell at the next bytes that are read, before the thread sleeps. True: there is room
  /// already.
  [[nodiscard]] bool wait_for_room() {
    counts_->writer_waits.store(1);
    const std::uint64_t before = read_;
    look();
    return read_ != before;
  }

 private:
  void look() {
    const std::uint64_t read = counts_->read.load();
    if (read - read_ > written_ - read_) throw BrokenStream("it has counted wrongly what it has read");
    read_ = read;
  }

  RingCounts* counts_;
  std::byte* buffer_;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;  ///< as last seen
};

class RingReader {
 public:
  RingReader(RingCounts& counts, const std::byte* buffer) noexcept : counts_(&counts), buffer_(buffer) {}

  /// Whether `readable` would show more than it did before.
  [[nodiscard]] bool has_news() const noexcept { return counts_->written.load() != seen_; }

  /// Counts what is readable now as news.
  void look_again() noexcept { seen_ = read_; }

  /// What was written and not read yet.
  [[nodiscard]] std::span<const std::byte> readable() {
    seen_ = counts_->written.load();
    const std::uint64_t bytes = seen_ - read_;
    if (bytes > kRingBytes) throw BrokenStream("it has counted wrongly what it has sent");
    return {buffer_ + read_ % kRingBytes, static_cast<std::size_t>(bytes)};
  }

  /// Gives the first `bytes` back to the writer. True: the writer waits for that.
  [[nodiscard]] bool release(std::size_t bytes) noexcept {
    read_ += bytes;
    counts_->read.store(read_);
    return counts_->writer_waits.load() != 0 && counts_->writer_waits.exchange(0) != 0;
  }

 private:
  RingCounts* counts_;
  const std::byte* buffer_;
  std::uint64_t read_ = 0;
  std::uint64_t seen_ = 0;
};

}  // namespace cohort::remote
