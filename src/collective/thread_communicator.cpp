#include <cohort/collective/thread_communicator.h>

#include "collective/node_communicators.h"

namespace cohort {

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int members,
                                                                     const CommunicationOptions& options) {
  NodeGroupOptions group;
  group.members = members;
  group.communication = options;
  return make_node_communicators(group);
}

}  // namespace cohort
