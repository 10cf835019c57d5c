// What was measured of one way to communicate the gradients of a step: a row of the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cohort::bench {

struct ProfileRow {
  std::string library;  ///< `cohort`, `mpi` or `nccl`
  std::string mode;     ///< `per_tensor`, `packed`, `fused`, `async`, `overlapped` or `buckets`
  std::string buffers;  ///< the memory of its tensors
  double step_us =
      0;  ///< communication, and computing where they overlap; slowest member, median of the steps
  double compute_us = 0;                      ///< of it, what computing takes alone
  double exposed_us = 0;                      ///< what communication adds to the step
  std::optional<double> hidden_us;            ///< what it takes alone, less what it adds
  std::optional<double> hidden_share;         ///< of what it takes alone
  std::optional<double> ratio_to_per_tensor;  ///< the peer called per tensor over `exposed_us`
  std::optional<double> ratio_to_fused;       ///< the peer over one fused buffer over `exposed_us`
  std::optional<std::uint64_t> wrong;         ///< wrong elements over all members and steps
};

struct ProfileResult {
  std::string model;
  std::size_t tensors = 0;
  std::size_t elements = 0;
  std::size_t bytes = 0;
  std::string dtype;
  std::string buffers;  ///< of Cohort's tensors
  int members = 0;
  int steps = 0;
  bool through_host = false;  ///< Cohort's calls with tensors on GPUs, since NCCL could not be used
  double start_us = 0;        ///< to start one call asynchronously
  std::vector<ProfileRow> rows;
};

}  // namespace cohort::bench
