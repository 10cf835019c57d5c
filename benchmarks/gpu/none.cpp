// What stands for GPUs and for NCCL in builds without them.
#include <cohort/base/error.h>

#include "errors.h"
#include "gpu/gpu_side.h"
#include "peer.h"

namespace cohort::bench {

#ifndef COHORT_BENCH_HAS_CUDA

// Such builds refuse --device cuda before they come to this.

std::unique_ptr<const OffHost> make_gpu_side(std::vector<GpuTensor> /*inputs*/,
                                             std::vector<GpuTensor> /*outputs*/) {
  throw Internal("a tensor on a GPU in a build without CUDA");
}

std::string describe_gpu(Device device) { throw Internal("{} in a build without CUDA", to_string(device)); }

#endif

#ifndef COHORT_BENCH_HAS_NCCL

std::unique_ptr<const PeerLibrary> make_nccl_peer(Communicator& /*communicator*/, const Team& /*team*/,
                                                  Device /*device*/) {
  throw AgreedError(
      "--peer nccl: this copy of cohort-bench was built without NCCL; --peer none measures Cohort alone");
}

#endif

}  // namespace cohort::bench
