#include "member.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "carry_out.h"
#include "progress.h"

namespace cohort::node {
namespace {

bool is_message(const CollectiveCall& call) {
  return call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReceive;
}

/// The exception being handled, as an error of ours that says whose it is.
Error error_being_handled(const std::string& who) {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Unavailable("{} is out of memory", who);
  } catch (const std::exception& error) {
    return Internal("{}: {}", who, error.what());
  }
}

}  // namespace

struct Member::Operation {
  Operation(const CollectiveCall& borrowed, bool crowded) : call(borrowed), waiting(crowded) {}

  void finish() { finished.store(true, std::memory_order_release); }

  const OwnedCall call;
  Steps steps;
  Waiting waiting;
  std::optional<Error> error;
  std::atomic<bool> finished{false};
  std::atomic<bool> dropped{false};  ///< nobody holds its Work
};

class Member::InFlight final : public Work::State {
 public:
  InFlight(std::shared_ptr<Member> member, std::shared_ptr<Operation> operation)
      : member_(std::move(member)), operation_(std::move(operation)) {}
  ~InFlight() override { operation_->dropped.store(true, std::memory_order_relaxed); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  void wait() override { member_->wait(*operation_); }

  [[nodiscard]] bool done() noexcept override {
    if (!operation_->finished.load(std::memory_order_acquire)) member_->try_advance();
    return operation_->finished.load(std::memory_order_acquire);
  }

 private:
  std::shared_ptr<Member> member_;
  std::shared_ptr<Operation> operation_;
};

Member::Member(std::shared_ptr<NodeGroup> group, int seat) : seat_(std::move(group), seat), mailbox_(seat_) {}

Member::~Member() {
  if (!group().is_of_this_process()) return;
  std::vector<std::shared_ptr<const void>> held = mailbox_.take_contents();
  std::ranges::move(failed_, std::back_inserter(held));
  // Transfers may still be on their way.
  if (outside_ != nullptr && group().failed()) NodeGroup::keep_for_ever(std::move(outside_));
  group().leave(seat_.place().rank, std::move(held));
}

void Member::set_outside(std::shared_ptr<Outside> outside) {
  outside_ = std::move(outside);
  seat_.set_outside(outside_.get());
}

void Member::abort(const Error& error) {
  if (group().fail(error) && outside_ != nullptr) outside_->tell(error);
}

void Member::close() {
  if (!group().is_of_this_process()) return;
  // On its node it is seen that a member has left; other nodes have to be told, in case of an error.
  if (idle() && (outside_ == nullptr || group().failed())) return;
  if (std::uncaught_exceptions() > 0) {
    // This member will not get to the calls that the others make, so waiting could be in vain.
    const int rank = group().rank_of(seat_.place().rank);
    abort(Aborted(ErrorOrigin{"", rank, group().host_of(rank)},
                  fmt::format("{} left the communicator because of an error{}", who(),
                              idle() ? "" : ", with calls in flight")));
    return;
  }
  while (const std::shared_ptr<Operation> dropped = find_dropped()) {
    try {
      wait(*dropped);
    } catch (const Error&) {
      return;  // nobody asks any more
    }
  }
}

std::shared_ptr<Member::Operation> Member::find_dropped() {
  const std::lock_guard lock(driving_);
  const auto is_dropped = [](const auto& operation) {
    return operation->dropped.load(std::memory_order_relaxed);
  };
  if (const auto at = std::ranges::find_if(collectives_, is_dropped); at != collectives_.end()) return *at;
  if (const auto at = std::ranges::find_if(messages_, is_dropped); at != messages_.end()) return *at;
  return nullptr;
}

void Member::run(const CollectiveCall& call) {
  // Messages are resumable only, and calls in flight come first.
  if (is_message(call) || !idle()) return start(call).wait();
  const bool failed_before = seat_.failure().has_value();
  try {
    if (outside_ != nullptr)
      seat_.drive(call, outside_->carry_out(call));
    else
      carry_out_now(seat_, call);
  } catch (const std::exception&) {
    const Error error = error_being_handled(who());
    for (const auto* buffer : call.buffers) {
      if (buffer != nullptr && !failed_before) failed_.push_back(*buffer);
    }
    seat_.fail(seat_.cause_of(call, error));
  }
}

Work Member::start(const CollectiveCall& call) {
  auto operation = std::make_shared<Operation>(call, group().crowded());
  bool first = false;
  {
    const std::lock_guard lock(driving_);
    if (seat_.failure() || group().failed())
      seat_.fail(seat_.failure() ? *seat_.failure() : group().failure());
    if (is_message(call))
      messages_.push_back(operation);
    else
      collectives_.push_back(operation);
    first = in_flight_.fetch_add(1, std::memory_order_release) == 0;
    // A message that can be posted at once is off before its sender looks away.
    if (is_message(call)) advance();
  }
  const bool any_thread = outside_ == nullptr || outside_->any_thread_may_drive();
  if (first && any_thread) Progress::of_this_process().attend(shared_from_this());
  return Work(std::make_shared<InFlight>(shared_from_this(), std::move(operation)));
}

void Member::wait(const Operation& operation) {
  waiters_.fetch_add(1, std::memory_order_relaxed);
  Waiting waiting(group().crowded());
  while (!operation.finished.load(std::memory_order_acquire)) {
    std::unique_lock lock(driving_, std::try_to_lock);
    if (!lock) {
      // The one who drives may have been put off this very core.
      ::sched_yield();
      continue;
    }
    if (advance()) {
      waiting = Waiting(group().crowded());
      continue;
    }
    lock.unlock();
    static_cast<void>(waiting.is_time_to_look());
    waiting.give_way();
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  if (operation.error)
    throw_error(operation.error->code(), operation.error->what(), operation.error->origin());
}

bool Member::try_advance() {
  const std::unique_lock lock(driving_, std::try_to_lock);
  return lock && advance();
}

bool Member::advance() {
  bool moved = false;
  while (!collectives_.empty()) {
    const std::shared_ptr<Operation> operation = collectives_.front();
    moved |= advance(*operation);
    if (collectives_.empty() || !operation->finished.load(std::memory_order_relaxed)) break;
    collectives_.pop_front();
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
  for (auto at = messages_.begin(); at != messages_.end();) {
    const std::shared_ptr<Operation> operation = *at;
    if (may_look_for_parcel(*operation)) moved |= advance(*operation);
    if (messages_.empty()) break;
    if (!operation->finished.load(std::memory_order_relaxed)) {
      ++at;
      continue;
    }
    // The transport may still read what was not received, or write what comes late.
    if (operation->error && goes_outside(operation->call.get())) NodeGroup::keep_for_ever(operation);
    at = messages_.erase(at);
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
  return moved;
}

bool Member::may_look_for_parcel(const Operation& operation) const {
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

std::string Member::who() const { return group().who(group().rank_of(seat_.place().rank)); }

bool Member::goes_outside(const CollectiveCall& message) const {
  return outside_ != nullptr && !group().seat_of(message.root);
}

Steps Member::steps_of(const CollectiveCall& call) {
  if (!is_message(call)) return outside_ != nullptr ? outside_->carry_out(call) : carry_out(seat_, call);
  const bool sends = call.kind == CollectiveKind::kSend;
  if (goes_outside(call)) return sends ? outside_->send(call) : outside_->receive(call);
  return sends ? mailbox_.send(call) : mailbox_.receive(call);
}

void Member::look_around_for_message(const CollectiveCall& call, const Waiting& waiting) {
  if (!goes_outside(call)) return mailbox_.look_around(call, waiting);
  if (group().failed()) seat_.fail(group().failure());
  if (const Error* fault = group().fault()) seat_.fail(*fault);
  if (const std::optional<Error> error = outside_->look_around(call, waiting)) seat_.fail(*error);
  const std::chrono::duration<double> timeout = group().timeout_of(call);
  if (timeout.count() <= 0 || waiting.waited() < timeout) return;
  outside_->withdraw(call);
  const int missing[] = {call.root};
  throw DeadlineExceeded(
      ErrorOrigin{std::string(to_string(call.kind)), call.root, group().host_of(call.root)},
      explain_missing(call, 0, missing, group().members(), waiting.waited().count()));
}

bool Member::advance(Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  bool moved = false;
  try {
    if (!operation.steps.started()) operation.steps = steps_of(call);
    while (operation.steps.ready()) {
      operation.steps.resume();
      moved = true;
      if (operation.steps.done()) {
        operation.finish();
        return true;
      }
    }
    if (moved) {
      operation.waiting = Waiting(group().crowded());
    } else if (operation.waiting.is_time_to_look()) {
      if (is_message(call))
        look_around_for_message(call, operation.waiting);
      else
        seat_.look_around(call, operation.waiting);
    }
    return moved;
  } catch (const std::exception&) {
    const Error error = error_being_handled(who());
    if (is_message(call) && !seat_.failure()) {
      operation.error = error;
      operation.finish();
    } else {
      fail_all(seat_.set_failure(seat_.cause_of(call, error)));
    }
  }
  return true;
}

void Member::fail_all(const Error& error) {
  const auto fail = [&](const std::shared_ptr<Operation>& operation) {
    failed_.push_back(operation);
    operation->error = error;
    operation->finish();
    in_flight_.fetch_sub(1, std::memory_order_release);
  };
  for (const auto& operation : collectives_) fail(operation);
  collectives_.clear();
  for (const auto& operation : messages_) fail(operation);
  messages_.clear();
}

}  // namespace cohort::node
