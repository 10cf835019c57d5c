// What two tasks of a node talk through: memory that both share, a ring in it for each direction, and a
// doorbell by which one wakes the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/system_calls.h"
#include "cluster/sockets.h"
#include "frames.h"

namespace cohort::remote {

/// Memory that two processes share: a file without a name whose size is fixed, so that neither end can take
/// pages away from the other.
class SharedMemory {
 public:
  /// @throws Unavailable when the system has none.
  explicit SharedMemory(std::size_t bytes);

  /// That of another process.
  /// @throws DataLoss when it is not a file of `bytes` whose size is fixed.
  SharedMemory(watch::Fd file, std::size_t bytes);

  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

  /// Views go on without it.
  [[nodiscard]] watch::Fd take_file() && noexcept { return std::move(file_); }

  /// Both throw Unavailable when there is no room. `offset` and `bytes` are multiples of a page.
  [[nodiscard]] MappedRange view(std::size_t offset, std::size_t bytes) const;

  /// The range twice, one after the other: what goes beyond its end continues at its beginning.
  [[nodiscard]] MappedRange view_twice(std::size_t offset, std::size_t bytes) const;

 private:
  watch::Fd file_;
};

/// Wakes a task that sleeps, and shows that it lives. Each endpoint has one; other tasks of the node get its
/// two descriptors, and ring after what they have written for it.
///
/// A ringer writes to the sleeper's eventfd only if the sleeper has said that it sleeps. The sleeper says so
/// and then looks once more for work, the ringer makes work and then looks whether the other sleeps, all in
/// one order that both agree on: one of the two sees the other.
class Doorbell {
 public:
  /// This task's own.
  /// @throws Unavailable when the system refuses.
  Doorbell();

  /// Another task's.
  /// @throws DataLoss when the descriptors are not those of a doorbell.
  Doorbell(watch::Fd page, watch::Fd event);

  /// Of this task's own.
  [[nodiscard]] int page_descriptor() const noexcept { return page_.get(); }

  /// Readable when the bell was rung; never read, so it is polled for edges.
  [[nodiscard]] int event_descriptor() const noexcept { return event_.get(); }

  /// Wakes its task if that sleeps. Any thread may call it.
  void ring() noexcept {
    if (state().asleep.load() != 0 && state().asleep.exchange(0) != 0) strike();
  }

  /// From here on `ring` wakes; afterwards look once more for work, then sleep.
  void fall_asleep() noexcept { state().asleep.store(1); }
  void awake() noexcept { state().asleep.store(0, std::memory_order_relaxed); }

  /// A sign of life to all who have this bell.
  void beat() noexcept { state().beats.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t beats() const noexcept { return state().beats.load(std::memory_order_relaxed); }

 private:
  struct State {
    alignas(64) std::atomic<std::uint32_t> asleep;
    alignas(64) std::atomic<std::uint64_t> beats;
  };
  [[nodiscard]] State& state() const noexcept { return *reinterpret_cast<State*>(view_.data()); }
  void strike() noexcept;

  explicit Doorbell(SharedMemory page);

  watch::Fd page_;
  MappedRange view_;
  watch::Fd event_;
};

// A ring is a stream of bytes from one process to another: a buffer that is used round and round, seen twice
// in a row by either end, so that nothing is ever cut at its end.
//
// One thread writes and one reads. Each end keeps to its own count and only looks at the other's, which is
// not believed: a count that cannot be is an error, and never a place outside the buffer.

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
