// What a member has in flight: a call, or the launch of a graph with calls in it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/cuda/event.h>

#include "event_pool.h"
#include "nccl_communicator_impl.h"

namespace cohort::nccl {

struct NcclCommunicatorImpl::Operation {
  enum class State { kQueued, kLaunched, kCaptured, kEnded, kFailed };

  Operation(const CollectiveCall& borrowed, EventPool& pool)
      : events(pool), call(borrowed), ready(pool.take()), done(pool.take()) {}
  ~Operation() {
    if (is_part_of_graph()) return;  // whose events nobody may ask
    events.give_back(std::move(ready));
    events.give_back(std::move(done));
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  [[nodiscard]] bool is_part_of_graph() const { return call->captured && launches == nullptr; }

  EventPool& events;
  const OwnedCall call;
  /// What the launch of a graph, as which this is in flight, makes at once, `call` among it; null for a call.
  std::shared_ptr<const std::vector<std::shared_ptr<Operation>>> launches;
  cuda::Event ready;  ///< the computation has come to the call
  cuda::Event done;
  std::uint64_t number = 0;
  Clock::time_point launched;
  std::optional<Error> error;                ///< once it has failed
  std::atomic<State> state{State::kQueued};  ///< set with the member's lock
  std::atomic<bool> dropped{false};          ///< nobody holds its Work
  bool relied_on = false;                    ///< the computation goes on behind it; with the member's lock
};

}  // namespace cohort::nccl
