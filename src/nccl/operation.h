// What a member has in flight: a call, or the launch of a graph with calls in it; and the calls that a graph
// holds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/cuda/event.h>

#include "cuda/capture.h"
#include "nccl_communicator_impl.h"

namespace cohort::nccl {

/// A call, or the launch of a graph.
struct NcclCommunicatorImpl::Operation : OperationInFlight {
  enum class State { kQueued, kLaunched, kCaptured, kEnded, kFailed };

  Operation(const CollectiveCall& borrowed, EventPool& pool)
      : OperationInFlight(borrowed), events(pool), ready(pool.take()), done(pool.take()) {}
  ~Operation() {
    if (is_part_of_graph()) return;  // its events must not be queried
    events.give_back(std::move(ready));
    events.give_back(std::move(done));
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// A Work that has been waited for is not asked again, even if it is held. With the member's lock.
  [[nodiscard]] bool is_unheld() const noexcept { return relied_on || OperationInFlight::is_unheld(); }

  [[nodiscard]] bool is_part_of_graph() const { return call->captured && launches == nullptr; }

  EventPool& events;
  /// For a graph launch: the operations in the graph (`call` is one of them). Null for an ordinary call.
  std::shared_ptr<const std::vector<std::shared_ptr<Operation>>> launches;
  cuda::Event ready;  ///< the computation has reached the call
  cuda::Event done;
  std::optional<Clock::time_point> begun;  ///< all members have called it; with the member's lock
  Clock::time_point launched;
  std::atomic<State> state{State::kQueued};  ///< set with the member's lock
  bool is_ending = false;                    ///< a thread gives its tensors up; with the member's lock
  bool relied_on = false;                    ///< the computation goes on after it; with the member's lock
};

/// The calls of one member that a graph holds.
class NcclCommunicatorImpl::Captured final : public cuda::GraphPart {
 public:
  explicit Captured(std::shared_ptr<NcclCommunicatorImpl> impl) : impl_(std::move(impl)) {}

  void conclude() override { impl_->conclude(*this); }
  void prepare_launch() override { launch_ = impl_->prepare_launch(*this); }
  void launched() override { impl_->launched(std::move(launch_)); }

 private:
  std::shared_ptr<NcclCommunicatorImpl> impl_;  // first, for operations give their events back to it

 public:
  using Calls = std::vector<std::shared_ptr<Operation>>;
  const std::shared_ptr<Calls> calls = std::make_shared<Calls>();  ///< they own their tensors' memory

 private:
  std::shared_ptr<Operation> launch_;  ///< the one being made
};

}  // namespace cohort::nccl
