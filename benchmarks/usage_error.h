// A mistake on the command line: the program prints its text, which says what is wrong,
// where, and what to do instead, and ends with status 2.
#pragma once

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace cohort::bench {

class UsageError : public std::runtime_error {
 public:
  template <class... Args>
  explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace cohort::bench
