// The ranks of this run, on an MPI communicator of the benchmark's own; the peer's collectives
// use it as well.
#pragma once

#include <mpi.h>

#include "team.h"

namespace cohort::bench {

class MpiTeam final : public Team {
 public:
  /// All ranks; collective. MPI is initialised, and not finalised before this ends.
  MpiTeam();
  ~MpiTeam() override;

  MpiTeam(const MpiTeam&) = delete;
  MpiTeam& operator=(const MpiTeam&) = delete;

  [[nodiscard]] MPI_Comm handle() const noexcept { return handle_; }

  void barrier() const override;
  [[nodiscard]] int from_first(int value) const override;
  void take_maximum(std::span<double> values) const override;
  [[nodiscard]] std::uint64_t sum(std::uint64_t value) const override;
  [[nodiscard]] bool shares_a_clock() const override;

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
};

}  // namespace cohort::bench
