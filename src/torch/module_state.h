// The parameters and buffers of a module, as workers compare and exchange them.
#pragma once

#include <ATen/Tensor.h>

#include <span>
#include <string>
#include <vector>

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

/// The exchange of a module's buffers in each pass, in one collective for each of their dtypes, while the
/// pass goes on.
class PackedBuffers {
 public:
  PackedBuffers(Communicator& communicator, std::span<const NamedTensor> buffers, BufferExchange exchange);

  /// `counts`: whether this member's own count in a mean. `root`: whose are broadcast.
  void start(int root, bool counts);

  /// `scale`: by what means are multiplied, where not all members counted.
  void finish(double scale);

 private:
  struct Pack {
    Tensor memory;
    std::vector<at::Tensor> buffers;
    std::vector<at::Tensor> places;  ///< of the buffers, in the memory
    bool is_mean;
  };

  Communicator& communicator_;
  std::vector<Pack> packs_;
  std::vector<Work> works_;
};

}  // namespace cohort::libtorch
