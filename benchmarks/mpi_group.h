// The ranks of this run, on an MPI communicator of the benchmark's own: barriers between the
// timed calls, the combination of what the ranks have measured, and the peer's collectives.
#pragma once

#include <cstdint>
#include <span>

#include <mpi.h>

namespace cohort::bench {

/// @throws Unavailable with MPI's own words unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* function);

class MpiGroup {
 public:
  /// All ranks; collective. MPI is initialised, and not finalised before this ends.
  MpiGroup();
  ~MpiGroup();

  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  [[nodiscard]] MPI_Comm handle() const noexcept { return handle_; }

  void barrier() const;

  /// The same number on every rank: that of rank 0.
  [[nodiscard]] int from_rank_0(int value) const;

  /// Replaces each value by the largest of all ranks.
  void take_maximum(std::span<double> values) const;

  [[nodiscard]] std::uint64_t sum(std::uint64_t value) const;

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
};

}  // namespace cohort::bench
