#include "nccl_communicator_impl.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/event.h>

#include "captured.h"
#include "launch.h"
#include "operation.h"

namespace cohort::nccl {
namespace {

using namespace std::chrono_literals;

/// Between two looks at what may have gone wrong elsewhere.
constexpr auto kBetweenLooks = 1ms;
/// Between two looks at a GPU that is waited for.
constexpr auto kNap = 20us;
/// After the deadline, a member that is late itself says so; the others give it this much time to.
constexpr auto kTimeToOwnUp = 1s;
/// How long the end of a communicator may take before it is ended by force.
constexpr auto kTimeToFinalize = 10s;

/// A replica that owns several GPUs is a member with the first of them; NCCL takes what is on that one.
bool is_elsewhere(const CollectiveCall& call, Device own) {
  return call.device.kind() == DeviceKind::kCuda && call.device != own;
}

/// Whether the call itself goes through the host, and not only the agreement on it.
bool is_of_the_host(const CollectiveCall& call, Device own) {
  return call.device.kind() == DeviceKind::kCpu || is_elsewhere(call, own) || !can_carry(call);
}

bool moves_something(const CollectiveCall& call) {
  return call.counts.empty() ? call.elements > 0
                             : std::ranges::any_of(call.counts, [](std::size_t count) { return count > 0; });
}

/// What is thrown on a member's own thread does not reach the program.
thread_local bool serves_a_member = false;

}  // namespace

NcclCommunicatorImpl::NcclCommunicatorImpl(CommunicatorParts parts)
    : parts_(std::move(parts)),
      stream_(parts_.device, cuda::Stream::Priority::kHigh),
      events_(parts_.device),
      symmetric_memory_(parts_.device, *parts_.comm),
      rank_(parts_.control->rank()),
      size_(parts_.control->size()) {
  guards_gpu_.emplace(parts_.device, *this);
}

NcclCommunicatorImpl::~NcclCommunicatorImpl() {
  guards_gpu_.reset();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  tend();
  if (aborting_.joinable()) aborting_.join();
  if (failure_) return;
  try {
    // Where something is still in flight, NCCL does it.
    if (in_flight_.empty()) symmetric_memory_.clear();
    parts_.comm->finalize(Deadline::after(kTimeToFinalize));
  } catch (const Error& error) {
    logging::warning("{}: NCCL's communicator was ended by force: {}", who(), error.what());
    parts_.comm->abort();  // before the memory goes that it may still use
  }
}

std::string NcclCommunicatorImpl::who() const {
  return describe(rank_, parts_.control->members()[static_cast<std::size_t>(rank_)]);
}

std::chrono::duration<double> NcclCommunicatorImpl::timeout(const CollectiveCall& call) const {
  return timeout_of(call, parts_.control->options().timeout());
}

/// The lock is held.
void NcclCommunicatorImpl::throw_failure() {
  if (!serves_a_member) is_owed_ = false;
  throw_error(*failure_);
}

void NcclCommunicatorImpl::require_usable() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw_failure();
}

void NcclCommunicatorImpl::require_sound() {
  // NCCL may have aborted a call that seems to be done; the thread would find that out too late.
  while (const std::shared_ptr<Operation> first = first_in_flight()) {
    if (!first->done.done()) break;
    static_cast<void>(poll(*first));
  }
  const std::lock_guard lock(mutex_);
  if (is_owed_) throw_failure();
}

bool NcclCommunicatorImpl::nothing_is_queued() {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

void NcclCommunicatorImpl::require_capturable(const CollectiveCall& call) const {
  const bool is_copied_elsewhere = is_elsewhere(call, parts_.device) && cuda::is_captured(call.device);
  const Device captured = is_copied_elsewhere ? call.device : parts_.device;
  if (!cuda::is_captured(captured) || (!is_message(call.kind) && !is_of_the_host(call, parts_.device)))
    return;
  throw WrongContext(
      "{} goes through the host, and a graph that is captured on {} holds what the GPU does by itself; "
      "make the call outside",
      describe(call), to_string(captured));
}

std::shared_ptr<NcclCommunicatorImpl::Operation> NcclCommunicatorImpl::add(const CollectiveCall& call) {
  CollectiveCall own = call;
  own.captured = cuda::is_captured(parts_.device);
  auto operation = std::make_shared<Operation>(own, events_);
  if (!is_of_the_host(call, parts_.device)) operation->ready.record(cuda::compute_stream(parts_.device));
  const std::lock_guard lock(mutex_);
  if (failure_) throw_failure();
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  if (own.captured)
    add_captured(operation);
  else
    in_flight_.push_back(operation);
  return operation;
}

void NcclCommunicatorImpl::run(const CollectiveCall& call) {
  require_capturable(call);
  if (is_message(call.kind) || !nothing_is_queued()) return start(call).wait();
  if (is_of_the_host(call, parts_.device)) {
    require_usable();
    return run_on_host(call);
  }
  const std::shared_ptr<Operation> operation = add(call);
  launch(*operation);
  wait(*operation);
}

Work NcclCommunicatorImpl::start(const CollectiveCall& call) {
  require_capturable(call);
  require_usable();
  if (is_message(call.kind)) return CommunicatorBase::start_checked(*parts_.messages, call);
  std::shared_ptr<Operation> operation = add(call);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(operation);
  }
  changed_.notify_all();
  return Work(std::make_shared<WorkInFlight<NcclCommunicatorImpl>>(shared_from_this(), std::move(operation)));
}

void NcclCommunicatorImpl::serve() {
  serves_a_member = true;
  const cuda::CurrentDevice current(parts_.device);
  std::unique_lock lock(mutex_);
  while (true) {
    const auto has_work = [this] { return ending_ || !queue_.empty(); };
    if (in_flight_.empty())
      changed_.wait(lock, [&] { return has_work() || !in_flight_.empty(); });
    else
      changed_.wait_for(lock, kBetweenLooks, has_work);
    if (ending_ && queue_.empty()) return;
    if (!queue_.empty()) {
      const std::shared_ptr<Operation> operation = queue_.front();
      lock.unlock();
      launch(*operation);
      lock.lock();
      queue_.pop_front();
      changed_.notify_all();
    }
    lock.unlock();
    tend();
    lock.lock();
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

void NcclCommunicatorImpl::run_on_host(const CollectiveCall& call) {
  const std::lock_guard lock(on_host_);
  ++calls_;
  CollectiveCall exact = call;
  // So that members whose tensors are moved differently notice.
  if (is_elsewhere(call, parts_.device)) exact.layout = Fingerprint().add(call.layout).add(1).value();
  CommunicatorBase::run_checked(*parts_.control, exact);
}

void NcclCommunicatorImpl::agree(Operation& operation) {
  const std::lock_guard lock(on_host_);
  operation.number = calls_++;
  CommunicatorBase::agree(*parts_.control, operation.call.get());
}

void NcclCommunicatorImpl::launch(Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  bool has_ended = true;
  {
    const std::lock_guard lock(mutex_);
    if (operation.state == Operation::State::kFailed) return;
  }
  try {
    if (is_of_the_host(call, parts_.device)) {
      run_on_host(call);
    } else {
      agree(operation);
      if (moves_something(call)) {
        has_ended = false;
        stream_.wait(operation.ready);
        parts_.comm->launch(
            [&](ncclComm_t comm) { nccl::launch(call, rank_, size_, comm, stream_.handle()); },
            Deadline::after(timeout(call)), [this] { check_for_failure(); });
        operation.done.record(stream_);
      }
    }
  } catch (const std::exception&) {
    return fail(error_being_handled(who()));
  }
  const std::lock_guard lock(mutex_);
  if (operation.state == Operation::State::kFailed) return;
  operation.launched = Clock::now();
  operation.state = has_ended       ? Operation::State::kEnded
                    : call.captured ? Operation::State::kCaptured
                                    : Operation::State::kLaunched;
  changed_.notify_all();
}

void NcclCommunicatorImpl::wait(Operation& operation) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return operation.state != Operation::State::kQueued; });
  }
  {
    const std::lock_guard lock(mutex_);
    if (operation.error) throw_failure();
    if (operation.state == Operation::State::kEnded) return;
    if (operation.state == Operation::State::kLaunched) {
      operation.relied_on = true;
      // It is no part of the graph: the compute stream waits for it, and so do launches, once the capture
      // has ended.
      if (cuda::is_captured(parts_.device)) return cuda::wait_after_capture(operation.done);
    }
  }
  cuda::compute_stream(parts_.device).wait(operation.done);
}

bool NcclCommunicatorImpl::done(Operation& operation) noexcept {
  return operation.state != Operation::State::kQueued && poll(operation);
}

bool NcclCommunicatorImpl::poll(Operation& operation) {
  if (operation.state == Operation::State::kLaunched) {
    try {
      if (operation.done.done()) {
        // A kernel that NCCL has aborted ends as well, without a result.
        parts_.comm->check();
        end(operation);
      } else {
        check_for_failure();
        require_in_time(operation);
        return false;
      }
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
  const std::unique_lock lock(on_host_, std::try_to_lock);
  if (!lock) return;  // the thread that uses `control` finds out
  if (const std::optional<Error> error = parts_.control->failure()) throw_error(*error);
}

void NcclCommunicatorImpl::require_in_time(Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  const std::chrono::duration<double> allowed = timeout(call);
  const std::chrono::duration<double> waited = Clock::now() - operation.launched;
  if (allowed.count() <= 0 || waited < allowed) return;
  const bool is_late_itself = !operation.ready.done();
  if (!is_late_itself && waited < allowed + kTimeToOwnUp) return;
  // Whether all members have launched the graph is asked only now, by those that have.
  const bool is_launch = operation.launches != nullptr;
  if (!is_late_itself && is_launch) {
    if (!serves_a_member) return;  // for one thread to ask
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

void NcclCommunicatorImpl::fail(const Error& error) {
  // The first error of any member counts on all of them.
  parts_.control->abort(error);
  const Error first = parts_.control->failure().value_or(error);
  parts_.messages->abort(first);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = first;
    // Before NCCL lets go of the GPU, so that the program does not read the results left there.
    is_owed_ = std::ranges::any_of(in_flight_, [](const auto& operation) { return operation->relied_on; });
    const auto end = [&](const std::shared_ptr<Operation>& operation) {
      operation->error = first;
      operation->state = Operation::State::kFailed;
      failed_.push_back(operation);
    };
    std::ranges::for_each(in_flight_, end);
    in_flight_.clear();
    if (const std::shared_ptr<Captured> captured = captured_.lock())
      std::ranges::for_each(*captured->calls, end);
    // NCCL's abort waits for graphs, which are their owners'.
    if (was_captured_) aborting_ = std::thread([this] { parts_.comm->abort(); });
  }
  if (!was_captured_) parts_.comm->abort();
  changed_.notify_all();
}

void NcclCommunicatorImpl::abort(const Error& error) { fail(error); }

std::optional<Error> NcclCommunicatorImpl::failure() {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return failure_;
  }
  try {
    check_for_failure();
  } catch (const std::exception&) {
    fail(error_being_handled(who()));
  }
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<CommunicatorParts> NcclCommunicatorImpl::split(std::span<const SplitMember> split_members) {
  std::optional<int> color;
  int key = 0;
  for (const SplitMember& member : split_members) {
    // A number that no other group has.
    color = std::min(color.value_or(member.rank), member.rank);
    if (member.rank == rank_) key = static_cast<int>(&member - split_members.data());
  }
  CommunicatorParts group{.device = parts_.device};
  try {
    {
      const std::lock_guard lock(on_host_);
      ++calls_;
      group.control = parts_.control->split(color, key);
    }
    group.messages = parts_.messages->split(color, key);
    group.comm =
        parts_.comm->split(color, key, Deadline::after(timeout({})), [this] { check_for_failure(); });
  } catch (const std::exception&) {
    fail(error_being_handled(who()));
    require_usable();
  }
  if (!color) return std::nullopt;
  return group;
}

/// Waits until the operation has ended on the GPU, one way or the other.
void NcclCommunicatorImpl::finish(Operation& operation) {
  while (!done(operation)) std::this_thread::sleep_for(kNap);
}

void NcclCommunicatorImpl::wait_for_all() {
  std::vector<std::shared_ptr<Operation>> all;
  {
    const std::lock_guard lock(mutex_);
    all.assign(in_flight_.begin(), in_flight_.end());
  }
  for (const std::shared_ptr<Operation>& operation : all) finish(*operation);
}

void NcclCommunicatorImpl::exchange_least(std::vector<std::uint8_t>& numbers, std::uint64_t about) {
  const Tensor tensor =
      Tensor::from(std::span<const std::uint8_t>(numbers), {static_cast<std::int64_t>(numbers.size())});
  {
    const std::lock_guard lock(on_host_);
    ++calls_;
    parts_.control->all_reduce(tensor, ReduceOp::kMin, {.layout = about});
  }
  std::ranges::copy(tensor.span<std::uint8_t>(), numbers.begin());
}

std::shared_ptr<const Buffer> NcclCommunicatorImpl::allocate(std::size_t bytes) {
  if (cuda::is_captured(parts_.device)) {
    throw WrongContext(
        "memory for collectives cannot be made while a graph is captured on {}; do the step once before its "
        "capture",
        to_string(parts_.device));
  }
  wait_for_all();
  require_usable();
  std::shared_ptr<const Buffer> memory;
  try {
    memory = symmetric_memory_.allocate(
        bytes, {.least = [this](auto& numbers, auto about) { exchange_least(numbers, about); },
                .timeout = timeout({}),
                .look = [this] { check_for_failure(); }});
  } catch (const std::exception&) {
    fail(error_being_handled(who()));
    require_usable();
  }
  return memory;
}

/// A call in flight that no Work will be asked about.
std::shared_ptr<NcclCommunicatorImpl::Operation> NcclCommunicatorImpl::find_unheld() {
  const std::lock_guard lock(mutex_);
  return cohort::find_unheld(in_flight_);
}

void NcclCommunicatorImpl::close() {
  const MemberInfo& own = parts_.control->members()[static_cast<std::size_t>(rank_)];
  if (const std::optional<Error> error = error_of_unwinding(rank_, own)) return fail(*error);
  while (const std::shared_ptr<Operation> unheld = find_unheld()) finish(*unheld);
  const std::lock_guard lock(mutex_);
  if (is_owed_) logging::error("what {} has computed since is worthless: {}", who(), failure_->what());
}

}  // namespace cohort::nccl
