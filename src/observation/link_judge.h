// Whether the link of one host is slower than those of the others: what a node's process sees of its send
// queues, and the judge of what all nodes saw. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

/// What this process has sent over TCP, MPI's connections included, and the network has not taken yet: on a
/// host with a slow link that is much all the time, while the others wait for it. Linux' table of all
/// connections would tell the same of the whole host, and takes milliseconds to read.
class SendQueues {
 public:
  /// In the send queues of the connections to other hosts.
  [[nodiscard]] std::uint64_t bytes();

 private:
  void find_connections();

  std::vector<int> connections_;  ///< descriptors, which others may close meanwhile
  std::chrono::steady_clock::time_point found_at_;
};

/// What a node saw, as sums over its looks.
struct QueueLooks {
  std::uint32_t looks = 0;  ///< while it was in a long call in which all nodes send as much
  std::uint32_t full = 0;   ///< of these: the network had much to take yet
  std::uint64_t bytes = 0;  ///< that it had to take

  void add(const QueueLooks& other) noexcept {
    looks += other.looks;
    full += other.full;
    bytes += other.bytes;
  }
  [[nodiscard]] double share_full() const noexcept {
    return looks == 0 ? 0 : static_cast<double>(full) / looks;
  }
  [[nodiscard]] double mean_bytes() const noexcept {
    return looks == 0 ? 0 : static_cast<double>(bytes) / looks;
  }
};

/// A look at a send queue with so many bytes is one at a full queue.
inline constexpr std::uint64_t kFullQueue = 64 << 10;

struct SlowLink {
  int worker = -1;         ///< the first of the node
  double mean_bytes = 0;   ///< in its send queues
  double other_bytes = 0;  ///< in those of the next node
};

/// `has a slow link: 210 KiB on average wait there to be sent in long calls, 12 KiB on the next host: moving
/// data, not computing or input`.
[[nodiscard]] std::string to_string(const SlowLink& link);

/// Decides from what nodes saw of their send queues while all of them were in calls that send alike. Looks
/// from a time in which one worker came late say nothing of links: what is sent to it stays in the queues of
/// others, and its own is only seen while it sends.
class LinkJudge {
 public:
  /// What a node has seen since the last time; `worker` is its first one. It is kept until the calls of the
  /// same time are judged.
  void add(int worker, const QueueLooks& looks);

  /// The calls of all looks so far are judged: one worker was late in them, or none.
  void judge_looks(bool one_was_late);

  /// Whose link is slow at present; nobody's if that is not clear.
  [[nodiscard]] const std::optional<SlowLink>& present() const noexcept { return present_; }
  /// The same for all looks since the beginning from times in which no worker was late.
  [[nodiscard]] std::optional<SlowLink> of_all_looks() const { return judge(all_); }

 private:
  using Nodes = std::map<int, QueueLooks>;
  [[nodiscard]] static std::optional<SlowLink> judge(const Nodes& nodes);

  Nodes kept_;  ///< until their calls are judged
  Nodes window_;
  Nodes all_;
  std::optional<SlowLink> before_;
  std::optional<SlowLink> present_;
};

}  // namespace cohort
