// The two errors that end a run in good order. Any other error is one rank's own and ends the whole job.
#pragma once

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace cohort::bench {

/// A mistake on the command line. The program prints the text, which says what is wrong, where, and what to
/// do instead, and ends with status 2.
class UsageError : public std::runtime_error {
 public:
  template <class... Args>
  explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// A failure that every rank knows of. Rank 0 prints the text, and all ranks end with status 1.
class AgreedError : public std::runtime_error {
 public:
  template <class... Args>
  explicit AgreedError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace cohort::bench
