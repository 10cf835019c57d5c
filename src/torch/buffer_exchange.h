// The exchange of a module's buffers in each pass, in one collective for each of their dtypes, while the pass
// goes on.
#pragma once

#include <span>
#include <vector>

#include <ATen/Tensor.h>

#include <cohort/collective/communicator.h>
#include <cohort/torch/distributed_model.h>

#include "module_state.h"

namespace cohort::libtorch {

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
