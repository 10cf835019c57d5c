#include "group.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>

#include "meeting_guard.h"

namespace cohort::mpi {
namespace {

using namespace std::chrono_literals;

/// How long after its own deadline a member waits for member 0 to say who is missing.
constexpr auto kTimeToConclude = 2s;
/// How long member 0, or who waits for a message, looks for the missing after the deadline.
constexpr auto kTimeToShowUp = 200ms;
/// How long member 0 waits for answers to its question who is here.
constexpr auto kTimeToAnswer = 500ms;
/// Between two looks at the deadlines and the notices. Polls are no measure: each may give the core away.
constexpr auto kBetweenLooks = 1ms;

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

Group::Group(std::shared_ptr<Runtime> runtime, MPI_Comm comm, int rank, std::vector<MemberInfo> members,
             CommunicationOptions options)
    : runtime_(std::move(runtime)),
      members_(std::move(members)),
      options_(options),
      place_{MPI_COMM_NULL, rank, static_cast<int>(members_.size()), options.reproducible} {
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
  // This member will not get to the calls that the others make: they would wait for it in vain.
  const bool gives_up = std::uncaught_exceptions() > 0 && place_.size > 1 && !failure_;
  if (idle() && !gives_up) return;
  if (finalized()) {
    memory_in_use_ = true;
    return;
  }
  if (gives_up) {
    const MemberInfo& own = members_[static_cast<std::size_t>(place_.rank)];
    abort(Aborted(ErrorOrigin{"", place_.rank, own.host},
                  fmt::format("{} left the communicator because of an error{}", describe(place_.rank, own),
                              idle() ? "" : ", with calls in flight")));
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

std::shared_ptr<Operation> Group::start(const CollectiveCall& call) {
  const Deadline deadline = Deadline::after(timeout(call));
  const Gate::Pass pass = runtime_->gate().enter();
  require_usable(call);
  require_countable(call, place_.size);
  if (call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReceive) {
    const Place place{.comm = message_channel_.get(), .rank = place_.rank, .size = place_.size};
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
    fail_all(with_call(fmt::format("{} #{}", to_string(call.as_called().kind), next_sequence_), *fault));
  }
  if (failure_) throw_error(failure_->code(), failure_->what(), failure_->origin());
}

void Group::wait(const Operation& operation) {
  Backoff backoff;
  Clock::time_point next_look = Clock::now();
  while (!operation.finished()) {
    bool moved = false;
    bool may_nap = true;
    if (const Gate::Pass pass = runtime_->gate().try_enter()) {
      const Clock::time_point now = Clock::now();
      const bool looks = now >= next_look;
      if (looks) next_look = now + kBetweenLooks;
      moved = progress(looks);
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

std::optional<Error> Group::failure() {
  const Gate::Pass pass = runtime_->gate().try_enter();
  if (!pass) return std::nullopt;  // who is inside finds out
  progress(true);
  if (const Error* fault = runtime_->fault(); fault != nullptr && !failure_) return *fault;
  return failure_;
}

std::shared_ptr<Group> Group::split(std::span<const int> ranks, int own,
                                    std::vector<MemberInfo> members) const {
  if (ranks.size() == 1)
    return std::make_shared<Group>(runtime_, MPI_COMM_NULL, own, std::move(members), options_);
  const MeetingGuard guard(timeout(), "in a split of a communicator");
  Comm comm;
  {
    const Gate::Pass pass = runtime_->gate().enter();
    comm = Comm::of_members(control_.get(), ranks);
  }
  auto group = std::make_shared<Group>(runtime_, comm.get(), own, std::move(members), options_);
  const Gate::Pass pass = runtime_->gate().enter();
  comm = Comm();
  return group;
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
  const auto will_start_more = [](const auto& collective) { return collective->will_start_more(); };
  while (const std::shared_ptr<Collective> next = next_to_settle()) {
    // Transfers start in the same order on all members.
    if (std::ranges::any_of(collectives_, will_start_more)) break;
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
  if (inquest_ && inquest_->patience.is_over()) close_inquest();
  if (const std::shared_ptr<Message> late = messages_.expired()) {
    if (!had_its_chance(*late, true, kTimeToShowUp)) return;
    const int peer = late->call().root;
    return fail_from(next_sequence_, missing(*late, {&peer, 1}), true);
  }
  if (collectives_.empty()) return;
  const Collective& late = *collectives_.front();
  // The first deadline to pass counts, whoever's it is.
  if (!late.deadline().expired() && told_late_ != late.sequence()) return;
  if (place_.rank == 0) {
    if (had_its_chance(late, false, kTimeToShowUp)) deadline_passed(late);
    return;
  }
  // Member 0 knows who is missing; only if it says nothing, it is missing itself.
  if (reported_late_ != late.sequence()) {
    reported_late_ = late.sequence();
    notices_->send({NoticeKind::kLate, late.sequence(), std::nullopt}, 0);
  }
  if (!had_its_chance(late, false, kTimeToConclude)) return;
  const int chief = 0;
  fail_from(late.sequence(), missing(late, {&chief, 1}), true);
}

bool Group::had_its_chance(const Operation& late, bool is_message, Clock::duration time) {
  const bool is_known =
      last_chance_ && last_chance_->sequence == late.sequence() && last_chance_->is_message == is_message;
  if (!is_known) last_chance_ = {late.sequence(), is_message, Patience(time)};
  return last_chance_->patience.is_over();
}

void Group::deadline_passed(const Collective& collective) {
  if (!collective.agreed()) {
    const std::vector<int> absent = agreement_->missing();
    if (!absent.empty()) fail_from(collective.sequence(), missing(collective, absent), true);
    return;
  }
  if (inquest_ && inquest_->sequence == collective.sequence()) return;
  inquest_ = {collective.sequence(), Patience(kTimeToAnswer), std::vector<bool>(members_.size())};
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
  fail_from(
      collective->sequence(),
      DeadlineExceeded(ErrorOrigin{collective->name(), first, host},
                       fmt::format("{}: {} passed during the transfer of {}; {}.", collective->name(),
                                   describe_deadline(collective->call(), timeout(collective->call()).count()),
                                   describe(collective->call()), who)),
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
                          timeout(operation.call()).count()),
          ErrorOrigin{operation.name(), first, members_[static_cast<std::size_t>(first)].host}};
}

std::chrono::duration<double> Group::timeout() const {
  const std::optional<double> set = options_.timeout_seconds;
  return set ? std::chrono::duration<double>(*set) : config().collective_timeout();
}

std::chrono::duration<double> Group::timeout(const CollectiveCall& call) const {
  return call.timeout_seconds ? std::chrono::duration<double>(*call.timeout_seconds) : timeout();
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
