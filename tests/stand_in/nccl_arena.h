// Where the ranks of a communicator of the NCCL stand-in meet: shared memory with a channel from each
// rank to each other one, for threads and processes alike. Its name is gone once all have come, or
// when one that came leaves again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace nccl_stand_in {

inline constexpr int kMostRanks = 16;
inline constexpr int kSplitsRemembered = 64;
inline constexpr int kWindowsRemembered = 8;
inline constexpr int kLaunchesRemembered = 256;

/// One piece of a message at a time. Shared between processes.
struct Channel {
  static constexpr std::size_t kRoom = 16384;
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  std::uint64_t bytes;
  std::array<std::byte, kRoom> data;
};

/// What a rank says of itself before it arrives.
struct Introduction {
  std::array<char, 32> gpu;
  std::array<char, 64> host;
  std::int64_t process;
  int device;  ///< its number there
};

/// What a rank brings to the registration of a window.
struct WindowOffer {
  std::atomic<std::uint64_t> number;  ///< of the window, from 1 on; set last
  std::uint64_t bytes;
  std::uint64_t others;  ///< a digest of the windows that it has
};

/// The launches of a rank, each with its number among all launches on the rank's GPU.
struct LaunchRecord {
  std::atomic<std::uint64_t> made;
  std::array<std::atomic<std::uint64_t>, kLaunchesRemembered> numbers;

  void add(std::uint64_t number) {
    numbers[made.load() % kLaunchesRemembered] = number;
    made.fetch_add(1);
  }
  [[nodiscard]] bool remembers(std::uint64_t launch) const {
    return launch < made.load() && launch + kLaunchesRemembered / 2 > made.load();
  }
  [[nodiscard]] std::uint64_t number(std::uint64_t launch) const {
    return numbers[launch % kLaunchesRemembered];
  }
};

class Arena {
 public:
  Arena(std::string name, int rank, int size, const Introduction& own);
  ~Arena();

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool all_are_here();
  /// Whether two ranks of one host have the same GPU. Once all are here.
  [[nodiscard]] bool shares_a_gpu() const;

  /// Once all are here.
  [[nodiscard]] const Introduction& introduction(int rank) const;

  [[nodiscard]] Channel& channel(int from, int to) const;

  [[nodiscard]] LaunchRecord& launches(int rank) const;
  /// The rank of the other communicator that is this one's `rank`; -1 for none.
  [[nodiscard]] int rank_in(const Arena& other, int rank) const;

  /// Whether a rank has aborted; the others may have launched less, or more.
  void abort() const;
  [[nodiscard]] bool is_aborted() const;

  /// This rank's connections are closed from now on.
  void close();
  /// Whether those of all others are, of this process only if they count as well.
  [[nodiscard]] bool others_have_closed(bool threads_count) const;

  /// The answer of a rank to split number `split`, 0 before it has come; this one's is set.
  [[nodiscard]] std::atomic<std::uint64_t>& answer(std::uint64_t split, int rank) const;

  /// The latest offer of a rank to this window, or to one some numbers before.
  [[nodiscard]] WindowOffer& offer(std::uint64_t window, int rank) const;

 private:
  struct Header;

  std::string name_;
  int rank_;
  int size_;
  std::size_t bytes_;
  Header* header_;
  bool named_ = true;
};

}  // namespace nccl_stand_in
