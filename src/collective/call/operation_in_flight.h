// The life cycle of a call, in one place for all implementations of communicators: the hooks that are told of
// its begin and end, and, of an asynchronous one, the operation that carries it out and the Work in front of
// it.
//
// An asynchronous call begins with an operation, which owns what the call needs, and a Work. It ends with the
// result, or with the error that the operation keeps for the threads that wait. An operation whose last Work
// is dropped is finished by a communicator that closes. One whose Work is still held goes on, since the Work
// co-owns the implementation.
//
// What stays with the implementations: how an operation moves on; when it has ended, which is once its task
// is done, or once the GPU is; and how an error reaches the other members.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/collective/call_hooks.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/work.h>

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

/// A call of which hooks are told. It begins with an event, and ends with another one, exactly once. Where
/// the call is asynchronous, its OwnedCall shares it, so that the operation which carries the call out can
/// end it.
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

/// What all operations have; implementations derive theirs from it.
struct OperationInFlight {
  explicit OperationInFlight(const CollectiveCall& borrowed) : call(borrowed) {}

  /// Whether its Work was dropped, so that nobody will wait for it.
  [[nodiscard]] bool is_unheld() const noexcept { return dropped.load(std::memory_order_relaxed); }

  /// It has ended, with `error` if there is one: for hooks, before anybody else can know.
  void tell_hooks() const noexcept {
    if (call->hooked != nullptr) call->hooked->end(error ? &*error : nullptr);
  }

  OwnedCall call;
  std::uint64_t number = 0;          ///< of a collective, among those of its communicator
  std::optional<Error> error;        ///< that has ended it
  std::atomic<bool> dropped{false};  ///< nobody holds its Work
};

/// The Work in front of an `Impl::Operation`. The implementation waits for the operation and knows whether it
/// has ended.
template <class Impl>
class WorkInFlight final : public Work::State {
 public:
  using Operation = typename Impl::Operation;

  WorkInFlight(std::shared_ptr<Impl> impl, std::shared_ptr<Operation> operation)
      : impl_(std::move(impl)), operation_(std::move(operation)) {}
  ~WorkInFlight() override { operation_->dropped.store(true, std::memory_order_relaxed); }
  WorkInFlight(const WorkInFlight&) = delete;
  WorkInFlight& operator=(const WorkInFlight&) = delete;

  void wait() override { impl_->wait(*operation_); }
  [[nodiscard]] bool done() noexcept override { return impl_->done(*operation_); }

 private:
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<Operation> operation_;
};

/// The first of these operations whose Work was dropped; null when there is none.
template <class Operations>
[[nodiscard]] typename Operations::value_type find_unheld(const Operations& operations) {
  const auto found =
      std::ranges::find_if(operations, [](const auto& operation) { return operation->is_unheld(); });
  return found == operations.end() ? nullptr : *found;
}

/// How long a call waits for its members, where `usual` is how long its communicator's calls do; 0: for ever.
[[nodiscard]] inline std::chrono::duration<double> timeout_of(const CollectiveCall& call,
                                                              std::chrono::duration<double> usual) noexcept {
  return call.timeout_seconds ? std::chrono::duration<double>(*call.timeout_seconds) : usual;
}

/// The exception being handled, as an Error that can be sent to the other members; one that is not Cohort's
/// says that it is `member`'s, for example `member 5 (worker 2, host n1)`.
[[nodiscard]] Error error_being_handled(const std::string& member);

/// For a communicator that closes: what to abort it with if an exception is unwinding, which keeps this
/// member from the calls that the others make. Nothing otherwise: then operations that nobody holds are
/// waited for. The error says so if there are `calls_in_flight`.
[[nodiscard]] std::optional<Error> error_of_unwinding(int rank, const MemberInfo& info,
                                                      bool calls_in_flight = false);

}  // namespace cohort
