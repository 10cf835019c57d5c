#include "preemption_notices.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/quiet_thread.h"
#include "base/system_calls.h"
#include "cluster/sockets.h"

namespace cohort::checkpoint {
namespace {

// What the handler touches. It may run on any thread.
std::atomic<int> g_count{0};
std::atomic<int> g_signal{0};
std::atomic<std::int64_t> g_nanoseconds{0};  // of CLOCK_MONOTONIC, which is steady_clock's
std::atomic<pid_t> g_process{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

extern "C" void note_signal(int signal) {
  const int saved = errno;
  if (::getpid() == g_process) {
    std::timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    g_nanoseconds = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    g_signal = signal;
    ++g_count;
  } else {
    // A forked child inherits the handler, but makes no steps.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  errno = saved;
}

struct Handled {
  int users = 0;
  struct sigaction before {};
};
std::mutex g_mutex;
std::array<Handled, NSIG> g_handled;

}  // namespace

PreemptionSignals::PreemptionSignals(std::vector<int> signals)
    : signals_(std::move(signals)), count_at_start_(g_count) {
  const std::lock_guard lock(g_mutex);
  g_process = ::getpid();
  for (std::size_t i = 0; i < signals_.size(); ++i) {
    const int signal = signals_[i];
    struct sigaction ours {};
    ours.sa_handler = note_signal;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    const bool exists = signal > 0 && signal < NSIG;
    Handled before;
    if (!exists || (g_handled[static_cast<std::size_t>(signal)].users == 0 &&
                    ::sigaction(signal, &ours, &before.before) != 0)) {
      const std::string why = exists ? std::strerror(errno) : "there is no such signal";
      release(i);
      throw InvalidArgument("signal {} cannot announce a preemption: {}", signal, why);
    }
    Handled& handled = g_handled[static_cast<std::size_t>(signal)];
    if (handled.users++ == 0) handled.before = before.before;
  }
}

PreemptionSignals::~PreemptionSignals() {
  const std::lock_guard lock(g_mutex);
  release(signals_.size());
}

void PreemptionSignals::release(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Handled& handled = g_handled[static_cast<std::size_t>(signals_[i])];
    if (--handled.users > 0) continue;
    struct sigaction current {};
    // A handler that the program has installed since stays.
    if (::sigaction(signals_[i], nullptr, &current) != 0 || current.sa_handler != note_signal) continue;
    struct sigaction afterwards = handled.before;
    if (ignored_afterwards_) afterwards.sa_handler = SIG_IGN;
    ::sigaction(signals_[i], &afterwards, nullptr);
  }
}

std::optional<ReceivedSignal> PreemptionSignals::received() const {
  if (signals_.empty() || g_count == count_at_start_) return std::nullopt;
  return ReceivedSignal{g_signal,
                        std::chrono::steady_clock::time_point(std::chrono::nanoseconds(g_nanoseconds))};
}

TerminationWatcher::TerminationWatcher(std::function<bool()> function, std::chrono::duration<double> interval)
    : function_(std::move(function)), interval_(interval) {
  if (function_) thread_ = start_program_thread([this](const std::stop_token& stop) { watch(stop); });
}

void TerminationWatcher::watch(const std::stop_token& stop) {
  bool yes = false;
  std::exception_ptr error;
  while (!yes && !error && !stop.stop_requested()) {
    try {
      yes = function_();
    } catch (...) {
      error = std::current_exception();
    }
    if (!yes && !error && !sleep_unless_stopped(interval_, stop)) break;
  }
  {
    const std::lock_guard lock(mutex_);
    if (yes) said_yes_ = std::chrono::steady_clock::now();
    error_ = error;
  }
  function_ = nullptr;  // what it holds is not needed any more
}

std::optional<std::chrono::steady_clock::time_point> TerminationWatcher::said_yes() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return said_yes_;
}

}  // namespace cohort::checkpoint

namespace cohort {
namespace {

/// A program whose output is read, and which is ended when its time is over.
class Inquiry {
 public:
  /// @throws nothing: `failure` says why it does not run.
  Inquiry(std::vector<std::string> command, std::vector<std::string> environment) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      failure_ = std::strerror(errno);
      return;
    }
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const std::vector<char*> arguments = pointers_to(command);
    const std::vector<char*> variables = pointers_to(environment);
    const int status =
        ::posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), variables.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (status == 0) return;
    process_ = -1;
    failure_ = std::strerror(status);
  }
  ~Inquiry() {
    if (output_ >= 0) ::close(output_);
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    uninterrupted([&] { return ::waitpid(process_, nullptr, 0); });
  }
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  /// Empty while nothing has gone wrong.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  /// All that it writes; what there is until the deadline.
  [[nodiscard]] std::string read_all(const Deadline& deadline) {
    std::string text;
    std::array<char, 256> part{};
    while (true) {
      pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
      if (deadline.expired() || !watch::poll_until({&ready, 1}, deadline.at())) {
        failure_ = "no answer in time";
        return text;
      }
      const ssize_t count = uninterrupted([&] { return ::read(output_, part.data(), part.size()); });
      if (count <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  static std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  int output_ = -1;
  pid_t process_ = -1;
  std::string failure_;
};

}  // namespace

std::optional<std::int64_t> ask_slurm_for_end_time(const Environment& variables,
                                                   std::chrono::milliseconds limit) {
  const auto job = variables.find("SLURM_JOB_ID");
  if (job == variables.end()) return std::nullopt;
  // Seconds, whatever zone the clock is in.
  std::vector<std::string> environment{"SLURM_TIME_FORMAT=%s"};
  for (const auto& [name, value] : variables) {
    if (name != "SLURM_TIME_FORMAT") environment.push_back(fmt::format("{}={}", name, value));
  }
  Inquiry squeue({"squeue", "--noheader", "--jobs=" + job->second, "--format=%e"}, std::move(environment));
  std::string text;
  if (squeue.failure().empty()) text = squeue.read_all(Deadline::after(limit));
  std::int64_t seconds = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (status == std::errc() && *end == '\n' && seconds >= 0) return seconds;
  if (!squeue.failure().empty() || text.empty()) {
    logging::warning(
        "when the job's time is over is not known: SLURM_JOB_END_TIME is not set, and squeue says "
        "nothing{}{}; "
        "give TerminationConfig::end_time",
        squeue.failure().empty() ? "" : ": ", squeue.failure());
  }
  return std::nullopt;
}

}  // namespace cohort
