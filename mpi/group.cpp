#include "group.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>

namespace cohort::mpi {
namespace {

using namespace std::chrono_literals;

/// How long after its own deadline a member waits for member 0 to say who is missing.
constexpr auto kPatience = 1s;
/// How long member 0 waits for answers to its question who is here.
constexpr auto kTimeToAnswer = 500ms;
/// Polls between two looks at the clock, the deadlines and the notices.
constexpr unsigned kPollsPerLook = 64;

/// What a waiting thread does when nothing moved: yields its core, and naps once it has waited
/// so long for other members to arrive that a nap more makes no difference.
class Backoff {
 public:
  void pause(bool may_nap) {
    if (may_nap && ++idle_ > kYields)
      std::this_thread::sleep_for(50us);
    else
      ::sched_yield();
  }
  void reset() { idle_ = 0; }

 private:
  static constexpr unsigned kYields = 20'000;
  unsigned idle_ = 0;
};

Error with_call(const std::string& call, const Error& fault) {
  ErrorOrigin origin = fault.origin();
  origin.call = call;
  return {fault.code(), fmt::format("{}: {}", call, fault.what()), std::move(origin)};
}

}  // namespace

Group::Group(std::shared_ptr<Runtime> runtime, MPI_Comm comm, int rank, std::vector<MemberInfo> members)
    : runtime_(std::move(runtime)),
      members_(std::move(members)),
      place_{MPI_COMM_NULL, rank, static_cast<int>(members_.size())} {
  if (place_.size == 1) return;
  const Gate::Pass pass = runtime_->gate().enter();
  control_ = Comm::duplicate(comm);
  data_ = Comm::duplicate(comm);
  message_channel_ = Comm::duplicate(comm);
  place_.comm = data_.get();
  agreement_.emplace(control_.get(), place_.rank, place_.size, outbox_);
  notices_.emplace(control_.get(), place_.rank, place_.size, outbox_);
}

Group::~Group() {
  try {
    complete_leftovers();
  } catch (const std::exception&) {
    memory_in_use_ = true;  // MPI cannot be called any more, or from this thread
  }
  // MPI may still use these, or the other members have reasons not to free theirs.
  if (failure_ || memory_in_use_) {
    outbox_.leak();
    control_.leak();
    data_.leak();
    message_channel_.leak();
  }
}

void Group::complete_leftovers() {
  const auto idle = [this] { return collectives_.empty() && messages_.empty() && outbox_.empty(); };
  if (idle()) return;
  if (finalized()) {
    memory_in_use_ = true;
    return;
  }
  if (std::uncaught_exceptions() > 0 && !failure_) {
    // This member will not get to the calls that the others make, so waiting could be in vain.
    abort(Aborted("member {} left the communicator because of an error, with calls in flight", place_.rank));
  }
  Backoff backoff;
  const Deadline deadline = Deadline::after(failure_ ? 1s : 3600s);
  while (!idle() && !deadline.expired()) {
    const Gate::Pass pass = runtime_->gate().try_enter();
    if (!pass || !progress(true)) backoff.pause(true);
  }
  if (idle()) return;
  memory_in_use_ = true;
  fail_all(Aborted("the communicator is gone"));
}

std::shared_ptr<Operation> Group::start(const CollectiveCall& call, const Deadline& deadline) {
  const Gate::Pass pass = runtime_->gate().enter();
  require_usable(call);
  require_countable(call, place_.size);
  if (call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReceive) {
    const Place place{message_channel_.get(), place_.rank, place_.size};
    std::shared_ptr<Message> message = make_message(place, members_, call, next_message_++, deadline);
    messages_.start(message);
    return message;
  }
  auto collective = std::make_shared<Collective>(call, next_sequence_++, deadline);
  if (place_.size == 1) {
    run_alone(collective->call());
    collective->finish();
    return collective;
  }
  if (place_.rank != 0) collective->submit(*agreement_, place_);
  collectives_.push_back(collective);
  return collective;
}

void Group::require_usable(const CollectiveCall& call) {
  if (const Error* fault = runtime_->fault(); fault != nullptr && !failure_) {
    fail_all(with_call(fmt::format("{} #{}", to_string(call.kind), next_sequence_), *fault));
  }
  if (failure_) throw_error(failure_->code(), failure_->what(), failure_->origin());
}

void Group::wait(const Operation& operation) {
  Backoff backoff;
  for (unsigned polls = 0; !operation.finished(); ++polls) {
    bool moved = false;
    bool may_nap = true;
    if (const Gate::Pass pass = runtime_->gate().try_enter()) {
      moved = progress(polls % kPollsPerLook == 0);
      may_nap = operation.waits_for_arrival();
    }
    if (moved)
      backoff.reset();
    else
      backoff.pause(may_nap);
  }
  operation.require_success();
}

bool Group::done(const Operation& operation) noexcept {
  if (operation.finished()) return true;
  try {
    const Gate::Pass pass = runtime_->gate().try_enter();
    if (pass) progress(true);
    return operation.finished();
  } catch (const std::exception&) {
    return true;  // wait() will not block either, but throw
  }
}

void Group::abort(const Error& error) {
  const Gate::Pass pass = runtime_->gate().enter();
  if (failure_) return;
  fail_from(collectives_.empty() ? next_sequence_ : collectives_.front()->sequence(), error, true);
}

bool Group::progress(bool thorough) {
  if (place_.size == 1) return false;
  try {
    if (const Error* fault = runtime_->fault(); fault != nullptr) {
      if (collectives_.empty() && messages_.empty()) return false;
      fail_all(collectives_.empty() ? *fault : with_call(collectives_.front()->name(), *fault));
      return true;
    }
    bool moved = advance_collectives();
    if (!messages_.empty()) moved |= messages_.advance();
    if (!outbox_.empty()) moved |= outbox_.advance();
    if (thorough) look_around();
    return moved;
  } catch (const Error& error) {  // MPI itself failed, or memory is short
    fail_from(0, error, true);
  } catch (const std::bad_alloc&) {
    fail_from(0, Unavailable("member {} is out of memory", place_.rank), true);
  }
  return true;
}

bool Group::advance_collectives() {
  bool moved = false;
  while (const std::shared_ptr<Collective> next = next_to_settle()) {
    if (!next->can_be_settled(*agreement_, place_)) break;
    moved = true;
    // Member 0 must not consent to what the others have given up while it was away.
    if (place_.rank == 0) read_notices();
    if (next->finished()) break;
    try {
      next->settle(*agreement_, place_, runtime_->operators(), members_);
    } catch (const InvalidArgument& mismatch) {
      fail_from(next->sequence(), mismatch, true);
    }
  }
  for (const std::shared_ptr<Collective>& collective : collectives_) {
    if (collective->agreed() && !collective->finished()) moved |= collective->advance();
  }
  std::erase_if(collectives_, [](const auto& collective) { return collective->finished(); });
  return moved;
}

std::shared_ptr<Collective> Group::next_to_settle() const {
  const auto found = std::find_if(collectives_.begin(), collectives_.end(), [](const auto& collective) {
    return !collective->agreed() && !collective->finished();
  });
  return found == collectives_.end() ? nullptr : *found;
}

void Group::read_notices() {
  while (const std::optional<Notice> notice = notices_->receive()) heed(*notice);
}

void Group::look_around() {
  read_notices();
  check_deadlines();
}

void Group::heed(const Notice& notice) {
  switch (notice.kind) {
    case NoticeKind::kFailed:
      if (notice.error) fail_from(notice.sequence, *notice.error, false);
      break;
    case NoticeKind::kLate: told_late_ = notice.sequence; break;
    case NoticeKind::kAsk:
      notices_->send({NoticeKind::kPresent, notice.sequence, std::nullopt}, notice.from);
      break;
    case NoticeKind::kPresent:
      if (inquest_ && inquest_->sequence == notice.sequence) {
        inquest_->present[static_cast<std::size_t>(notice.from)] = true;
      }
      break;
  }
}

void Group::check_deadlines() {
  if (inquest_ && Clock::now() >= inquest_->ends_at) close_inquest();
  if (const std::shared_ptr<Message> late = messages_.expired()) {
    const int peer = late->call().root;
    return fail_from(next_sequence_, missing(*late, {&peer, 1}), true);
  }
  if (collectives_.empty()) return;
  const Collective& late = *collectives_.front();
  // The first deadline to pass counts, whoever's it is.
  if (!late.deadline().expired() && told_late_ != late.sequence()) return;
  if (place_.rank == 0) return deadline_passed(late);
  // Member 0 knows who is missing; only if it says nothing, it is missing itself.
  if (reported_late_ != late.sequence()) {
    reported_late_ = late.sequence();
    notices_->send({NoticeKind::kLate, late.sequence(), std::nullopt}, 0);
  }
  if (!late.deadline().plus(kPatience).expired()) return;
  const int chief = 0;
  fail_from(late.sequence(), missing(late, {&chief, 1}), true);
}

void Group::deadline_passed(const Collective& collective) {
  if (!collective.agreed()) {
    const std::vector<int> absent = agreement_->missing();
    if (!absent.empty()) fail_from(collective.sequence(), missing(collective, absent), true);
    return;
  }
  if (inquest_ && inquest_->sequence == collective.sequence()) return;
  inquest_ = {collective.sequence(), Clock::now() + kTimeToAnswer, std::vector<bool>(members_.size())};
  inquest_->present[0] = true;
  notices_->send_to_all({NoticeKind::kAsk, collective.sequence(), std::nullopt});
}

void Group::close_inquest() {
  const Inquest inquest = *std::exchange(inquest_, std::nullopt);
  const Collective* collective = find(inquest.sequence);
  if (collective == nullptr) return;  // it has ended after all
  std::vector<std::string> silent;
  int first = -1;
  for (int member = 0; member < place_.size; ++member) {
    if (inquest.present[static_cast<std::size_t>(member)]) continue;
    if (first < 0) first = member;
    silent.push_back(describe(member, members_[static_cast<std::size_t>(member)]));
  }
  const std::string who =
      silent.empty() ? "all members answer, but no data moves"
                     : fmt::format("no answer from: {}. They are stopped, or have already left this call",
                                   fmt::join(silent, ", "));
  const std::string host = first < 0 ? std::string() : members_[static_cast<std::size_t>(first)].host;
  fail_from(collective->sequence(),
            DeadlineExceeded(ErrorOrigin{collective->name(), first, host},
                             fmt::format("{}: deadline passed during the transfer of {}; {}.",
                                         collective->name(), describe(collective->call()), who)),
            true);
}

const Collective* Group::find(std::uint64_t sequence) const {
  const auto found = std::find_if(collectives_.begin(), collectives_.end(),
                                  [&](const auto& collective) { return collective->sequence() == sequence; });
  return found == collectives_.end() ? nullptr : found->get();
}

Error Group::missing(const Operation& operation, std::span<const int> members) const {
  const int first = members.front();
  return {ErrorCode::kDeadlineExceeded,
          explain_missing(operation.call(), operation.sequence(), members, members_,
                          timeout_of(operation.call()).count()),
          ErrorOrigin{operation.name(), first, members_[static_cast<std::size_t>(first)].host}};
}

std::chrono::duration<double> Group::timeout_of(const CollectiveCall& call) const {
  if (call.timeout_seconds) return std::chrono::duration<double>(*call.timeout_seconds);
  return config().collective_timeout();
}

void Group::fail_from(std::uint64_t from, const Error& error, bool tell) {
  if (!failure_) failure_.emplace(error);
  if (const auto next = next_to_settle(); next && next->sequence() >= from) agreement_->withdraw();
  for (const std::shared_ptr<Collective>& collective : collectives_) {
    if (collective->sequence() < from || collective->finished()) continue;
    collective->fail(error);
    if (!collective->pending_in_mpi()) continue;
    memory_in_use_ = true;
    keep_for_ever(collective);
  }
  std::erase_if(collectives_, [](const auto& collective) { return collective->finished(); });
  memory_in_use_ |= messages_.fail_all(error);
  if (tell && notices_) notices_->send_to_all({NoticeKind::kFailed, from, error});
}

}  // namespace cohort::mpi
