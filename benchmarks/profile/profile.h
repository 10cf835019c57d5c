// Measures what a training step pays for its gradients: those of a model, all-reduced in the
// order in which the backward pass makes them ready, in several ways.
//
//   per_tensor  a blocking all-reduce for each tensor
//   packed      a BatchReducer: small tensors side by side as one, large ones where they are
//   fused       all-reduced as one tensor that they already share
//   async       every all-reduce started when its tensor is ready, then waited for; no computing
//   overlapped  the same between the pieces of the backward pass, each as long as its tensor's
//               share of the elements
//   buckets     the same with GradientBuckets
//
// The peer is called per tensor and over one fused buffer. Exposed is what communication adds to the step;
// hidden is what it takes without computing, less that. On GPUs steps are timed there, and kernels compute.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "environment.h"
#include "profile/model.h"
#include "run_context.h"

namespace cohort::bench {

struct ProfileOptions {
  std::string model;                 ///< CSV file: the model's tensors in the order of the forward pass
  std::optional<double> compute_ms;  ///< of a step's backward pass; unset: as long as the communication takes
  int steps = 5;                     ///< that are timed, of each way to communicate
  bool check = true;
};

/// One way to communicate the gradients of a step.
struct ProfileRow {
  std::string library = {};  ///< `cohort`, `mpi` or `nccl`
  std::string mode = {};     ///< `per_tensor`, `packed`, `fused`, `async`, `overlapped` or `buckets`
  std::string buffers = {};  ///< the memory of its tensors
  double step_us = 0;        ///< communication, and computing beside it; slowest member, median of the steps
  double compute_us = 0;     ///< of it, what computing takes alone
  double exposed_us = 0;     ///< what communication adds to the step
  std::optional<double> hidden_us = {};            ///< what it takes alone, less what it adds
  std::optional<double> hidden_share = {};         ///< of what it takes alone
  std::optional<double> ratio_to_per_tensor = {};  ///< the peer called per tensor over `exposed_us`
  std::optional<double> ratio_to_fused = {};       ///< the peer over one fused buffer over `exposed_us`
  std::optional<std::uint64_t> wrong = {};         ///< wrong elements over all members and steps
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

/// Called by all members; the same on all. @throws AgreedError when a member has too little memory.
[[nodiscard]] ProfileResult measure_profile(const Model& model, const ProfileOptions& options,
                                            const RunOptions& run, const MemberContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ProfileResult& result);

}  // namespace cohort::bench
