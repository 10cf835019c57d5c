#include "progress.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include <cohort/base/config.h>
#include <cohort/base/log.h>

#include "base/quiet_thread.h"
#include "node_communicator.h"
#include "waiting.h"

namespace cohort::node {
namespace {

/// The kernel's sched_attr; its header cannot be included beside the C library's.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  ///< the slice
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

/// Asks the system to run this thread often and briefly: where it shares a core with a thread that computes,
/// it then gets the core within 0.1 ms, and not after the other one's slice of some 3 ms. Linux does so from
/// 6.12 on. Threads with real-time priority keep that.
void ask_for_short_slices() noexcept {
  if (::sched_getscheduler(0) != SCHED_OTHER) return;
  constexpr std::uint64_t kShortestSlice = 100'000;
  const SchedulingAttributes attributes{
      .nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid))),
      .runtime_ns = kShortestSlice};
  static_cast<void>(::syscall(SYS_sched_setattr, 0, &attributes, 0));
}

}  // namespace

// Never destroyed, for static objects may start calls to the very end; only its thread is ended.
Progress& Progress::of_this_process() {
  static Progress& progress = *new Progress;
  struct End {
    ~End() { progress.end(); }
  };
  static const End end;
  return progress;
}

// The settings are read by the thread to its end, so they are made before it and destroyed after it.
Progress::Progress() : process_(::getpid()) {
  static_cast<void>(config());
  try {
    thread_ = start_quiet_thread([this] { serve(); });
  } catch (const std::system_error& error) {
    logging::warning("no progress thread ({}): asynchronous calls move on only while the program waits",
                     error.what());
  }
}

void Progress::end() {
  if (!has_thread() || process_ != ::getpid()) return;  // a forked child has no such thread
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Progress::attend(std::shared_ptr<NodeCommunicatorImpl> impl) {
  if (!has_thread()) return;
  {
    const std::lock_guard lock(mutex_);
    arrivals_.push_back(std::move(impl));
  }
  changed_.notify_one();
}

void Progress::serve() {
  ask_for_short_slices();
  std::vector<std::shared_ptr<NodeCommunicatorImpl>> members;
  Waiting waiting(true);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (members.empty()) changed_.wait(lock, [&] { return ending_ || !arrivals_.empty(); });
      if (ending_) return;
      if (!arrivals_.empty()) {
        take_arrivals(members);
        waiting = Waiting(true);  // what has just begun is worth a look at short intervals
      }
    }
    if (advance(members)) {
      waiting = Waiting(true);
    } else {
      static_cast<void>(waiting.is_time_to_check());
      waiting.give_way();
    }
  }
}

void Progress::take_arrivals(std::vector<std::shared_ptr<NodeCommunicatorImpl>>& members) {
  for (std::shared_ptr<NodeCommunicatorImpl>& arrival : arrivals_) {
    // One that was idle only for a moment is still in the list.
    if (std::ranges::find(members, arrival) == members.end()) members.push_back(std::move(arrival));
  }
  arrivals_.clear();
}

bool Progress::advance(std::vector<std::shared_ptr<NodeCommunicatorImpl>>& members) {
  bool moved = false;
  for (const std::shared_ptr<NodeCommunicatorImpl>& member : members) {
    if (!member->is_waited_for()) moved |= member->try_advance();
  }
  return std::erase_if(members, [](const auto& member) { return member->idle(); }) > 0 || moved;
}

void OwnCommunicators::add(NodeCommunicatorImpl& communicator) {
  const std::lock_guard lock(mutex_);
  communicators_.push_back(&communicator);
}

void OwnCommunicators::remove(const NodeCommunicatorImpl& communicator) {
  const std::lock_guard lock(mutex_);
  std::erase(communicators_, &communicator);
}

void OwnCommunicators::answer_questions() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !next_look_.expired()) return;
  bool may_answer = false;
  for (NodeCommunicatorImpl* const communicator : communicators_)
    may_answer |= communicator->answer_questions();
  if (may_answer) next_look_ = Deadline::after(kBetweenLooks);
}

}  // namespace cohort::node
