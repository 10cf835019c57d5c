// How what is in flight is looked after: by the member's two threads, and by whoever asks whether a call has
// ended.
#include <exception>

#include <fmt/format.h>

#include <cohort/cuda/current_device.h>

#include "base/quiet_thread.h"
#include "nccl_communicator_impl.h"
#include "operation.h"

namespace cohort::nccl {
namespace {

using namespace std::chrono_literals;

/// Between two looks at what may have gone wrong elsewhere.
constexpr auto kBetweenLooks = 1ms;
/// After the deadline, a member that is late itself says so; the others give it this much time to.
constexpr auto kTimeToOwnUp = 1s;
/// Between two looks at failures of other members, and at deadlines, by the thread that calls no CUDA.
constexpr auto kBetweenLooksAtClock = 100ms;
/// After this time without an answer CUDA is taken to be blocked.
constexpr auto kTimeToAnswer = 2s;

}  // namespace

thread_local bool NcclCommunicatorImpl::serves_a_member_ = false;

void NcclCommunicatorImpl::watch_gpu() {
  serves_a_member_ = true;
  const cuda::CurrentDevice current(parts_.device);
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (in_flight_.empty())
      changed_.wait(lock, [this] { return ending_ || !in_flight_.empty(); });
    else
      changed_.wait_for(lock, kBetweenLooks, [this] { return ending_; });
    lock.unlock();
    tend();
    lock.lock();
  }
}

void NcclCommunicatorImpl::watch_clock(const std::stop_token& stop) {
  serves_a_member_ = true;
  while (sleep_unless_stopped(kBetweenLooksAtClock, stop)) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
    }
    try {
      check_host_for_failure();
      require_answer_of_cuda();
    } catch (const std::exception&) {
      fail(error_being_handled(who()));
    }
  }
}

/// What is first on the stream and may have ended; null when that is still to be launched, or nothing.
std::shared_ptr<NcclCommunicatorImpl::Operation> NcclCommunicatorImpl::first_in_flight() {
  const std::lock_guard lock(mutex_);
  if (in_flight_.empty() || in_flight_.front()->state == Operation::State::kQueued) return nullptr;
  return in_flight_.front();
}

void NcclCommunicatorImpl::tend() {
  while (const std::shared_ptr<Operation> first = first_in_flight()) {
    if (!poll(*first)) return;
  }
}

bool NcclCommunicatorImpl::done(Operation& operation) noexcept {
  return operation.state != Operation::State::kQueued && poll(operation);
}

bool NcclCommunicatorImpl::poll(Operation& operation) {
  if (operation.state == Operation::State::kLaunched) {
    try {
      note_question(true);
      const bool is_done = operation.done.done();
      // A kernel that NCCL has aborted ends as well, without a result.
      if (is_done)
        parts_.comm->check();
      else
        check_for_failure();
      note_question(false);
      if (!is_done) {
        require_in_time(operation);
        return false;
      }
      end(operation);
    } catch (const std::exception&) {
      fail(error_being_handled(who()));
    }
  }
  const std::lock_guard lock(mutex_);
  if (operation.state == Operation::State::kLaunched) return false;  // another thread is about to end it
  std::erase_if(in_flight_, [&](const auto& other) { return other.get() == &operation; });
  return true;
}

/// A call that has ended has given its tensors up, so that memory of theirs can be given back: threads that
/// look at the call, and its Work, may keep the call itself longer.
void NcclCommunicatorImpl::end(Operation& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (operation.state != Operation::State::kLaunched || operation.is_ending) return;
    operation.is_ending = true;
  }
  // Without the lock: the last owner of a tensor calls CUDA.
  static_cast<void>(operation.call.give_up_buffers());
  const std::lock_guard lock(mutex_);
  if (operation.state == Operation::State::kLaunched) operation.state = Operation::State::kEnded;
}

void NcclCommunicatorImpl::check_for_failure() {
  {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - looked_ < kBetweenLooks) return;
    looked_ = Clock::now();
  }
  parts_.comm->check();
  check_host_for_failure();
}

void NcclCommunicatorImpl::look_for_failure() {
  parts_.comm->check();
  const std::lock_guard lock(on_host_);
  require_sound_host();
}

void NcclCommunicatorImpl::check_host_for_failure() {
  const std::unique_lock lock(on_host_, std::try_to_lock);
  if (lock) require_sound_host();  // otherwise the thread that uses `control` finds out
}

/// `on_host_` is held.
void NcclCommunicatorImpl::require_sound_host() {
  if (const std::optional<Error> error = parts_.control->failure()) throw_error(*error);
}

void NcclCommunicatorImpl::note_question(bool is_asking) {
  if (!serves_a_member_) return;
  const std::lock_guard lock(mutex_);
  asking_since_.reset();
  if (is_asking) asking_since_ = Clock::now();
}

/// By the clock alone: `require_in_time` says more, but asks CUDA first.
void NcclCommunicatorImpl::require_answer_of_cuda() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  const bool is_unanswered = asking_since_ && now - *asking_since_ > kTimeToAnswer;
  for (const std::shared_ptr<Operation>& operation : in_flight_) {
    if (!operation->begun) continue;
    // What is being launched has a thread of its own, which may be blocked alone.
    if (!is_unanswered && operation->state != Operation::State::kQueued) continue;
    const CollectiveCall& call = operation->call.get();
    const std::chrono::duration<double> allowed = timeout(call);
    if (allowed.count() <= 0 || now - *operation->begun < allowed + kTimeToOwnUp + kTimeToAnswer) continue;
    const std::string name = fmt::format("{} #{}", to_string(call.kind), operation->number);
    throw DeadlineExceeded(
        ErrorOrigin{name, -1, ""},
        fmt::format(
            "{}: {} passed on the GPUs in {}: CUDA does not answer {}; the program has queued so much "
            "behind the call that CUDA's queues are full, and the call does not end: another member's "
            "GPU hangs, or the connection does",
            name, describe_deadline(call, allowed.count()), describe(call), who()));
  }
}

void NcclCommunicatorImpl::require_in_time(Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  const std::chrono::duration<double> allowed = timeout(call);
  const std::chrono::duration<double> waited = Clock::now() - operation.launched;
  if (allowed.count() <= 0 || waited < allowed) return;
  note_question(true);
  const bool is_late_itself = !operation.ready.done();
  note_question(false);
  if (!is_late_itself && waited < allowed + kTimeToOwnUp) return;
  // Whether all members have launched the graph is asked only now, by those that have.
  const bool is_launch = operation.launches != nullptr;
  if (!is_late_itself && is_launch) {
    if (!serves_a_member_) return;  // for one thread to ask
    agree(operation);
  }
  const std::string name = fmt::format("{} #{}", to_string(call.kind), operation.number);
  const std::string where =
      is_late_itself ? fmt::format("the GPU of {} still computes what was queued before the call", who())
                     : fmt::format(
                           "all members have {} it, and the GPU of {} waits for the "
                           "others: one of them hangs, or their connection does, or the "
                           "program starts {} in different orders",
                           is_launch ? "launched" : "called", who(),
                           is_launch ? "its graphs and calls" : "calls of several communicators");
  throw DeadlineExceeded(
      ErrorOrigin{name, is_late_itself ? rank_ : -1,
                  is_late_itself ? parts_.control->members()[static_cast<std::size_t>(rank_)].host : ""},
      fmt::format("{}: {} passed on the GPUs in {}: {}", name, describe_deadline(call, allowed.count()),
                  describe(call), where));
}

}  // namespace cohort::nccl
