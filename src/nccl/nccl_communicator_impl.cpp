#include "nccl_communicator_impl.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/event.h>

#include "base/quiet_thread.h"
#include "launch.h"
#include "operation.h"

namespace cohort::nccl {
namespace {

using namespace std::chrono_literals;

/// Between two looks at a GPU that is waited for.
constexpr auto kPollingNap = 20us;
/// How long the end of a communicator may take before it is left to itself, if its calls may take as long.
constexpr std::chrono::duration<double> kTimeToClose = 10s;
/// How many calls of a member may be on the GPU: they are not to fill CUDA's queues, which would block all
/// threads that call CUDA, and a GPU is never so far ahead of its host.
constexpr std::size_t kMostOnGpu = 64;

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

}  // namespace

NcclCommunicatorImpl::NcclCommunicatorImpl(CommunicatorParts parts)
    : parts_(std::move(parts)),
      stream_(parts_.device, cuda::Stream::Priority::kHigh),
      events_(parts_.device),
      symmetric_memory_(parts_.device, *parts_.comm),
      rank_(parts_.control->rank()),
      size_(parts_.control->size()),
      launches_(LaunchQueue::of(parts_.device)) {
  guards_gpu_.emplace(parts_.device, *this);
  clock_watch_ = start_quiet_thread([this](const std::stop_token& stop) { watch_clock(stop); });
}

NcclCommunicatorImpl::~NcclCommunicatorImpl() {
  guards_gpu_.reset();
  if (failure()) launches_->remove(this);
  launches_->wait_for(this);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (gpu_watch_.joinable()) gpu_watch_.join();
  // Only now: the other watch may be waiting for CUDA, and then this one ends the calls that it waits for.
  clock_watch_.request_stop();
  clock_watch_.join();

  const std::chrono::duration<double> usual = timeout({});
  const Deadline deadline = Deadline::after(usual.count() > 0 ? std::min(usual, kTimeToClose) : kTimeToClose);
  finish_before(deadline);
  if (in_flight_.empty() && !failure_) {
    symmetric_memory_.clear();
    parts_.comm->finalize(deadline);
  } else {
    parts_.comm->abort();
  }
  // NCCL may use it as long as its communicator is there.
  struct Used {
    std::shared_ptr<const void> symmetric_memory;
    std::vector<std::array<std::shared_ptr<const Buffer>, 2>> tensors;
  };
  const auto used = std::make_shared<Used>();
  used->symmetric_memory = symmetric_memory_.take();
  const auto take_tensors = [&](const auto& call) { used->tensors.push_back(call->call.give_up_buffers()); };
  std::ranges::for_each(failed_, take_tensors);
  std::ranges::for_each(in_flight_, take_tensors);
  parts_.comm->wait_for_end(deadline, used);
}

std::string NcclCommunicatorImpl::who() const {
  return describe(rank_, parts_.control->members()[static_cast<std::size_t>(rank_)]);
}

std::chrono::duration<double> NcclCommunicatorImpl::timeout(const CollectiveCall& call) const {
  return timeout_of(call, parts_.control->options().timeout());
}

/// The lock is held.
void NcclCommunicatorImpl::throw_failure() {
  if (!serves_a_member_) is_owed_ = false;
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

void NcclCommunicatorImpl::require_capturable(const CollectiveCall& call) const {
  const bool is_copied_elsewhere = is_elsewhere(call, parts_.device) && cuda::is_captured(call.device);
  const Device captured = is_copied_elsewhere ? call.device : parts_.device;
  if (!cuda::is_captured(captured) || (!is_message(call.kind) && !is_of_the_host(call, parts_.device)))
    return;
  // What an empty structure makes is a barrier, of which the program knows nothing.
  const std::string action = words_of(call.as_called()).purpose.action;
  const std::string what = action.empty() ? fmt::format("{} goes through the host", describe(call))
                                          : fmt::format("the call that {} goes through the host, as {}",
                                                        shortened(action), to_string(call.kind));
  throw WrongContext(
      "{}, and a graph that is captured on {} holds what the GPU does by itself; make the call outside", what,
      to_string(captured));
}

std::shared_ptr<NcclCommunicatorImpl::Operation> NcclCommunicatorImpl::add(const CollectiveCall& call) {
  CollectiveCall own = call;
  own.captured = cuda::is_captured(parts_.device);
  auto operation = std::make_shared<Operation>(own, events_);
  if (!is_of_the_host(call, parts_.device)) operation->ready.record(cuda::compute_stream(parts_.device));
  const std::lock_guard lock(mutex_);
  if (failure_) throw_failure();
  if (!gpu_watch_.joinable()) gpu_watch_ = start_quiet_thread([this] { watch_gpu(); });
  if (own.captured)
    add_captured(operation);
  else
    in_flight_.push_back(operation);
  return operation;
}

void NcclCommunicatorImpl::run(const CollectiveCall& call) {
  require_capturable(call);
  if (is_message(call.kind)) return start(call).wait();
  if (is_of_the_host(call, parts_.device)) {
    if (launches_->has(this)) return start(call).wait();
    require_usable();
    return run_on_host(call);
  }
  const std::shared_ptr<Operation> operation = add(call);
  if (operation->call->captured) {
    launch_here(*operation);
  } else {
    // Otherwise this thread could not be released while another communicator's call has its turn.
    const LaunchQueue::Turn turn(*launches_, std::try_to_lock);
    if (turn)
      launch(*operation);
    else
      launches_->add(this, [this, operation] { launch(*operation); });
  }
  wait(*operation);
}

/// During a capture, when only this thread may work on the graph.
void NcclCommunicatorImpl::launch_here(Operation& operation) {
  const LaunchQueue::Turn turn(*launches_);
  launch(operation);
}

Work NcclCommunicatorImpl::start(const CollectiveCall& call) {
  require_capturable(call);
  require_usable();
  if (is_message(call.kind)) return CommunicatorBase::start_checked(*parts_.messages, call);
  std::shared_ptr<Operation> operation = add(call);
  if (operation->call->captured)
    launch_here(*operation);
  else
    launches_->add(this, [this, operation] { launch(*operation); });
  return Work(std::make_shared<WorkInFlight<NcclCommunicatorImpl>>(shared_from_this(), std::move(operation)));
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
      if (!call.captured) wait_for_room();
      agree(operation);
      if (moves_something(call)) {
        has_ended = false;
        {
          const std::lock_guard lock(mutex_);
          operation.begun = Clock::now();
        }
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
  if (has_ended) static_cast<void>(operation.call.give_up_buffers());
  const std::lock_guard lock(mutex_);
  if (operation.state == Operation::State::kFailed) return;
  operation.tell_hooks();
  operation.launched = Clock::now();
  operation.state = has_ended       ? Operation::State::kEnded
                    : call.captured ? Operation::State::kCaptured
                                    : Operation::State::kLaunched;
  changed_.notify_all();
}

/// Until this member has fewer calls on the GPU than it may have.
void NcclCommunicatorImpl::wait_for_room() {
  while (true) {
    std::shared_ptr<Operation> first;
    {
      const std::lock_guard lock(mutex_);
      // Those on the GPU come first.
      if (in_flight_.size() < kMostOnGpu) return;
      if (in_flight_[kMostOnGpu - 1]->state == Operation::State::kQueued) return;
      first = in_flight_.front();
    }
    if (!done(*first)) std::this_thread::sleep_for(kPollingNap);
  }
}

void NcclCommunicatorImpl::wait(Operation& operation) {
  bool is_launched = false;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return operation.state != Operation::State::kQueued; });
    if (operation.error) throw_failure();
    if (operation.state == Operation::State::kEnded) return;
    is_launched = operation.state == Operation::State::kLaunched;
    if (is_launched) operation.relied_on = true;
  }
  // It is no part of the graph: the compute stream waits for it, and so do launches, once the capture has
  // ended.
  if (is_launched && cuda::is_captured(parts_.device)) return cuda::wait_after_capture(operation.done);
  cuda::compute_stream(parts_.device).wait(operation.done);
}

void NcclCommunicatorImpl::fail(const Error& error) {
  // The first error of any member counts on all of them.
  Error first = error;
  try {
    parts_.control->abort(error);
    first = parts_.control->failure().value_or(error);
    parts_.messages->abort(first);
  } catch (const std::exception& unheard) {
    // The Session has ended, or this thread may not call MPI.
    logging::warning("{}: the other members could not be told of its failure: {}", who(), unheard.what());
  }
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = first;
    // Before NCCL lets go of the GPU, so that the program does not read the results left there.
    const auto is_open = [](const auto& operation) { return !operation->is_ending; };
    is_owed_ = std::ranges::any_of(
        in_flight_, [&](const auto& operation) { return operation->relied_on && is_open(operation); });
    const auto give_up = [&](const std::shared_ptr<Operation>& operation) {
      operation->error = first;
      operation->tell_hooks();
      operation->state = Operation::State::kFailed;
      failed_.push_back(operation);
    };
    for (const std::shared_ptr<Operation>& operation : in_flight_)
      if (is_open(operation)) give_up(operation);
    std::erase_if(in_flight_, is_open);
    if (const std::shared_ptr<Captured> captured = captured_.lock())
      std::ranges::for_each(*captured->calls, give_up);
  }
  changed_.notify_all();
  parts_.comm->abort();  // which takes its time on a thread of its own
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
  // NCCL splits only what has nothing under way, and may hang otherwise.
  const LaunchQueue::Turn turn(*launches_);
  wait_for_all();
  require_usable();
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
    // All members get a group, or none does.
    const std::lock_guard lock(on_host_);
    ++calls_;
    parts_.control->barrier();
  } catch (const std::exception&) {
    fail(error_being_handled(who()));
    require_usable();
  }
  if (!color) return std::nullopt;
  return group;
}

/// Waits until the operation has ended on the GPU, one way or the other.
void NcclCommunicatorImpl::finish(Operation& operation) {
  while (!done(operation)) std::this_thread::sleep_for(kPollingNap);
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

void NcclCommunicatorImpl::finish_before(const Deadline& deadline) {
  while (const std::shared_ptr<Operation> first = first_in_flight()) {
    if (deadline.expired()) return;
    if (!poll(*first)) std::this_thread::sleep_for(kPollingNap);
  }
}

std::shared_ptr<const Buffer> NcclCommunicatorImpl::allocate(std::size_t bytes) {
  if (cuda::is_captured(parts_.device)) {
    throw WrongContext(
        "memory for collectives cannot be made while a graph is captured on {}; do the step once before its "
        "capture",
        to_string(parts_.device));
  }
  const LaunchQueue::Turn turn(*launches_);
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
