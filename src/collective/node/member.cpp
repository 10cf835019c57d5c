#include "member.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <thread>

#include <fmt/format.h>

#include "carry_out.h"
#include "device/registered_ranges.h"
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

/// Co-ownership of what the call's buffers lie in, where that is registered memory.
using RegisteredBlocks = std::array<std::shared_ptr<const void>, 2>;

RegisteredBlocks registered_blocks(const CollectiveCall& call) {
  const RegisteredRanges& ranges = RegisteredRanges::of_this_process();
  if (ranges.empty()) return {};
  return {ranges.block_of(call.input), ranges.block_of(call.output)};
}

}  // namespace

struct Member::Operation {
  Operation(const CollectiveCall& borrowed, bool crowded)
      : call(borrowed), registered(registered_blocks(borrowed)), waiting(crowded) {}

  void finish() {
    // Who has waited may give registered memory back. A failed call may still be written to.
    if (!error) registered = {};
    finished.store(true, std::memory_order_release);
  }

  const OwnedCall call;
  RegisteredBlocks registered;
  std::uint64_t number = 0;  ///< of a collective, among those of all priorities
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
    if (operation_->finished.load(std::memory_order_acquire)) return true;
    // Who asks in a loop would keep a core from those it waits for.
    if (!member_->try_advance() && member_->group().crowded()) std::this_thread::yield();
    return operation_->finished.load(std::memory_order_acquire);
  }

 private:
  std::shared_ptr<Member> member_;
  std::shared_ptr<Operation> operation_;
};

Member::Member(const std::shared_ptr<NodeGroup>& group, int seat)
    : seats_{Seat(group, seat, Priority::kNormal), Seat(group, seat, Priority::kUrgent)},
      mailbox_(seats_.front()),
      peers_(seats_.front(), mailbox_) {
  seats_.front().set_peers(peers_);
}

Member::~Member() {
  if (!group().is_of_this_process()) return;
  std::vector<std::shared_ptr<const void>> held = mailbox_.take_contents();
  std::ranges::move(failed_, std::back_inserter(held));
  std::ranges::move(peers_.take_rooms(), std::back_inserter(held));
  // Transfers may still be on their way.
  if (outside_ != nullptr && group().failed()) NodeGroup::keep_for_ever(std::move(outside_));
  group().leave(place().rank, std::move(held));
}

void Member::set_outside(std::shared_ptr<Outside> outside) {
  outside_ = std::move(outside);
  for (Seat& seat : seats_) seat.set_outside(outside_.get());
}

GroupOffer Member::group_offer() const {
  return outside_ == nullptr ? GroupOffer() : outside_->group_offer();
}

std::shared_ptr<Member> Member::split(std::span<const Communicator::Recruit> recruits, NewSeat seat) {
  const auto group = std::make_shared<NodeGroup>(this->group(), recruits, rank(), std::move(seat));
  auto member = std::make_shared<Member>(group, group->first_own_seat());
  if (outside_ == nullptr) return member;
  std::vector<int> ranks;
  ranks.reserve(recruits.size());
  GroupOffer offer = recruits.front().brought.group;
  for (const Communicator::Recruit& recruit : recruits) {
    ranks.push_back(recruit.rank);
    offer.combine(recruit.brought.group);
  }
  if (std::shared_ptr<Outside> outside = outside_->split(ranks, offer, *member))
    member->set_outside(std::move(outside));
  return member;
}

std::vector<TuningFigure> Member::tuning() const {
  std::vector<TuningFigure> figures;
  if (const std::optional<TuningTable>& table = seats_.front().tuning) {
    figures = fixed_node_figures();
    std::ranges::copy(table->figures(TuningScope::kNode), std::back_inserter(figures));
  }
  if (outside_ != nullptr) std::ranges::copy(outside_->tuning(), std::back_inserter(figures));
  return figures;
}

void Member::abort(const Error& error) {
  if (group().fail(error) && outside_ != nullptr) outside_->tell(error);
}

std::optional<Error> Member::failure() {
  if (group().failed()) return group().failure();
  const std::unique_lock lock(driving_, std::try_to_lock);
  if (!lock) return std::nullopt;  // who drives finds out
  std::optional<Error> found = group().fault();
  if (!found && outside_ != nullptr) found = outside_->listen();
  if (!found) return std::nullopt;
  return seats_.front().set_failure(*found);
}

void Member::close() {
  if (!group().is_of_this_process()) return;
  // On its node it is seen that a member has left; other nodes have to be told, in case of an error.
  if (idle() && (outside_ == nullptr || group().failed())) return;
  if (std::uncaught_exceptions() > 0) {
    // This member will not get to the calls that the others make, so waiting could be in vain.
    abort(Aborted(ErrorOrigin{"", rank(), group().host_of(rank())},
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
  for (const Collectives& collectives : collectives_) {
    if (const auto at = std::ranges::find_if(collectives, is_dropped); at != collectives.end()) return *at;
  }
  if (const auto at = std::ranges::find_if(messages_, is_dropped); at != messages_.end()) return *at;
  return nullptr;
}

void Member::run(const CollectiveCall& call) {
  if (is_message(call)) return start(call).wait();
  Seat& seat = this->seat(call.priority);
  latest_ = &seat;
  if (!idle()) return start(call).wait();  // calls in flight come first
  const bool failed_before = seat.failure().has_value();
  seat.set_number(calls_++);
  try {
    if (outside_ != nullptr)
      seat.drive(call, outside_->carry_out(call));
    else
      carry_out_now(seat, call);
  } catch (const std::exception&) {
    const Error error = error_being_handled(who());
    if (!failed_before) keep_memory_of(call);
    seat.fail(seat.cause_of(call, error));
  }
}

void Member::keep_memory_of(const CollectiveCall& call) {
  for (const auto* buffer : call.buffers) {
    if (buffer != nullptr) failed_.push_back(*buffer);
  }
  std::ranges::move(registered_blocks(call), std::back_inserter(failed_));
}

Work Member::start(const CollectiveCall& call) {
  auto operation = std::make_shared<Operation>(call, group().crowded());
  Seat& seat = this->seat(call.priority);
  bool first = false;
  {
    starters_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(driving_);
    starters_.fetch_sub(1, std::memory_order_relaxed);
    if (seat.failure() || group().failed()) seat.fail(seat.failure() ? *seat.failure() : group().failure());
    if (is_message(call)) {
      messages_.push_back(operation);
    } else {
      operation->number = calls_++;
      collectives_[static_cast<std::size_t>(call.priority)].push_back(operation);
    }
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
    std::unique_lock lock(driving_, std::defer_lock);
    if (starters_.load(std::memory_order_relaxed) > 0 || !lock.try_lock()) {
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
  if (starters_.load(std::memory_order_relaxed) > 0) return false;
  const std::unique_lock lock(driving_, std::try_to_lock);
  return lock && advance();
}

bool Member::advance(Collectives& collectives) {
  bool moved = false;
  while (!collectives.empty()) {
    const std::shared_ptr<Operation> operation = collectives.front();
    moved |= advance(*operation);
    if (collectives.empty() || !operation->finished.load(std::memory_order_relaxed)) break;
    collectives.pop_front();
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
  return moved;
}

bool Member::advance() {
  bool moved = advance(collectives_[static_cast<std::size_t>(Priority::kUrgent)]);
  moved |= advance(collectives_[static_cast<std::size_t>(Priority::kNormal)]);
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

std::string Member::who() const { return group().who(rank()); }

bool Member::goes_outside(const CollectiveCall& message) const {
  return outside_ != nullptr && !group().seat_of(message.root);
}

Steps Member::steps_of(const Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  if (!is_message(call)) {
    seat(call.priority).set_number(operation.number);
    return outside_ != nullptr ? outside_->carry_out(call) : carry_out(seat(call.priority), call);
  }
  const bool sends = call.kind == CollectiveKind::kSend;
  if (goes_outside(call)) return sends ? outside_->send(call) : outside_->receive(call);
  return sends ? mailbox_.send(call) : mailbox_.receive(call);
}

void Member::look_around_for_message(const CollectiveCall& call, const Waiting& waiting) {
  if (!goes_outside(call)) return mailbox_.look_around(call, waiting);
  Seat& seat = seats_.front();
  if (group().failed()) seat.fail(group().failure());
  if (const std::optional<Error> fault = group().fault()) seat.fail(*fault);
  if (const std::optional<Error> error = outside_->look_around(call, waiting)) seat.fail(*error);
  const std::chrono::duration<double> timeout = group().timeout(call);
  if (timeout.count() <= 0 || waiting.waited() < timeout) return;
  outside_->withdraw(call);
  const int missing[] = {call.root};
  throw DeadlineExceeded(
      ErrorOrigin{std::string(to_string(call.kind)), call.root, group().host_of(call.root)},
      explain_missing(call, 0, missing, group().members(), waiting.waited().count()));
}

bool Member::advance(Operation& operation) {
  const CollectiveCall& call = operation.call.get();
  Seat& seat = this->seat(call.priority);
  bool moved = false;
  try {
    if (!operation.steps.started()) operation.steps = steps_of(operation);
    while (operation.steps.ready()) {
      operation.steps.resume();
      moved = true;
      if (operation.steps.done()) {
        operation.finish();
        return true;
      }
      if (operation.steps.rests()) break;
    }
    if (moved) {
      operation.waiting = Waiting(group().crowded());
    } else if (operation.waiting.is_time_to_look()) {
      if (is_message(call))
        look_around_for_message(call, operation.waiting);
      else
        seat.look_around(call, operation.waiting);
    }
    return moved;
  } catch (const std::exception&) {
    const Error error = error_being_handled(who());
    if (is_message(call) && !seat.failure()) {
      operation.error = error;
      operation.finish();
    } else {
      fail_all(seat.set_failure(seat.cause_of(call, error)));
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
  for (Collectives& collectives : collectives_) {
    for (const auto& operation : collectives) fail(operation);
    collectives.clear();
  }
  for (const auto& operation : messages_) fail(operation);
  messages_.clear();
}

}  // namespace cohort::node
