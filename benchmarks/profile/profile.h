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

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "environment.h"
#include "run_context.h"
#include "value_table.h"

namespace cohort::bench {

/// The tensors of a model, as a CSV file lists them: a header `name,elements`, then one row per tensor, in
/// the order of the forward pass.
struct Model {
  std::string name;  ///< the file's, without folder and ending
  /// Elements of each gradient in the order in which the backward pass makes them ready: last tensor first.
  std::vector<std::size_t> gradients;

  [[nodiscard]] std::size_t elements() const;
};

/// @throws UsageError when the file cannot be read, or naming the line that is wrong.
[[nodiscard]] Model read_model(const std::string& path);

/// Reads the text of such a file; `path` is for messages and the name.
[[nodiscard]] Model parse_model(std::istream& text, const std::string& path);

/// The gradients of a model in one member's memory, written anew for each step and compared with the exact
/// sum after it.
class Gradients {
 public:
  /// `pieces` are this member's gradients, in readiness order; their memory outlives this.
  Gradients(std::vector<std::span<std::byte>> pieces, const ValueSource& values, int member)
      : pieces_(std::move(pieces)), input_(values.input(member)), sum_(values.reduced()) {}

  /// Other values with each `step`.
  void write(std::size_t step) const {
    for (std::size_t i = 0; i < pieces_.size(); ++i) input_.write(pieces_[i], start(step, i));
  }

  /// How many elements of `results`, one for each gradient, are not the sum of all members' values.
  [[nodiscard]] std::uint64_t count_wrong(std::span<const std::span<std::byte>> results,
                                          std::size_t step) const {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < results.size(); ++i) wrong += sum_.count_wrong(results[i], start(step, i));
    return wrong;
  }

  [[nodiscard]] const std::vector<std::span<std::byte>>& pieces() const { return pieces_; }

 private:
  /// Each tensor has values of its own, so that tensors that were mistaken for each other show.
  static std::size_t start(std::size_t step, std::size_t tensor) { return 389 * step + 7 * tensor; }

  std::vector<std::span<std::byte>> pieces_;
  ValueTable input_;
  ValueTable sum_;
};

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
