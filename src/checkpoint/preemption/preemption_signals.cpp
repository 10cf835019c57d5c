#include "preemption_signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <utility>

#include <cohort/base/error.h>

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

}  // namespace cohort::checkpoint
