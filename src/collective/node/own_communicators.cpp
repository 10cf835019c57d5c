#include "own_communicators.h"

#include "node_communicator_impl.h"

namespace cohort::node {

void OwnCommunicators::add(NodeCommunicatorImpl& communicator) {
  const std::lock_guard lock(mutex_);
  communicators_.push_back(&communicator);
}

void OwnCommunicators::remove(const NodeCommunicatorImpl& communicator) {
  const std::lock_guard lock(mutex_);
  std::erase(communicators_, &communicator);
}

void OwnCommunicators::answer_questions() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !next_look_.expired()) return;
  bool may_answer = false;
  for (NodeCommunicatorImpl* const communicator : communicators_)
    may_answer |= communicator->answer_questions();
  if (may_answer) next_look_ = Deadline::after(kBetweenLooks);
}

}  // namespace cohort::node
