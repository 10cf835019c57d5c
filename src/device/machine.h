// The cores of a machine. Its levels: which cores share a cache, a NUMA node, a socket; read by hwloc from
// the system, from a file of another machine, or from a description. And which cores this process may use,
// and how they are divided among its logical CPU devices.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct hwloc_bitmap_s;
struct hwloc_topology;

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

/// A core that this process may run on, as the operating system numbers it.
struct Core {
  int os_index = 0;
  int numa_node = 0;
};

/// The cores in this process's affinity mask, ordered by NUMA node, then by number.
/// @throws Unavailable when hwloc cannot read the machine.
[[nodiscard]] std::vector<Core> allowed_cores();

/// Splits `cores` into `devices` contiguous groups of nearly equal size, so that a device
/// stays within a NUMA node where it can. With more devices than cores, cores are shared
/// round robin.
[[nodiscard]] std::vector<std::vector<int>> split_cores(std::span<const Core> cores, int devices);

/// Only the numbers of those cores, without hwloc: cheap.
[[nodiscard]] std::vector<int> allowed_core_numbers();

/// This process's share when the processes of a host may all run on the same cores, as without a binding by
/// the launcher. `allowed` has the core numbers of each process of the host, `own` is the index of this
/// process, `cores` are its cores. Empty when it shares its cores with no other process, or there are too few
/// to split.
[[nodiscard]] std::vector<int> share_of_cores(std::span<const std::vector<int>> allowed, std::size_t own,
                                              std::span<const Core> cores);

/// Restricts the calling thread to `cores` (operating-system numbers).
/// @throws Unavailable when the system refuses.
void pin_current_thread(std::span<const int> cores);

// ---- ownership of hwloc's objects

struct HwlocTopologyDeleter {
  void operator()(hwloc_topology* topology) const;
};
using HwlocTopology = std::unique_ptr<hwloc_topology, HwlocTopologyDeleter>;

struct HwlocBitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const;
};
using HwlocBitmap = std::unique_ptr<hwloc_bitmap_s, HwlocBitmapDeleter>;

/// An empty one. @throws Unavailable.
[[nodiscard]] HwlocTopology new_hwloc_topology();

/// Reads what was asked for. @throws Unavailable.
void load(const HwlocTopology& topology);

}  // namespace cohort
