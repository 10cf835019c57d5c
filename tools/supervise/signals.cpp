#include "signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include <cohort/base/error.h>

namespace cohort::supervise {

Signals::Signals() {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD})
    ::sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_BLOCK, &taken, &before_);
  queue_.reset(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!queue_) throw Unavailable("the system does not hand over signals: {}", std::strerror(errno));
}

Signals::~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::vector<int> Signals::wait(std::optional<std::chrono::milliseconds> limit, std::vector<pollfd> others) {
  others.push_back({queue_.get(), POLLIN, 0});
  ::poll(others.data(), others.size(), limit ? static_cast<int>(limit->count()) : -1);
  std::vector<int> signals;
  signalfd_siginfo one{};
  while (::read(queue_.get(), &one, sizeof one) == static_cast<ssize_t>(sizeof one))
    signals.push_back(static_cast<int>(one.ssi_signo));
  return signals;
}

}  // namespace cohort::supervise
