// The communicators of the program, and what Cohort has for each: a group of its own, which all members make
// together. It hangs on the communicator as an attribute, and goes with it. Any thread may call; the calls of
// one communicator are made one after the other, as MPI demands.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "../engine.h"
#include "mpi_abi.h"
#include "uneven_blocks.h"

namespace cohort::preload {

/// What Cohort has for one communicator. Its members connect when it has had some collectives, since many
/// communicators have few, or at the first one whose result depends on who carries it out. Until then, and
/// where its members are not all on one node or there is only one, its collectives are the MPI's.
struct ServedCommunicator {
  std::atomic<MPI_Comm> comm = {};
  std::unique_ptr<Communicator> communicator;
  bool is_decided = false;  ///< whether there will be a communicator
  int calls = 0;            ///< collectives that the MPI has carried out, until then
  int rank = 0;
  int size = 0;
  std::size_t eager_bytes = 0;      ///< its communicator's
  bool is_free = false;             ///< its communicator has ended, and another may have it
  std::vector<std::size_t> counts;  ///< of the call that is made
  std::vector<std::byte> gathered;  ///< what the members of a reduction by the MPI's operator contribute
  UnevenBlocks blocks;              ///< of calls of MPI_Alltoallv
};

class Communicators {
 public:
  [[nodiscard]] static Communicators& of_this_process();

  /// Right after the start of MPI, on all its ranks; then communicators can be served.
  void start();
  /// Right before the end of MPI, on all its ranks. True for the one that is to say what became of the calls.
  [[nodiscard]] bool stop();

  /// Between these two; before and after, all calls are the MPI's.
  [[nodiscard]] bool are_running() const noexcept { return is_running_.load(std::memory_order_acquire); }

  /// What there is for this communicator, of which this is a collective. Null: nothing.
  /// `depends_on_order(found)`: of its result, the bits do.
  template <class DependsOnOrder>
  [[nodiscard]] ServedCommunicator* find(MPI_Comm comm, const DependsOnOrder& depends_on_order) {
    ServedCommunicator* const known = known_as(comm);
    if (known != nullptr && !known->is_decided) [[unlikely]]
      decide(comm, *known, depends_on_order(*known));
    return known;
  }

  /// Right before the MPI ends a communicator, and right after it. Meanwhile its collectives, which the
  /// program's attributes may make, are the MPI's.
  void begin_end_of(MPI_Comm comm) noexcept;
  void finish_end() noexcept;

  /// The MPI has carried out a collective of this communicator.
  void note_call(MPI_Comm comm) noexcept {
    ServedCommunicator* const known = known_as(comm);
    if (known != nullptr && !known->is_decided) ++known->calls;
  }

  /// It has refused one that Cohort had left to it.
  void take_back_left(MPI_Comm comm) noexcept {
    ServedCommunicator* const known = known_as(comm);
    if (known != nullptr && known->communicator != nullptr) take_back_call_of_mpi(*known->communicator);
  }

  [[nodiscard]] bool only_exact() const noexcept { return only_exact_; }

 private:
  static constexpr std::size_t kPlaces = 64;
  /// Collectives that a communicator has before its members connect.
  static constexpr int kCallsBefore = 3;
  /// Each takes about a MiB of every member's memory.
  static constexpr int kMostServed = 64;

  static std::size_t place_of(MPI_Comm comm) noexcept {
    const auto value = (std::uint64_t)comm;  // NOLINT: a pointer or a number, as the ABI has it
    return (value * 0x9e3779b97f4a7c15) >> 58;
  }
  /// Of a place that several communicators share, other threads may have taken it since the last call.
  [[nodiscard]] ServedCommunicator* known_as(MPI_Comm comm) noexcept {
    if (!are_running()) return nullptr;
    ServedCommunicator* const known = known_[place_of(comm)].load(std::memory_order_acquire);
    if (known != nullptr && known->comm.load(std::memory_order_relaxed) == comm) [[likely]]
      return known;
    return find_slowly(comm);
  }
  static void move_mpi_on();
  static int forget(MPI_Comm comm, int keyval, void* value, void* state);

  void start_node();
  ServedCommunicator* find_slowly(MPI_Comm comm) noexcept;
  void decide(MPI_Comm comm, ServedCommunicator& served, bool depends_on_order);
  void connect(MPI_Comm comm, ServedCommunicator& served);
  [[nodiscard]] ServedCommunicator& unused();
  void release(ServedCommunicator& served);

  std::atomic<bool> is_running_{false};
  bool only_exact_ = false;
  int keyval_ = 0;
  std::unique_ptr<NodeRanks> node_;
  MPI_Comm node_comm_ = MPI_COMM_NULL;  ///< of its ranks; nobody sends messages on it
  std::array<std::atomic<ServedCommunicator*>, kPlaces> known_{};
  std::mutex mutex_;
  std::deque<ServedCommunicator> all_;  ///< kept for ever, since other threads may look at one that has ended
  std::atomic<std::uint64_t> groups_{0};  ///< in which this rank took part
  std::atomic<int> served_{0};            ///< communicators at the moment
};

/// For an error that ends a call: `comm`'s error handler is called with its text. Returns the code for the
/// caller.
int fail(MPI_Comm comm, const char* function, const std::exception& error);

}  // namespace cohort::preload
