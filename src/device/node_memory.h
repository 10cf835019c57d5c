// NodeMemory is this worker's access to the memory of the workers on its node: their
// heaps, mapped here, and, where the system allows it, single copies from and to their
// ordinary memory. It is made once per job, collectively; workers of other nodes are
// out of its reach.
//
// Each kind of access is tried at the start, not assumed: containers, namespaces and security settings may
// forbid any of them. Immutable afterwards; any thread may use it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <cohort/cluster/worker.h>

#include "base/system_calls.h"
#include "cluster/descriptor_exchange.h"

namespace cohort {

// Reading the memory of another process of this node is tried on a number that only the right process has at
// its place: a process with the same pid in another namespace has something else there, or nothing.

/// The number, in private memory of this process; the same for its lifetime.
[[nodiscard]] const std::uint64_t& memory_nonce();

/// Whether `pid` is the process that has `nonce` at `address`, and lets this one read it.
[[nodiscard]] bool memory_can_be_read(pid_t pid, std::uint64_t address, std::uint64_t nonce);

/// Copies from `address` in process `pid`. False, with `errno` set, when not all of it is readable memory.
[[nodiscard]] bool read_process_memory(pid_t pid, std::uint64_t address, std::span<std::byte> destination);

/// Yama lets only ancestors read a process's memory, unless the process itself permits more: this does.
void permit_neighbours_to_read();

/// The workers of a node that may run on the same cores as this one, itself among them.
struct CoreSharers {
  int count = 1;
  int own_index = 0;
};

class NodeMemory {
 public:
  /// Collective over all workers. Workers are neighbours when their WorkerInfos name the same node and they
  /// can reach each other's memory.
  [[nodiscard]] static std::shared_ptr<const NodeMemory> connect(int rank,
                                                                 std::span<const WorkerInfo> workers,
                                                                 const BlobExchange& exchange);

  /// For a group of the workers that `all` has connected, numbered by their places in `ranks`, of which
  /// `own` is this process's. Local: nothing is tried or mapped again.
  [[nodiscard]] static std::shared_ptr<const NodeMemory> of_group(
      const std::shared_ptr<const NodeMemory>& all, std::span<const int> ranks, int own);

  /// For a process that works alone.
  [[nodiscard]] static std::shared_ptr<const NodeMemory> of_this_process_alone();

  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Whether all workers of this node have mapped each other's heaps.
  [[nodiscard]] bool shared() const noexcept { return shared_; }

  /// Whether `copy_from` and `copy_to` work between all workers of this node.
  [[nodiscard]] bool has_single_copy() const noexcept { return single_copy_; }

  /// Where this process sees byte `offset` of the heap of `worker`, which must be a neighbour.
  [[nodiscard]] std::byte* address(int worker, std::uint64_t offset) const noexcept {
    return neighbours_[static_cast<std::size_t>(worker)].heap + offset;
  }

  /// The number of this process among the workers.
  [[nodiscard]] int worker() const noexcept { return rank_; }

  [[nodiscard]] bool is_this_process(int worker) const noexcept { return worker == rank_; }

  /// Copies between this process and the address space of `worker`.
  /// @throws Unavailable when the worker is gone or the range is not its memory.
  void copy_from(int worker, const std::byte* remote, std::byte* local, std::size_t bytes) const;
  void copy_to(int worker, std::byte* remote, const std::byte* local, std::size_t bytes) const;

  /// Cores of this node that at least one of its workers may run on.
  [[nodiscard]] int cores() const noexcept { return cores_; }

  [[nodiscard]] const CoreSharers& core_sharers() const noexcept { return core_sharers_; }

 private:
  struct Neighbour {
    MappedRange mapping;  ///< of another process's heap
    std::byte* heap = nullptr;
    std::size_t heap_bytes = 0;
    std::int64_t pid = 0;
    cpu_set_t cores{};  ///< that it may run on
  };
  void count_cores(std::span<const int> neighbours);
  explicit NodeMemory(int rank, std::size_t workers) : rank_(rank), neighbours_(workers) {}
  [[nodiscard]] bool read_nonces(std::span<const int> peers, std::span<const std::string> blobs) const;

  int rank_;
  std::vector<Neighbour> neighbours_;        ///< by worker; empty for those of other nodes
  std::shared_ptr<const NodeMemory> owner_;  ///< of the mappings; null: this one
  bool shared_ = false;
  bool single_copy_ = false;
  int cores_ = 1;
  CoreSharers core_sharers_;
};

}  // namespace cohort
