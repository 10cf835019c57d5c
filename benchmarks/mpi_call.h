// The arguments of one collective call to MPI, the peer, and the check of what it returns.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>

#include "layout.h"

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

}  // namespace cohort::bench
