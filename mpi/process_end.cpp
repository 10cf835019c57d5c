#include "process_end.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "base/explanation.h"
#include "base/quiet_thread.h"
#include "base/system_calls.h"
#include "calls.h"

namespace cohort::mpi {
namespace {

/// MPI_Abort was seen to hang for a minute when the network to the launcher is cut.
constexpr auto kTimeToAbort = std::chrono::seconds(2);
constexpr auto kTimeToHear = std::chrono::milliseconds(200);
/// A watch on a busy core needs its time to notice, too.
constexpr auto kTimeForTheReason = std::chrono::milliseconds(500);

extern "C" void carry_on(int) {}

/// MPI writes to connections whose other end may have died. The error of that write ends in a
/// message, the signal in silence. A handler, unlike SIG_IGN, is not inherited by other programs.
void survive_broken_pipes() {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = carry_on;
  ::sigaction(SIGPIPE, &action, nullptr);
}

void end_by_broken_pipes_again() {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == carry_on)
    ::signal(SIGPIPE, SIG_DFL);
}

std::string text_of_current_exception() {
  const std::exception_ptr current = std::current_exception();
  if (!current) return "std::terminate was called";
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

/// Where its code is explained; empty where it has none.
std::string where_current_exception_explained() {
  const std::exception_ptr current = std::current_exception();
  if (!current) return {};
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& exception) {
    return where_explained(exception);
  } catch (...) {
    return {};
  }
}

/// Whether the current exception is one that members and MPI throw where a worker is lost.
bool may_follow_from_loss() {
  const std::exception_ptr current = std::current_exception();
  if (!current) return false;
  try {
    std::rethrow_exception(current);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kAborted ||
           error.code() == ErrorCode::kInternal;
  } catch (...) {
    return false;
  }
}

}  // namespace

ProcessEnd& ProcessEnd::instance() {
  static auto& instance = *new ProcessEnd;  // exit hooks may come after destructors of statics
  return instance;
}

// Exit hooks run before the destructors of statics that are older than they, one of which may hold the
// Session; this runs after all of them.
namespace {
[[gnu::destructor, gnu::used]] void end_unless_left() { ProcessEnd::on_unload(); }
}  // namespace

bool ProcessEnd::is_copy() const noexcept { return process_ != ::getpid(); }

void ProcessEnd::take_over() {
  const std::lock_guard lock(mutex_);
  process_ = ::getpid();
  if (const std::terminate_handler current = std::get_terminate(); current != on_terminate) {
    before_ = current;
    std::set_terminate(on_terminate);
  }
  survive_broken_pipes();
  // Hooks run in reverse order: this one before those that MPI registers when it starts later, and
  // before what was there earlier.
  if (!std::exchange(hooked_, true)) std::atexit(on_exit);
}

void ProcessEnd::set_alone() {
  const std::lock_guard lock(mutex_);
  alone_ = true;
}

void ProcessEnd::set_worker(const WorkerInfo& worker, PeerWatch* watch) {
  const std::lock_guard lock(mutex_);
  name_ = describe(worker);
  watch_ = watch;
}

void ProcessEnd::forget_worker() {
  const std::lock_guard lock(mutex_);
  name_.clear();
  watch_ = nullptr;
}

void ProcessEnd::give_back() {
  forget_worker();
  const std::lock_guard lock(mutex_);
  if (std::get_terminate() == on_terminate) std::set_terminate(before_);
  end_by_broken_pipes_again();
  alone_ = false;
}

void ProcessEnd::abandon(std::shared_ptr<void> kept) {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  kept_ = std::move(kept);
}

void ProcessEnd::on_terminate() {
  static std::atomic<bool> entered{false};
  if (entered.exchange(true)) {
    while (true) ::pause();  // another thread was first and ends the process
  }
  instance().fail(text_of_current_exception());
}

void ProcessEnd::fail(const std::string& text) {
  if (is_copy()) {
    write_line(fmt::format("cohort: a process that {} has forked, pid {}, failed: {}",
                           name_.empty() ? "the program" : name_, ::getpid(), text));
    ::_exit(1);
  }
  // For good: another thread that ends its Session meanwhile waits for the end of the process.
  const std::lock_guard lock(mutex_);
  const std::string explained = where_current_exception_explained();
  write_line(name_.empty() ? fmt::format("cohort: {}{}", text, explained)
                           : fmt::format("cohort: {} failed: {}{}", name_, text, explained));
  // Whoever waits for a lost worker may hear of it earlier from another member, or from MPI; but the watch
  // decides who is blamed, and the exit status.
  if (watch_ != nullptr && may_follow_from_loss())
    static_cast<void>(watch_->record()->wait_for_fault(kTimeForTheReason));
  if (watch_ != nullptr) {
    watch_->mute();
    watch_->announce_failure(text);
  }
  end_job();
}

void ProcessEnd::on_exit() {
  if (instance().abandoned_ && !instance().is_copy()) end_job();
}

void ProcessEnd::on_unload() {
  ProcessEnd& self = instance();
  if (self.name_.empty() || self.is_copy()) return;
  if (self.abandoned_) end_job();  // its Session was a static object's, and has said why
  const std::string text =
      "the program called exit() while its Session lived; leave main by return, or by an exception";
  write_line(fmt::format("cohort: {} ends: {}", self.name_, text));
  if (self.watch_ != nullptr) {
    self.watch_->mute();
    self.watch_->announce_failure(text);
  }
  end_job();
}

void ProcessEnd::end_job() {
  PeerWatch* const watch = instance().watch_;
  const int status = exit_status_after(watch != nullptr ? watch->fault() : nullptr);
  start_quiet_thread([status] {
    std::this_thread::sleep_for(kTimeToAbort);
    ::_exit(status);
  }).detach();
  std::fflush(nullptr);  // MPI_Abort does not
  // The launcher ends the others at once when it hears of the abort; they should know why by then.
  if (watch != nullptr) std::this_thread::sleep_for(kTimeToHear);
  if (initialized() && !finalized() && !instance().alone_) abort(MPI_COMM_WORLD, status);
  ::_exit(status);
}

void write_line(const std::string& line) {
  const std::string text = line + '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

HangWatchdog::HangWatchdog(std::chrono::duration<double> limit, const char* place) {
  if (limit.count() <= 0) return;
  thread_ = start_quiet_thread([limit, place](const std::stop_token& all_came) {
    // In short steps, since a job that was suspended has not hung meanwhile.
    for (double left = limit.count(); left > 0; left -= 1)
      if (!sleep_unless_stopped(std::chrono::duration<double>(std::min(left, 1.0)), all_came)) return;
    write_line(fmt::format(
        "cohort: host {}, pid {}: the workers have not come together within {:.4g} s "
        "(a communicator's timeout_seconds, or COHORT_COLLECTIVE_TIMEOUT_SECONDS). One of them has "
        "died, failed or hangs {}",
        host_name(), ::getpid(), limit.count(), place));
    ::_exit(1);
  });
}

}  // namespace cohort::mpi
