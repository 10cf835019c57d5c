#include "inter_node_impl.h"

#include <algorithm>

#include "collective/host_communicators.h"
#include "collective/node/node_communicator.h"

namespace cohort::network {

InterNodeImpl::InterNodeImpl(node::NodeCommunicatorImpl& member, std::unique_ptr<Transport> transport,
                             Topology topology, std::uint64_t generation)
    : member_(member),
      topology_(std::move(topology)),
      any_thread_(transport->any_thread()),
      wires_{Wire(*transport, 0), Wire(*transport, kFirstUrgentTag)},
      transport_(std::move(transport)),
      failure_detector_(*transport_, topology_, member.group().members()),
      messages_(wires_.front(), topology_.rank(), member.group().members(), generation),
      collectives_{HierarchicalCollectives(member.endpoint(Priority::kNormal), wires_.front(),
                                           failure_detector_, topology_),
                   HierarchicalCollectives(member.endpoint(Priority::kUrgent), wires_.back(),
                                           failure_detector_, topology_)} {}

std::optional<Error> InterNodeImpl::check_for_failure(const CollectiveCall& call,
                                                      const node::Waiting& waiting) {
  const bool in_collective = !is_message(call.kind);
  const std::uint64_t number = in_collective ? collectives(call.priority).number() : FailureDetector::kNoCall;
  if (std::optional<Error> error = failure_detector_.poll_failure(member_.is_in_collective(), number))
    return error;
  if (!in_collective) return std::nullopt;
  return collectives(call.priority).check_for_failure(call, waiting);
}

std::shared_ptr<node::InterNode> InterNodeImpl::split(std::span<const int> ranks,
                                                      const ContextIdSet& free_ids,
                                                      node::NodeCommunicatorImpl& member) {
  std::vector<int> numbers(static_cast<std::size_t>(topology_.nodes()), -1);  // of the group's nodes
  std::vector<int> node_of;
  int nodes = 0;
  for (const int rank : ranks) {
    int& number = numbers[static_cast<std::size_t>(topology_.node_of(rank))];
    if (number < 0) number = nodes++;
    node_of.push_back(number);
  }
  if (nodes == 1) return nullptr;
  const std::optional<ContextId> id = free_ids.lowest();
  if (!id) {
    throw Unavailable(
        "split: the members of this group over {} nodes have no free context id in common: each can be in {} "
        "groups over nodes, or as many as the network can tell apart, and a failed group counts for good; "
        "destroy some groups first",
        nodes, ContextIdSet::kIds - 1);
  }
  const auto own = static_cast<int>(std::ranges::find(ranks, topology_.rank()) - ranks.begin());
  return std::make_shared<InterNodeImpl>(member, transport_->split(ranks, *id), Topology(node_of, own),
                                         id->generation);
}

}  // namespace cohort::network

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
