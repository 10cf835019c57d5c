// The communicators over several nodes that one member is in: one, and those split off it. Who waits in one
// of them for a member asks whether it is there. A member answers in all of them while it waits in any one,
// on its node or for a message, and is not taken for one that has stopped.
//
// These communicators share it, and it borrows them. Any thread may use it.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include <cohort/base/deadline.h>

namespace cohort::node {

class NodeCommunicatorImpl;

class OwnCommunicators {
 public:
  void add(NodeCommunicatorImpl& communicator);
  /// Once it returns, no other thread uses `communicator` from here.
  void remove(const NodeCommunicatorImpl& communicator);

  /// For a member that waits: answers those that ask, if it has not done so just now.
  void answer_questions();

 private:
  /// Members that ask wait for half a second.
  static constexpr std::chrono::milliseconds kBetweenLooks{20};

  std::mutex mutex_;
  std::vector<NodeCommunicatorImpl*> communicators_;
  Deadline next_look_ = Deadline::after(kBetweenLooks);
};

}  // namespace cohort::node
