#include <cohort/collective/thread_communicator.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <unistd.h>

#include <cohort/base/error.h>

#include "local_execution.h"

namespace cohort {
namespace {

/// Where all members meet for one collective. Guarded by the group's mutex, but for the
/// calls while `executing`, when they belong to the member that arrived last.
struct Meeting {
  explicit Meeting(std::size_t members) : calls(members), arrived(members, false) {}
  std::vector<CollectiveCall> calls;
  std::vector<bool> arrived;
  std::size_t count = 0;
  bool executing = false;
  bool done = false;
};

/// A send or a receive that waits for its counterpart.
struct Message {
  CollectiveCall call;
  int rank = 0;
  bool done = false;
  std::optional<Error> error;
};

bool match(const Message& posted, const CollectiveCall& call, int rank) {
  return posted.rank == call.root && posted.call.root == rank && posted.call.tag == call.tag &&
         posted.call.kind != call.kind;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

class ThreadGroup : public std::enable_shared_from_this<ThreadGroup> {
 public:
  ThreadGroup(std::size_t members, const CommunicationOptions& options)
      : members_(members, MemberInfo{0, host_name()}), options_(options) {}

  [[nodiscard]] const std::vector<MemberInfo>& members() const { return members_; }

  Work start_collective(int rank, std::uint64_t sequence, CollectiveCall call);
  Work start_message(int rank, CollectiveCall call);
  void fail(const Error& error);

 private:
  class CollectiveWork;
  class MessageWork;

  void finish(const std::shared_ptr<Meeting>& meeting, std::uint64_t sequence,
              std::unique_lock<std::mutex>& lock);
  void fail_locked(const Error& error);
  void deliver(Message& one, Message& other);
  [[nodiscard]] Error missing_error(const Meeting& meeting, int rank, std::uint64_t sequence,
                                    double waited) const;

  std::vector<MemberInfo> members_;
  CommunicationOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<Meeting>> meetings_;
  std::list<std::shared_ptr<Message>> messages_;
  std::optional<Error> failure_;  // the first one; the group is unusable once it is set
};

[[noreturn]] void rethrow(const Error& error) { throw_error(error.code(), error.what(), error.origin()); }

double seconds_since(Deadline::Clock::time_point start) {
  return std::chrono::duration<double>(Deadline::Clock::now() - start).count();
}

class ThreadGroup::CollectiveWork final : public Work::State {
 public:
  CollectiveWork(std::shared_ptr<ThreadGroup> group, std::shared_ptr<Meeting> meeting, int rank,
                 std::uint64_t sequence)
      : group_(std::move(group)), meeting_(std::move(meeting)), rank_(rank), sequence_(sequence) {}

  void wait() override {
    std::unique_lock lock(group_->mutex_);
    // While the last member executes it reads and writes our buffers: then there is nothing to
    // wait for but its end, whatever happened meanwhile.
    const auto ended = [&] { return meeting_->done || (group_->failure_ && !meeting_->executing); };
    if (deadline_.is_never()) {
      group_->changed_.wait(lock, ended);
    } else if (!group_->changed_.wait_until(lock, deadline_.at(), ended)) {
      if (!meeting_->executing) {
        group_->fail_locked(group_->missing_error(*meeting_, rank_, sequence_, seconds_since(started_)));
      } else {
        group_->changed_.wait(lock, ended);
      }
    }
    if (!meeting_->done) rethrow(*group_->failure_);
  }

  bool done() noexcept override {
    const std::lock_guard lock(group_->mutex_);
    return meeting_->done || ((group_->failure_ || deadline_.expired()) && !meeting_->executing);
  }

 private:
  std::shared_ptr<ThreadGroup> group_;
  std::shared_ptr<Meeting> meeting_;
  int rank_;
  std::uint64_t sequence_;
  Deadline::Clock::time_point started_ = Deadline::Clock::now();
  Deadline deadline_ = group_->options_.deadline();
};

class ThreadGroup::MessageWork final : public Work::State {
 public:
  MessageWork(std::shared_ptr<ThreadGroup> group, std::shared_ptr<Message> message)
      : group_(std::move(group)), message_(std::move(message)) {}

  void wait() override {
    std::unique_lock lock(group_->mutex_);
    const auto ended = [&] { return message_->done || group_->failure_; };
    if (deadline_.is_never()) {
      group_->changed_.wait(lock, ended);
    } else if (!group_->changed_.wait_until(lock, deadline_.at(), ended)) {
      group_->messages_.remove(message_);  // its buffer is the caller's again
      const int missing[] = {message_->call.root};
      throw DeadlineExceeded(
          {std::string(to_string(message_->call.kind)), message_->call.root, {}},
          explain_missing(message_->call, 0, missing, group_->members_, seconds_since(started_)));
    }
    if (message_->error) rethrow(*message_->error);
    if (!message_->done) rethrow(*group_->failure_);
  }

  bool done() noexcept override {
    const std::lock_guard lock(group_->mutex_);
    return message_->done || group_->failure_ || deadline_.expired();
  }

 private:
  std::shared_ptr<ThreadGroup> group_;
  std::shared_ptr<Message> message_;
  Deadline::Clock::time_point started_ = Deadline::Clock::now();
  Deadline deadline_ = group_->options_.deadline();
};

Work ThreadGroup::start_collective(int rank, std::uint64_t sequence, CollectiveCall call) {
  const auto member = static_cast<std::size_t>(rank);
  std::unique_lock lock(mutex_);
  if (failure_) rethrow(*failure_);
  std::shared_ptr<Meeting>& slot = meetings_[sequence];
  if (slot == nullptr) slot = std::make_shared<Meeting>(members_.size());
  const std::shared_ptr<Meeting> meeting = slot;
  meeting->calls[member] = std::move(call);
  meeting->arrived[member] = true;
  auto state = std::make_shared<CollectiveWork>(shared_from_this(), meeting, rank, sequence);
  if (++meeting->count == members_.size()) finish(meeting, sequence, lock);
  return Work(std::move(state));
}

void ThreadGroup::finish(const std::shared_ptr<Meeting>& meeting, std::uint64_t sequence,
                         std::unique_lock<std::mutex>& lock) {
  meetings_.erase(sequence);
  std::vector<CallSignature> signatures;
  for (const CollectiveCall& call : meeting->calls) signatures.push_back(signature(call, sequence));
  int odd = -1;
  if (const auto mismatch = explain_mismatch(signatures, members_, odd)) {
    return fail_locked(InvalidArgument(
        {fmt::format("{} #{}", to_string(meeting->calls.front().kind), sequence), odd, members_.front().host},
        *mismatch));
  }
  meeting->executing = true;
  lock.unlock();
  std::optional<Error> error;
  try {
    execute_locally(meeting->calls);
  } catch (const std::exception& failure) {
    error = Unavailable("{} #{} could not be carried out: {}", to_string(meeting->calls.front().kind),
                        sequence, failure.what());
  }
  lock.lock();
  meeting->executing = false;
  if (error) return fail_locked(*error);
  meeting->done = true;
  meeting->calls.clear();
  changed_.notify_all();
}

Work ThreadGroup::start_message(int rank, CollectiveCall call) {
  const std::lock_guard lock(mutex_);
  if (failure_) rethrow(*failure_);
  auto message = std::make_shared<Message>(Message{std::move(call), rank, false, std::nullopt});
  const auto counterpart = std::find_if(messages_.begin(), messages_.end(), [&](const auto& posted) {
    return match(*posted, message->call, rank);
  });
  if (counterpart == messages_.end()) {
    messages_.push_back(message);
  } else {
    deliver(*message, **counterpart);
    messages_.erase(counterpart);
    changed_.notify_all();
  }
  return Work(std::make_shared<MessageWork>(shared_from_this(), std::move(message)));
}

void ThreadGroup::deliver(Message& one, Message& other) {
  Message& sent = one.call.kind == CollectiveKind::kSend ? one : other;
  Message& received = one.call.kind == CollectiveKind::kSend ? other : one;
  if (sent.call.dtype != received.call.dtype || sent.call.elements != received.call.elements) {
    received.error =
        InvalidArgument("{} called {}, but the message is {}: dtype and elements must agree",
                        describe(received.rank, members_[static_cast<std::size_t>(received.rank)]),
                        describe(received.call), describe(sent.call));
  } else if (sent.call.elements > 0) {
    std::memcpy(received.call.output, sent.call.input, sent.call.elements * size_of(sent.call.dtype));
  }
  sent.done = received.done = true;
}

void ThreadGroup::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  fail_locked(error);
}

void ThreadGroup::fail_locked(const Error& error) {
  if (!failure_) failure_ = error;
  changed_.notify_all();
}

Error ThreadGroup::missing_error(const Meeting& meeting, int rank, std::uint64_t sequence,
                                 double waited) const {
  std::vector<int> missing;
  for (std::size_t member = 0; member < meeting.arrived.size(); ++member) {
    if (!meeting.arrived[member]) missing.push_back(static_cast<int>(member));
  }
  const CollectiveCall& call = meeting.calls[static_cast<std::size_t>(rank)];
  return DeadlineExceeded(
      {fmt::format("{} #{}", to_string(call.kind), sequence), missing.front(), members_.front().host},
      explain_missing(call, sequence, missing, members_, waited));
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, std::shared_ptr<ThreadGroup> group)
      : Communicator(rank, group->members()), group_(std::move(group)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "threads"; }

  void abort(const Error& error) override { group_->fail(error); }

 private:
  Work start(CollectiveCall call) override {
    if (call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReceive) {
      return group_->start_message(rank(), std::move(call));
    }
    return group_->start_collective(rank(), sequence_++, std::move(call));
  }

  std::shared_ptr<ThreadGroup> group_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int members,
                                                                     const CommunicationOptions& options) {
  if (members < 1) throw InvalidArgument("a group needs at least one member, not {}", members);
  static_cast<void>(options.deadline());  // a wrong time-out is reported here, not by the first collective
  const auto group = std::make_shared<ThreadGroup>(static_cast<std::size_t>(members), options);
  std::vector<std::unique_ptr<Communicator>> seats;
  seats.reserve(static_cast<std::size_t>(members));
  for (int rank = 0; rank < members; ++rank)
    seats.push_back(std::make_unique<ThreadCommunicator>(rank, group));
  return seats;
}

}  // namespace cohort
