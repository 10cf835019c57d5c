// Bootstrap is a worker's access to its cluster at start-up: the list of workers, the rank of this process,
// an exchange of small blobs, and functions that make communicators. MPI implements it (`mpi::Session`),
// and so does a key-value store (`rendezvous::Session`); the core knows only this interface.
//
// `exchange` and the functions that make communicators are collective: every worker calls them in the same
// order. The Bootstrap outlives what was made with it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>

namespace cohort {

class Communicator;  // the collective layer, above this one, defines both
struct CommunicationOptions;

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  /// All workers, by rank.
  [[nodiscard]] virtual std::span<const WorkerInfo> workers() const = 0;
  [[nodiscard]] virtual int rank() const = 0;

  [[nodiscard]] int size() const { return static_cast<int>(workers().size()); }
  [[nodiscard]] const WorkerInfo& self() const { return workers()[static_cast<std::size_t>(rank())]; }
  [[nodiscard]] bool is_chief() const { return rank() == 0; }

  /// Every worker's blob, by rank; blobs may differ in size and be empty.
  /// @throws Unavailable naming a worker that is gone.
  [[nodiscard]] virtual std::vector<std::string> exchange(std::string_view blob) = 0;

  /// A communicator whose members are the workers, one each.
  [[nodiscard]] virtual std::unique_ptr<Communicator> make_communicator(
      const CommunicationOptions& options) = 0;

  /// A communicator with several members on each worker, numbered worker by worker. Returns one per member of
  /// this worker; hand each to a thread of its own.
  /// @throws InvalidArgument naming the worker whose number of members, or whose options, differ.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Communicator>> make_communicators(
      const CommunicationOptions& options, int members) = 0;

  /// The workers that give the same color, as a cluster of their own; they are numbered by key, and by rank
  /// where keys are equal. Every worker calls it; this Bootstrap outlives the result.
  [[nodiscard]] virtual std::unique_ptr<Bootstrap> split(int color, int key) = 0;
};

}  // namespace cohort
