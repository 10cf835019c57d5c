// The levels of a machine: which of its cores share a cache, a NUMA node, a socket. Read by hwloc from the
// system, from a file of another machine, or from a description.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace cohort {

/// From the nearest to the farthest. A group of a level lies within one group of the next.
enum class Level { kCache, kNumaNode, kSocket, kMachine };
inline constexpr std::array kLevels{Level::kCache, Level::kNumaNode, Level::kSocket, Level::kMachine};

/// `cache`, `NUMA node`, `socket`, `machine`.
[[nodiscard]] const char* to_string(Level level);

/// The group that something belongs to, by level; each level counts its groups from 0.
using LevelGroups = std::array<int, kLevels.size()>;

/// The nearest level that both share.
[[nodiscard]] Level nearest_shared_level(const LevelGroups& one, const LevelGroups& other);

class Machine {
 public:
  struct Core {
    std::vector<int> threads;  ///< its hardware threads, as the operating system numbers them
    LevelGroups group{};
  };

  /// `description` is empty for this machine; a path that ends in `.xml`, for what `lstopo FILE.xml` wrote on
  /// another; or hwloc's synthetic form, as `pack:2 l3:8 core:8 pu:2`.
  /// @throws InvalidArgument for a file that cannot be read and a description that hwloc does not understand;
  /// Unavailable when hwloc cannot read this machine.
  [[nodiscard]] static Machine read(const std::string& description);

  /// In the order of the levels: cores of a group follow each other.
  [[nodiscard]] const std::vector<Core>& cores() const noexcept { return cores_; }
  [[nodiscard]] std::size_t threads() const;

  [[nodiscard]] int groups(Level level) const;

  /// The levels whose groups have several cores and are smaller than those of the next one that counts; the
  /// machine is always the last.
  [[nodiscard]] std::vector<Level> levels_that_count() const;

  /// Of the largest cache that several cores share, as `L3, 32 MiB`; empty where none is known: then
  /// groups of kCache are those of NUMA nodes.
  [[nodiscard]] const std::string& cache() const noexcept { return cache_; }

 private:
  Machine() = default;

  std::vector<Core> cores_;
  std::string cache_;
};

}  // namespace cohort
