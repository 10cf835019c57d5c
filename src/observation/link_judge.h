// Decides whether the link of one host is slower than those of the others, from what nodes saw of their send
// queues while all of them were in calls that send alike. Looks from a time in which one worker came late say
// nothing of links: what is sent to it stays in the queues of others, and its own is only seen while it
// sends. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace cohort {

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
