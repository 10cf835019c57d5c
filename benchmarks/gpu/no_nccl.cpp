#include "errors.h"
#include "peer.h"

namespace cohort::bench {

std::unique_ptr<const PeerLibrary> make_nccl_peer(Communicator& /*communicator*/, const Team& /*team*/,
                                                  Device /*device*/) {
  throw AgreedError(
      "--peer nccl: this copy of cohort-bench was built without NCCL; --peer none measures Cohort alone");
}

}  // namespace cohort::bench
