#include "server/supervisor_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <cohort/base/error.h>

namespace cohort::server {

SupervisorWatch::SupervisorWatch(remote::SupervisorLine line,
                                 std::function<void(remote::SupervisorWord)> heard)
    : line_(line), heard_(std::move(heard)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw Unavailable("the system has no eventfd: {}", std::strerror(errno));
  thread_ = std::thread([this] { listen(); });
}

SupervisorWatch::~SupervisorWatch() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_.get(), &one, sizeof one));
  thread_.join();
}

void SupervisorWatch::listen() {
  std::array<pollfd, 2> polled{{{line_.descriptor(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  while (true) {
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[1].revents != 0) return;
    bool any = false;
    while (const auto word = line_.receive()) {
      any = true;
      heard_(*word);
    }
    if (!any) return;  // the supervisor has ended
  }
}

}  // namespace cohort::server
