#include "operation_in_flight.h"

#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/log.h>

namespace cohort {

HookedCalls::HookedCalls(const CallHooks& hooks, std::string_view communicator, int rank, int members)
    : hooks_(hooks), communicator_(communicator), rank_(rank), members_(members) {}

CallEvent HookedCalls::next(const CollectiveCall& call, bool is_async) {
  static std::atomic<std::uint64_t> handles{0};
  return {.kind = call.kind,
          .dtype = call.dtype,
          .op = call.op,
          .root = call.root,
          .tag = call.tag,
          .elements = call.elements,
          .is_async = is_async,
          .communicator = communicator_,
          .rank = rank_,
          .members = members_,
          .number = is_message(call.kind) ? 0 : collectives_++,
          .handle = handles.fetch_add(1, std::memory_order_relaxed)};
}

void HookedCalls::begin(CallEvent& event) noexcept { tell(hooks_.on_call_begin, event, "on_call_begin"); }

void HookedCalls::end(CallEvent& event, const Error* error) noexcept {
  event.error = error;
  tell(hooks_.on_call_end, event, "on_call_end");
}

void HookedCalls::tell(const std::function<void(const CallEvent&)>& hook, CallEvent& event,
                       std::string_view name) noexcept {
  if (!hook || dropped_.load(std::memory_order_relaxed)) return;
  std::string what;
  try {
    event.time = std::chrono::steady_clock::now();
    return hook(event);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "an exception of another type";
  }
  if (dropped_.exchange(true)) return;
  logging::warning(
      "a hook ({}) of member {} of communicator {} threw, and its hooks are not called again: {}", name,
      rank_, communicator_, what);
}

HookedCall::HookedCall(std::shared_ptr<HookedCalls> calls, const CollectiveCall& call, bool is_async)
    : calls_(std::move(calls)), event_(calls_->next(call, is_async)) {
  calls_->begin(event_);
}

HookedCall::~HookedCall() {
  if (ended_.load(std::memory_order_relaxed)) return;
  const Error error = Aborted("the call was given up: its communicator has ended, or its start failed");
  end(&error);
}

void HookedCall::end(const Error* error) noexcept {
  if (!ended_.exchange(true)) calls_->end(event_, error);
}

Error error_being_handled(const std::string& member) {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Unavailable("{} is out of memory", member);
  } catch (const std::exception& error) {
    return Internal("{}: {}", member, error.what());
  }
}

std::optional<Error> error_of_unwinding(int rank, const MemberInfo& info, bool calls_in_flight) {
  if (std::uncaught_exceptions() == 0) return std::nullopt;
  return Aborted(ErrorOrigin{"", rank, info.host},
                 fmt::format("{} left the communicator because of an error{}", describe(rank, info),
                             calls_in_flight ? ", with calls in flight" : ""));
}

}  // namespace cohort
