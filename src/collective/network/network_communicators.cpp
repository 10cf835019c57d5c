#include "collective/network_communicators.h"

#include "../node/node_communicator.h"
#include "inter_node_impl.h"

namespace cohort {
std::vector<std::unique_ptr<Communicator>> make_network_communicators(const NetworkGroupOptions& options) {
  std::vector<int> node_of;
  for (const WorkerInfo& worker : options.node.workers)
    node_of.insert(node_of.end(), static_cast<std::size_t>(options.node.members), worker.node);

  const network::Topology topology(node_of, 0);
  const auto group = std::make_shared<node::NodeGroup>(options.node);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int i = 0; i < options.node.members; ++i) {
    const int local_rank = group->first_own_local_rank() + i;
    const int rank = group->rank_of(local_rank);
    auto impl = std::make_shared<node::NodeCommunicatorImpl>(group, local_rank);
    impl->set_inter_node(
        std::make_shared<network::InterNodeImpl>(*impl, options.transport(rank), topology.seen_by(rank)));
    communicators.push_back(
        std::make_unique<node::NodeCommunicator>(std::move(impl), options.node.communication));
  }
  return communicators;
}

}  // namespace cohort
