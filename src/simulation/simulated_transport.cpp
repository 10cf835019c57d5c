#include "simulation/simulated_transport.h"

#include <algorithm>

namespace cohort::simulation {

std::optional<Transport::ControlMessage> SimulatedTransport::receive_control() {
  std::optional<ControlMessage> message = network_.receive_control(rank_, group_);
  if (message && !cluster_ranks_.empty()) {
    const auto from = std::ranges::find(cluster_ranks_, message->from);
    if (from == cluster_ranks_.end()) return std::nullopt;  // of a group that had the same number
    message->from = static_cast<int>(from - cluster_ranks_.begin());
  }
  return message;
}

std::unique_ptr<Transport> SimulatedTransport::split(std::span<const int> members, const ContextId& id) {
  auto group = std::make_unique<SimulatedTransport>(network_, rank_);
  for (const int member : members) group->cluster_ranks_.push_back(rank_in_cluster(member));
  group->context_ids_ = context_ids_;
  group->group_ = id.number;
  context_ids_->take(id);
  return group;
}

}  // namespace cohort::simulation
