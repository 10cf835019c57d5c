#include "signal_relay.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace cohort::watch {
namespace {

// The handler's state. The pipe stays open for the rest of the process, since a handler may still be running
// on another thread when the relay is destroyed.
struct Pipe {
  int ends[2] = {-1, -1};
  pid_t owner = 0;
};
Pipe g_pipe;
std::atomic<bool> g_in_use{false};
std::atomic<const char*> g_last_words{nullptr};

extern "C" void relay_signal(int signal) {
  const int saved = errno;
  if (::getpid() == g_pipe.owner) {
    // At once: a launcher's SIGKILL may come before the thread that reads the pipe gets a core.
    SignalRelay::speak_last_words();
    const auto byte = static_cast<unsigned char>(signal);
    [[maybe_unused]] const ssize_t written = ::write(g_pipe.ends[1], &byte, 1);
  } else {
    // A forked child inherits the handler, but is not a worker.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  errno = saved;
}

}  // namespace

SignalRelay::SignalRelay() {
  if (g_in_use.exchange(true)) return;
  in_use_ = true;
  if (g_pipe.owner != ::getpid()) {
    if (::pipe2(g_pipe.ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    g_pipe.owner = ::getpid();
  }
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction current {};
    if (::sigaction(kSignals[i], nullptr, &current) != 0 || current.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = relay_signal;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    installed_[i] = ::sigaction(kSignals[i], &ours, nullptr) == 0;
  }
}

SignalRelay::~SignalRelay() {
  if (!in_use_) return;
  g_last_words = nullptr;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction current {};
    if (!installed_[i] || ::sigaction(kSignals[i], nullptr, &current) != 0) continue;
    if (current.sa_handler == relay_signal) ::signal(kSignals[i], SIG_DFL);
  }
  // A signal that came after the last read of the pipe must not be lost.
  const int pending = take();
  g_in_use = false;
  if (pending != 0) end_by(pending);
}

void SignalRelay::set_last_words(const char* line) const noexcept {
  if (in_use_) g_last_words = line;
}

void SignalRelay::speak_last_words() noexcept {
  const char* words = g_last_words.exchange(nullptr);
  if (words == nullptr) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, words, std::strlen(words));
}

int SignalRelay::fd() const noexcept { return in_use_ ? g_pipe.ends[0] : -1; }

int SignalRelay::take() const noexcept {
  unsigned char byte = 0;
  return in_use_ && ::read(g_pipe.ends[0], &byte, 1) == 1 ? byte : 0;
}

void SignalRelay::end_by(int signal) noexcept {
  ::signal(signal, SIG_DFL);
  sigset_t only_this;
  sigemptyset(&only_this);
  sigaddset(&only_this, signal);
  pthread_sigmask(SIG_UNBLOCK, &only_this, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace cohort::watch
