// The parameters and buffers of a module, as workers compare and exchange them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <ATen/Tensor.h>

#include <cohort/collective/communicator.h>
#include <cohort/torch/distributed_model.h>

namespace cohort::libtorch {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  std::vector<std::string> more_names = {};  ///< others under which the module has the same tensor
};

/// Each tensor once, in the order of the module's names.
[[nodiscard]] std::vector<NamedTensor> parameters_of(const torch::nn::Module& module);
[[nodiscard]] std::vector<NamedTensor> buffers_of(const torch::nn::Module& module);

/// Collective. @throws InvalidArgument, on all members, where names, shapes or dtypes differ; it names the
/// odd members and the first line in which one differs.
void require_equal_lists(Communicator& communicator, std::span<const NamedTensor> parameters,
                         std::span<const NamedTensor> buffers);

/// All members get the values of `root`. Collective.
void broadcast(Communicator& communicator, std::span<const NamedTensor> tensors, int root);

}  // namespace cohort::libtorch
