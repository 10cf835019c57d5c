// Counts what moves between the members' caches while they make a call: a way to judge protocols for machines
// that are not at hand. Members report what they publish and what they read of others; the counts follow from
// the protocol alone, and not from the time at which a member happens to look.
//
// A chain is a sequence of cache lines of which each is read by the member that writes the next. A member
// that waits for several lines reads them one after the other. The longest chain bounds the time of a short
// call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "device/machine.h"

namespace cohort::node {

/// What a line costs, in nanoseconds.
struct LineCosts {
  std::array<double, kLevels.size()>
      line{};  ///< to read one from a core, by the nearest level that is shared
  std::array<double, kLevels.size()> in_row{};  ///< each of many in a row, which the hardware fetches ahead
};

/// Of one call, or of several.
struct LineCounts {
  int chain = 0;                    ///< lines of the longest chain
  int chain_far = 0;                ///< lines from another socket in the chain that has most of them
  double nanoseconds = 0;           ///< of the chain that takes longest, with the data that is read in it
  std::size_t most_read = 0;        ///< bytes of others' data read by the member that reads most
  std::size_t between_sockets = 0;  ///< bytes of data that cross between sockets, of all members together
};

class LineCounter {
 public:
  /// `groups`: where the members are, by local rank.
  LineCounter(std::vector<LevelGroups> groups, const LineCosts& costs);

  /// `member` writes a line that others wait for; `count`: where it says how far the member is.
  void published(int member, const void* line, std::uint64_t count = 0);
  /// `member` has seen what was published there, this count or a later one; `line` may be its own.
  void read(int member, const void* line, std::uint64_t count = 0);
  /// `member` reads so many bytes that `owner` has written, or writes them to its memory.
  void moved(int member, int owner, std::size_t bytes);

  /// Since the beginning or the last `restart`, while no call is under way.
  [[nodiscard]] LineCounts counts() const;
  void restart();

 private:
  /// What had to happen before.
  struct Chain {
    int lines = 0;
    int far = 0;
    double nanoseconds = 0;
    void take_longer(const Chain& other);
  };
  struct Published {
    int member = 0;
    Chain before;
  };
  [[nodiscard]] Level level_between(int member, int other) const;

  const std::vector<LevelGroups> groups_;
  const LineCosts costs_;
  mutable std::mutex mutex_;
  std::vector<Chain> chains_;        ///< by member
  std::vector<std::size_t> read_;    ///< bytes, by member
  std::size_t between_sockets_ = 0;  ///< bytes
  std::map<std::pair<const void*, std::uint64_t>, Published> lines_;
};

}  // namespace cohort::node
