// A failure that every rank knows of and leaves the run with, in good order: rank 0 prints its
// text, and all end with status 1. Any other error is one rank's own and ends the whole job.
#pragma once

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace cohort::bench {

class AgreedError : public std::runtime_error {
 public:
  template <class... Args>
  explicit AgreedError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace cohort::bench
