// The gradients of a module's parameters, in buckets that are all-reduced while a backward pass goes on.
// Hooks in libtorch's graph tell when the pass has come to a parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/Tensor.h>

#include <cohort/collective/communicator.h>
#include <cohort/collective/gradient_buckets.h>
#include <cohort/torch/distributed_model.h>

#include "module_state.h"

namespace cohort::libtorch {

class ReducedGradients {
 public:
  /// What becomes of the gradients of a backward pass.
  enum class Mode {
    kRefused,  ///< the pass is not one of the DistributedModel's
    kLocal,    ///< they stay this worker's own
    kReduced,
  };

  /// @throws InvalidArgument for parameters that are not on a CPU, and where none has a gradient.
  ReducedGradients(std::span<const NamedTensor> parameters, const DistributedModelOptions& options);
  ~ReducedGradients();
  ReducedGradients(const ReducedGradients&) = delete;
  ReducedGradients& operator=(const ReducedGradients&) = delete;

  /// From here on hooks watch the parameters. Collective.
  void begin(Communicator& communicator);

  /// Of a pass with this worker's batch: `run` computes the gradients; those that it has not reached count as
  /// they are, or as zero.
  template <class Run>
  void pass(Mode mode, Run run) {
    const InMode in_mode(mode_, mode);
    observed_.clear();
    begin_sums();
    run();
    if (mode == Mode::kReduced) announce_rest();
  }

  /// Of a pass of the others.
  void announce_zeros();

  /// The sum or mean of all, times `scale`, in the parameters' gradients where `show` says so. The first
  /// time, takes the order of buckets from the pass of `member`.
  void finish(double scale, bool show, int member);

  [[nodiscard]] std::size_t bucket_count() const noexcept { return buckets_->bucket_count(); }

 private:
  struct Parameter;

  struct InMode {
    InMode(Mode& current, Mode mode) : current_(current) { current_ = mode; }
    ~InMode() { current_ = Mode::kRefused; }
    InMode(const InMode&) = delete;
    InMode& operator=(const InMode&) = delete;
    Mode& current_;
  };

  void add_hook(std::size_t index);
  void begin_sums();
  void on_gradient(Parameter& parameter, const at::Tensor& added);
  void announce(Parameter& parameter);
  void announce_rest();
  void make_buckets(std::span<const std::size_t> order);
  [[nodiscard]] std::vector<std::size_t> observed_order(int member) const;

  const DistributedModelOptions& options_;
  Communicator* communicator_ = nullptr;
  std::vector<Parameter> parameters_;  ///< those that have gradients
  std::optional<GradientBuckets> buckets_;
  at::Tensor reached_;  ///< by parameter: above zero where some worker has a gradient
  std::vector<const Parameter*> observed_;
  bool order_known_ = false;
  Mode mode_ = Mode::kRefused;
};

}  // namespace cohort::libtorch
