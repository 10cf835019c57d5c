// For builds without CUDA, which refuse --device cuda before they come to this.
#include <cohort/base/error.h>

#include "gpu/gpu_side.h"

namespace cohort::bench {

std::unique_ptr<const OffHost> make_gpu_side(std::vector<GpuTensor> /*inputs*/,
                                             std::vector<GpuTensor> /*outputs*/) {
  throw Internal("a tensor on a GPU in a build without CUDA");
}

std::string describe_gpu(Device device) { throw Internal("{} in a build without CUDA", to_string(device)); }

}  // namespace cohort::bench
