#include "signals.h"

#include <poll.h>
#include <unistd.h>

#include <array>

#include <cohort/base/error.h>

namespace cohort::conformance {
namespace {

constexpr int kLongestWaitMilliseconds = 60'000;

}  // namespace

Signals::Signals() {
  std::array<int, 2> ends{};
  // Without O_CLOEXEC: tasks have both ends under the same numbers.
  if (::pipe(ends.data()) != 0) throw Unavailable("no pipe for signals of tasks");
  input_ = ends[0];
  output_ = ends[1];
}

Signals::~Signals() {
  ::close(input_);
  ::close(output_);
}

void Signals::await(int count) const {
  for (; count > 0; --count) await_signal(input_);
}

void Signals::give(int count) const {
  for (; count > 0; --count) give_signal(output_);
}

void Signals::take_all() const {
  pollfd wanted{.fd = input_, .events = POLLIN, .revents = 0};
  while (::poll(&wanted, 1, 0) == 1) await_signal(input_);
}

void await_signal(int input) {
  pollfd wanted{.fd = input, .events = POLLIN, .revents = 0};
  char byte = 0;
  if (::poll(&wanted, 1, kLongestWaitMilliseconds) != 1 || ::read(input, &byte, 1) != 1)
    throw DeadlineExceeded("a signal did not come within a minute");
}

void give_signal(int output) {
  const char byte = 0;
  if (::write(output, &byte, 1) != 1) throw Unavailable("a signal cannot be given");
}

}  // namespace cohort::conformance
