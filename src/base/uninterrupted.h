// System calls that a signal interrupts are made again: a signal of the program's own is no failure.
#pragma once

#include <cerrno>

namespace cohort {

/// Makes a call that returns a negative number and sets errno when it fails.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace cohort
