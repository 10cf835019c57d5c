#include "collective/node_communicators.h"

#include "node_communicator.h"

namespace cohort {
std::vector<std::unique_ptr<Communicator>> make_node_communicators(const NodeGroupOptions& options) {
  const auto group = std::make_shared<node::NodeGroup>(options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.reserve(static_cast<std::size_t>(options.members));
  for (int member = 0; member < options.members; ++member)
    communicators.push_back(std::make_unique<node::NodeCommunicator>(
        std::make_shared<node::NodeCommunicatorImpl>(group, group->first_own_local_rank() + member),
        options.communication));
  return communicators;
}

}  // namespace cohort
