#include "node_communicator.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include <cohort/collective/thread_communicator.h>

#include "collective/host_communicators.h"
#include "device/node_heap.h"
#include "execute.h"
#include "progress.h"

namespace cohort::node {
namespace {

/// Co-ownership of what the call's buffers lie in, where that is registered memory.
using RegisteredBlocks = std::array<std::shared_ptr<const void>, 2>;

RegisteredBlocks registered_blocks(const CollectiveCall& call) {
  const RegisteredRanges& ranges = RegisteredRanges::of_this_process();
  if (ranges.empty()) return {};
  return {ranges.block_of(call.input), ranges.block_of(call.output)};
}

RecordOwner owner_of_record(const NodeGroup& group, int local_rank) {
  const int rank = group.rank_of(local_rank);
  return {.rank = rank,
          .worker = group.members()[static_cast<std::size_t>(rank)].worker,
          .communicator = group.name()};
}

}  // namespace

struct NodeCommunicatorImpl::Operation : OperationInFlight {
  Operation(const CollectiveCall& borrowed, bool oversubscribed)
      : OperationInFlight(borrowed), registered(registered_blocks(borrowed)), waiting(oversubscribed) {}

  void finish() {
    // A caller that has waited may give registered memory back. A failed call may still be written to.
    if (!error) registered = {};
    tell_hooks();
    finished.store(true, std::memory_order_release);
  }

  RegisteredBlocks registered;
  CallRecorder::Entry record;
  Task<> task;
  Waiting waiting;
  std::atomic<bool> finished{false};
};

NodeCommunicatorImpl::NodeCommunicatorImpl(const std::shared_ptr<NodeGroup>& group, int local_rank)
    : recorder_(group->control_block(local_rank).record, owner_of_record(*group, local_rank)),
      endpoints_{Endpoint(group, local_rank, Priority::kNormal),
                 Endpoint(group, local_rank, Priority::kUrgent)},
      mailbox_(endpoints_.front()),
      peers_(endpoints_.front(), mailbox_) {
  endpoints_.front().set_peers(peers_);
  for (Endpoint& endpoint : endpoints_) endpoint.set_recorder(recorder_);
}

NodeCommunicatorImpl::~NodeCommunicatorImpl() {
  if (!group().is_of_this_process()) return;
  if (inter_node_ != nullptr) own_communicators_->remove(*this);
  stop_all();  // what no thread has driven since an abort
  std::vector<std::shared_ptr<const void>> held = mailbox_.take_contents();
  if (inter_node_ != nullptr && group().failed()) {
    // Transfers may still be on their way, also into the memory of failed calls.
    if (!inter_node_->ends_transfers()) {
      for (std::shared_ptr<const void>& memory : failed_) NodeGroup::keep_for_ever(std::move(memory));
      NodeGroup::keep_for_ever(std::move(inter_node_));
    }
    failed_.clear();
  }
  std::ranges::move(failed_, std::back_inserter(held));
  std::ranges::move(peers_.take_scratch(), std::back_inserter(held));
  group().leave(position().rank, std::move(held));
}

void NodeCommunicatorImpl::set_inter_node(std::shared_ptr<InterNode> inter_node) {
  inter_node_ = std::move(inter_node);
  for (Endpoint& endpoint : endpoints_) endpoint.failure_watch().set_inter_node(inter_node_.get());
  if (own_communicators_ == nullptr) set_own_communicators(std::make_shared<OwnCommunicators>());
  own_communicators_->add(*this);
}

void NodeCommunicatorImpl::set_own_communicators(std::shared_ptr<OwnCommunicators> own) {
  own_communicators_ = std::move(own);
  for (Endpoint& endpoint : endpoints_) endpoint.failure_watch().set_own_communicators(*own_communicators_);
}

ContextIdSet NodeCommunicatorImpl::free_context_ids() const {
  return inter_node_ == nullptr ? ContextIdSet() : inter_node_->free_context_ids();
}

std::shared_ptr<NodeCommunicatorImpl> NodeCommunicatorImpl::split(int color,
                                                                  std::span<const SplitMember> split_members,
                                                                  NewControlBlock block) {
  std::string name = fmt::format("{}.{}.{}", this->group().name(), calls_ - 1, color);
  const auto group =
      std::make_shared<NodeGroup>(this->group(), split_members, rank(), std::move(block), std::move(name));
  auto impl = std::make_shared<NodeCommunicatorImpl>(group, group->first_own_local_rank());
  if (own_communicators_ != nullptr) impl->set_own_communicators(own_communicators_);
  if (inter_node_ == nullptr) return impl;
  std::vector<int> ranks;
  ranks.reserve(split_members.size());
  ContextIdSet free_ids = split_members.front().contribution.context_ids;
  for (const SplitMember& member : split_members) {
    ranks.push_back(member.rank);
    free_ids.combine(member.contribution.context_ids);
  }
  if (std::shared_ptr<InterNode> inter_node = inter_node_->split(ranks, free_ids, *impl))
    impl->set_inter_node(std::move(inter_node));
  return impl;
}

std::vector<TuningFigure> NodeCommunicatorImpl::tuning() const {
  std::vector<TuningFigure> figures;
  if (const std::optional<TuningTable>& table = endpoints_.front().tuning()) {
    figures = fixed_node_figures();
    std::ranges::copy(table->figures(TuningScope::kNode), std::back_inserter(figures));
  }
  if (inter_node_ != nullptr) std::ranges::copy(inter_node_->tuning(), std::back_inserter(figures));
  return figures;
}

void NodeCommunicatorImpl::abort(const Error& error) {
  // Who ends its part says why, in its own words, but seldom who it is.
  ErrorOrigin origin = error.origin();
  if (origin.member < 0) {
    origin.member = rank();
    origin.host = group().host_of(rank());
  }
  const Error told(error.code(), error.what(), std::move(origin));
  if (!group().fail(told)) return;
  if (inter_node_ != nullptr) inter_node_->tell(told);
  group().report(told);
}

std::optional<Error> NodeCommunicatorImpl::failure() {
  if (group().failed()) return group().failure();
  const std::unique_lock lock(driving_, std::try_to_lock);
  if (!lock) return std::nullopt;  // the thread that drives finds out
  std::optional<Error> found = group().fault();
  if (!found && inter_node_ != nullptr) found = inter_node_->poll_failure();
  if (!found) return std::nullopt;
  return endpoints_.front().failure_watch().set_failure(*found);
}

bool NodeCommunicatorImpl::answer_questions() noexcept {
  try {
    static_cast<void>(inter_node_->poll_failure());
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void NodeCommunicatorImpl::close() {
  if (!group().is_of_this_process()) return;
  // Read once: the thread that drives calls in flight may end the last of them at any time.
  const bool was_idle = idle();
  // The members of its node see that a member has left; other nodes have to be told, if it left by an error.
  if (was_idle && (inter_node_ == nullptr || group().failed())) return;
  const MemberInfo& own = group().members()[static_cast<std::size_t>(rank())];
  if (const std::optional<Error> error = error_of_unwinding(rank(), own, !was_idle)) {
    // Others may still be at the end of a call that this member has finished. Nothing has failed in it, and
    // if all of them leave after it, as preempted jobs do, nothing ever does.
    return was_idle ? inter_node_->tell_of_leaving(*error, calls_) : abort(*error);
  }
  while (const std::shared_ptr<Operation> unheld = find_unheld()) {
    try {
      wait(*unheld);
    } catch (const Error&) {
      return;  // nobody asks any more
    }
  }
}

std::shared_ptr<NodeCommunicatorImpl::Operation> NodeCommunicatorImpl::find_unheld() {
  const std::lock_guard lock(driving_);
  for (const Collectives& collectives : collectives_) {
    if (std::shared_ptr<Operation> unheld = cohort::find_unheld(collectives)) return unheld;
  }
  return cohort::find_unheld(messages_);
}

void NodeCommunicatorImpl::note_call_outside(const char* name) noexcept {
  CallsOutside& calls = group().control_block(position().rank).outside;
  if (name != latest_outside_) {
    latest_outside_ = name;
    std::size_t at = 0;
    for (; at + 1 < calls.latest.size() && name[at] != '\0'; ++at)
      calls.latest[at].store(name[at], std::memory_order_relaxed);
    calls.latest[at].store('\0', std::memory_order_relaxed);
  }
  set_calls_outside((calls.word.load(std::memory_order_relaxed) >> 32) + 1);
}

void NodeCommunicatorImpl::take_back_call_outside() noexcept {
  const CallsOutside& calls = group().control_block(position().rank).outside;
  set_calls_outside((calls.word.load(std::memory_order_relaxed) >> 32) - 1);
}

void NodeCommunicatorImpl::set_calls_outside(std::uint64_t count) noexcept {
  CallsOutside& calls = group().control_block(position().rank).outside;
  calls.word.store(count << 32 | (calls_ & 0xffff'ffff), std::memory_order_release);
  for (Endpoint& endpoint : endpoints_) endpoint.set_calls_outside(static_cast<std::uint32_t>(count));
}

void NodeCommunicatorImpl::run(const CollectiveCall& call) {
  if (is_message(call.kind)) return start(call).wait();
  Endpoint& endpoint = this->endpoint(call.priority);
  latest_ = &endpoint;
  if (!idle()) return start(call).wait();  // calls in flight come first
  const bool failed_before = endpoint.failure_watch().failure().has_value();
  endpoint.set_number(calls_++);
  try {
    if (inter_node_ == nullptr) return execute_now(endpoint, call);
    blocks_.store(true, std::memory_order_relaxed);
    inter_node_->execute_now(call);
    blocks_.store(false, std::memory_order_relaxed);
    endpoint.log_choice(call);
  } catch (const std::exception&) {
    fail_by_exception(endpoint, call, failed_before);
  }
}

/// The exception that is being handled ends `call` and the group.
void NodeCommunicatorImpl::fail_by_exception(Endpoint& endpoint, const CollectiveCall& call,
                                             bool failed_before) {
  blocks_.store(false, std::memory_order_relaxed);
  const Error error = error_being_handled(who());
  if (!failed_before) keep_memory_of(call);
  const Error cause = endpoint.failure_watch().cause_of(call, error);
  endpoint.end_subcalls();  // of a call that its caller may destroy now
  endpoint.failure_watch().fail(cause);
}

/// Of a message that has failed, while others may still read or write it.
void NodeCommunicatorImpl::keep_memory_of(const std::shared_ptr<Operation>& message) {
  // The transport may still read what was not received, or write what comes late.
  if (goes_to_another_node(message->call.get()))
    NodeGroup::keep_for_ever(message);
  else if (mailbox_.is_still_read(message->call.get()))
    failed_.push_back(message);
}

void NodeCommunicatorImpl::keep_memory_of(const CollectiveCall& call) {
  for (const auto* buffer : call.buffers) {
    if (buffer != nullptr) failed_.push_back(*buffer);
  }
  std::ranges::move(registered_blocks(call), std::back_inserter(failed_));
}

Work NodeCommunicatorImpl::start(const CollectiveCall& call) {
  auto operation = std::make_shared<Operation>(call, group().oversubscribed());
  Endpoint& endpoint = this->endpoint(call.priority);
  bool first = false;
  {
    starters_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(driving_);
    starters_.fetch_sub(1, std::memory_order_relaxed);
    endpoint.failure_watch().require_usable();
    if (is_message(call.kind)) {
      messages_.push_back(operation);
    } else {
      operation->number = calls_++;
      collectives_in_flight_.fetch_add(1, std::memory_order_relaxed);
      collectives_[static_cast<std::size_t>(call.priority)].push_back(operation);
    }
    operation->record = recorder_.begin(call.as_called(), operation->number, true);
    first = in_flight_.fetch_add(1, std::memory_order_release) == 0;
    // A message that can be posted at once is off before its sender looks away.
    if (is_message(call.kind)) advance();
  }
  const bool any_thread =
      group().any_thread_may_drive() && (inter_node_ == nullptr || inter_node_->any_thread_may_drive());
  if (first && any_thread) Progress::of_this_process().attend(shared_from_this());
  return Work(std::make_shared<WorkInFlight<NodeCommunicatorImpl>>(shared_from_this(), std::move(operation)));
}

void NodeCommunicatorImpl::wait(const Operation& operation) {
  if (!operation.finished.load(std::memory_order_acquire)) {
    const std::uint64_t begin = recorder_.begin_wait();
    drive_to_end_of(operation);
    recorder_.end_wait(begin);
  }
  if (operation.error) throw_error(*operation.error);
}

void NodeCommunicatorImpl::drive_to_end_of(const Operation& operation) {
  waiters_.fetch_add(1, std::memory_order_relaxed);
  Waiting waiting(group().oversubscribed(), group().while_waiting());
  while (!operation.finished.load(std::memory_order_acquire)) {
    std::unique_lock lock(driving_, std::defer_lock);
    if (starters_.load(std::memory_order_relaxed) > 0 || !lock.try_lock()) {
      // The thread that drives may be waiting for this very core.
      ::sched_yield();
      continue;
    }
    if (advance()) {
      waiting = Waiting(group().oversubscribed(), group().while_waiting());
      continue;
    }
    lock.unlock();
    static_cast<void>(waiting.is_time_to_check());
    waiting.give_way();
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

bool NodeCommunicatorImpl::done(const Operation& operation) noexcept {
  if (operation.finished.load(std::memory_order_acquire)) return true;
  // A caller that asks in a loop would keep a core from those it waits for.
  if (!try_advance() && group().oversubscribed()) std::this_thread::yield();
  return operation.finished.load(std::memory_order_acquire);
}

bool NodeCommunicatorImpl::try_advance() {
  if (starters_.load(std::memory_order_relaxed) > 0) return false;
  const std::unique_lock lock(driving_, std::try_to_lock);
  return lock && advance();
}

bool NodeCommunicatorImpl::advance(Collectives& collectives) {
  bool moved = false;
  while (!collectives.empty()) {
    const std::shared_ptr<Operation> operation = collectives.front();
    moved |= advance(*operation);
    if (collectives.empty() || !operation->finished.load(std::memory_order_relaxed)) break;
    collectives.pop_front();
    collectives_in_flight_.fetch_sub(1, std::memory_order_relaxed);
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
  return moved;
}

bool NodeCommunicatorImpl::advance() {
  bool moved = advance(collectives_[static_cast<std::size_t>(Priority::kUrgent)]);
  moved |= advance(collectives_[static_cast<std::size_t>(Priority::kNormal)]);
  for (auto at = messages_.begin(); at != messages_.end();) {
    const std::shared_ptr<Operation> operation = *at;
    if (may_look_for_envelope(*operation)) moved |= advance(*operation);
    if (messages_.empty()) break;
    if (!operation->finished.load(std::memory_order_relaxed)) {
      ++at;
      continue;
    }
    if (operation->error) keep_memory_of(operation);
    at = messages_.erase(at);
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
  return moved;
}

bool NodeCommunicatorImpl::may_look_for_envelope(const Operation& operation) const {
  // Messages with the same peer and tag keep their order: only the oldest of them goes on.
  for (const std::shared_ptr<Operation>& earlier : messages_) {
    if (earlier.get() == &operation) return true;
    const bool alike = earlier->call->kind == operation.call->kind &&
                       earlier->call->root == operation.call->root &&
                       earlier->call->tag == operation.call->tag;
    if (alike) return false;
  }
  return true;
}

std::string NodeCommunicatorImpl::who() const { return group().who(rank()); }

bool NodeCommunicatorImpl::goes_to_another_node(const CollectiveCall& message) const {
  return inter_node_ != nullptr && !group().local_rank_of(message.root);
}

Task<> NodeCommunicatorImpl::task_of(const Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  if (!is_message(call.kind)) {
    endpoint(call.priority).set_number(operation.number);
    endpoint(call.priority).set_record(operation.record);
    return inter_node_ != nullptr ? inter_node_->execute(call) : execute(endpoint(call.priority), call);
  }
  const bool sends = call.kind == CollectiveKind::kSend;
  if (goes_to_another_node(call)) return sends ? inter_node_->send(call) : inter_node_->receive(call);
  return sends ? mailbox_.send(call) : mailbox_.receive(call);
}

void NodeCommunicatorImpl::check_message_for_failure(const CollectiveCall& call, const Waiting& waiting) {
  if (!goes_to_another_node(call)) return mailbox_.check_for_failure(call, waiting);
  FailureWatch& failure_watch = endpoints_.front().failure_watch();
  failure_watch.check_group();
  if (const std::optional<Error> error = inter_node_->check_for_failure(call, waiting))
    failure_watch.fail(*error);
  const std::chrono::duration<double> timeout = group().timeout(call);
  if (timeout.count() <= 0 || waiting.waited() < timeout) return;
  const Withdrawal withdrawal = inter_node_->withdraw(call);
  if (withdrawal == Withdrawal::kArrived) return;
  const int missing[] = {call.root};
  const ErrorOrigin origin{std::string(to_string(call.kind)), call.root, group().host_of(call.root)};
  const std::string text = explain_missing(call, 0, {missing}, group().members(), waiting.waited().count());
  if (withdrawal == Withdrawal::kTakenBack) throw DeadlineExceeded(origin, text);
  failure_watch.fail(DeadlineExceeded(
      origin, fmt::format("{} The message was on its way already and cannot be taken back, so the "
                          "communicator cannot be used any more",
                          text)));
}

bool NodeCommunicatorImpl::advance(Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  Endpoint& endpoint = this->endpoint(call.priority);
  bool moved = false;
  try {
    if (!operation.task.valid()) operation.task = task_of(operation);
    while (operation.task.ready()) {
      operation.task.resume();
      moved = true;
      if (operation.task.done()) {
        recorder_.end(operation.record);
        if (!is_message(call.kind)) endpoint.log_choice(call);
        operation.finish();
        return true;
      }
      if (operation.task.has_yielded()) break;
    }
    if (moved) {
      operation.waiting = Waiting(group().oversubscribed());
    } else if (operation.waiting.is_time_to_check()) {
      if (is_message(call.kind))
        check_message_for_failure(call, operation.waiting);
      else
        endpoint.failure_watch().check(call, operation.waiting);
    }
    return moved;
  } catch (const std::exception&) {
    const Error error = error_being_handled(who());
    if (is_message(call.kind) && !endpoint.failure_watch().failure()) {
      recorder_.fail(operation.record);
      operation.error = error;
      operation.finish();
    } else {
      fail_all(endpoint.failure_watch().set_failure(endpoint.failure_watch().cause_of(call, error)));
    }
  }
  return true;
}

std::vector<std::shared_ptr<NodeCommunicatorImpl::Operation>> NodeCommunicatorImpl::stop_all() {
  std::vector<std::shared_ptr<Operation>> stopped(messages_.begin(), messages_.end());
  messages_.clear();
  for (Collectives& collectives : collectives_) {
    std::ranges::move(collectives, std::back_inserter(stopped));
    collectives.clear();
  }
  for (const std::shared_ptr<Operation>& operation : stopped) {
    // A task gives back lists and scratch memory to what is gone when the memory of the call goes. Between
    // nodes it stays, since transfers may still be on their way to what lies in it.
    if (!reaches_other_nodes()) operation->task = {};
    failed_.push_back(operation);
  }
  return stopped;
}

void NodeCommunicatorImpl::fail_all(const Error& error) {
  for (const std::shared_ptr<Operation>& operation : stop_all()) {
    operation->error = error;
    operation->finish();
    if (!is_message(operation->call->kind)) collectives_in_flight_.fetch_sub(1, std::memory_order_relaxed);
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace cohort::node

namespace cohort {

std::vector<std::unique_ptr<Communicator>> make_node_communicators(const NodeGroupOptions& options) {
  const auto group = std::make_shared<node::NodeGroup>(options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.reserve(static_cast<std::size_t>(options.members));
  for (int member = 0; member < options.members; ++member)
    communicators.push_back(std::make_unique<node::NodeCommunicator>(
        std::make_shared<node::NodeCommunicatorImpl>(group, group->first_own_local_rank() + member),
        options.communication));
  return communicators;
}

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int members,
                                                                     const CommunicationOptions& options) {
  NodeGroupOptions group;
  group.members = members;
  group.communication = options;
  return make_node_communicators(group);
}

}  // namespace cohort
