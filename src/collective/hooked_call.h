// A call of which hooks are told. It begins with an event, and ends with another one, exactly once. Where the
// call is asynchronous, its OwnedCall shares it, so that the operation which carries the call out can end it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <cohort/base/error.h>
#include <cohort/collective/call_hooks.h>
#include <cohort/collective/collective_call.h>

namespace cohort {

/// The hooks of one member's communicator, which outlive it and its Works.
class HookedCalls {
 public:
  HookedCalls(const CallHooks& hooks, std::string_view communicator, int rank, int members);

  /// The event of the member's next call. One thread at a time.
  [[nodiscard]] CallEvent next(const CollectiveCall& call, bool is_async);

  void begin(CallEvent& event) noexcept;
  /// Any thread.
  void end(CallEvent& event, const Error* error) noexcept;

 private:
  void tell(const std::function<void(const CallEvent&)>& hook, CallEvent& event,
            std::string_view name) noexcept;

  const CallHooks& hooks_;
  std::string communicator_;
  int rank_;
  int members_;
  std::uint64_t collectives_ = 0;
  std::atomic<bool> dropped_{false};
};

class HookedCall : public std::enable_shared_from_this<HookedCall> {
 public:
  HookedCall(std::shared_ptr<HookedCalls> calls, const CollectiveCall& call, bool is_async);
  /// A call that nobody has ended was given up.
  ~HookedCall();
  HookedCall(const HookedCall&) = delete;
  HookedCall& operator=(const HookedCall&) = delete;

  /// Only the first time counts. Any thread.
  void end(const Error* error) noexcept;

 private:
  std::shared_ptr<HookedCalls> calls_;
  CallEvent event_;
  std::atomic<bool> ended_{false};
};

}  // namespace cohort
