// MPI, as the benchmark calls it itself and as the peer: the ranks of this run, the arguments of one
// collective call, and the check of what it returns.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>

#include "collective.h"
#include "team.h"

namespace cohort::bench {

/// @throws std::runtime_error with MPI's own words unless `code` is MPI_SUCCESS.
inline void check_mpi(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw std::runtime_error(std::string(function) + " failed: " + text);
}

/// The arguments of one collective call.
struct MpiCall {
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  Role role;
  bool in_place = false;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::vector<int> counts = {};   ///< of each member, where they differ
  std::vector<int> offsets = {};  ///< of each member's elements within the whole

  /// Fills in counts and offsets.
  void divide_unevenly() {
    for (const std::size_t count : uneven_counts(role)) {
      offsets.push_back(counts.empty() ? 0 : offsets.back() + counts.back());
      counts.push_back(static_cast<int>(count));
    }
  }

  /// The input, or what stands for it in place.
  [[nodiscard]] const void* input_or_in_place() const { return in_place ? MPI_IN_PLACE : input; }
  [[nodiscard]] int elements() const { return static_cast<int>(role.elements); }
  [[nodiscard]] int block() const { return static_cast<int>(role.block()); }
};

/// The ranks of this run, on an MPI communicator of the benchmark's own; the peer's collectives use it as
/// well.
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
