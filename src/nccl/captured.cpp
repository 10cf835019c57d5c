// The calls of a member that a graph holds: how they are added to the capture, and launched with the graph.
#include <algorithm>
#include <exception>
#include <limits>

#include "operation.h"

namespace cohort::nccl {

/// The lock is held.
void NcclCommunicatorImpl::add_captured(std::shared_ptr<Operation> operation) {
  std::shared_ptr<Captured> captured = captured_.lock();
  if (captured == nullptr) {
    captured = std::make_shared<Captured>(shared_from_this());
    cuda::take_part(parts_.device, captured);
    captured_ = captured;
  }
  captured->calls->push_back(std::move(operation));
}

void NcclCommunicatorImpl::conclude(Captured& captured) {
  {
    const std::lock_guard lock(mutex_);
    captured_.reset();
    if (failure_) throw_failure();
  }
  for (const std::shared_ptr<Operation>& call : *captured.calls) {
    if (call->state != Operation::State::kCaptured) continue;
    // Calls whose Works nobody has waited for are waited for, too.
    cuda::compute_stream(parts_.device).wait(call->done);
    const std::lock_guard lock(mutex_);
    if (call->state == Operation::State::kCaptured) call->state = Operation::State::kEnded;
  }
}

std::shared_ptr<NcclCommunicatorImpl::Operation> NcclCommunicatorImpl::prepare_launch(
    const Captured& captured) {
  launches_->wait_until_empty();
  wait_for_room();
  // Nothing else looks for errors of other members before a launch.
  try {
    look_for_failure();
  } catch (const std::exception&) {
    fail(error_being_handled(who()));
  }
  require_usable();
  // The longest deadline of its calls is that of a launch.
  const auto patience = [this](const std::shared_ptr<Operation>& call) {
    const double seconds = timeout(call->call.get()).count();
    return seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
  };
  const auto last = std::ranges::max_element(*captured.calls, {}, patience);
  auto launch = std::make_shared<Operation>((*last)->call.get(), events_);
  launch->launches = captured.calls;
  const cuda::Stream& compute = cuda::compute_stream(parts_.device);
  launch->ready.record(compute);
  cuda::order(stream_, compute);
  return launch;
}

void NcclCommunicatorImpl::launched(std::shared_ptr<Operation> launch) {
  launch->done.record(cuda::compute_stream(parts_.device));
  launch->launched = Clock::now();
  launch->begun = launch->launched;
  launch->relied_on = true;
  const std::lock_guard lock(mutex_);
  if (failure_) {
    is_owed_ = true;
    return failed_.push_back(std::move(launch));
  }
  launch->state = Operation::State::kLaunched;
  in_flight_.push_back(std::move(launch));
  changed_.notify_all();
}

}  // namespace cohort::nccl
