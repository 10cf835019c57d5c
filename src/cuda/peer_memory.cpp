#include "peer_memory.h"

#include <mutex>
#include <vector>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>

#include "calls.h"

namespace cohort::cuda {

void open_memory(Device owner, Device peer) {
  static auto& opened = *new std::vector<std::once_flag>(devices().size() * devices().size());
  require_device(owner);
  require_device(peer);
  const std::size_t pair =
      static_cast<std::size_t>(owner.index()) * devices().size() + static_cast<std::size_t>(peer.index());
  std::call_once(opened[pair], [&] {
    if (!can_access_peer(peer, owner)) return;
    const CurrentDevice current(owner);
    calls::open_memory_to(owner.index(), peer.index());
  });
}

}  // namespace cohort::cuda
