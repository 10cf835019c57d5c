#include "say.h"

#include <unistd.h>

#include <string>

#include <fmt/format.h>

namespace cohort::supervise {

void say(std::string_view text) {
  const std::string line = fmt::format("cohort-supervise: {}\n", text);
  // Nobody is left to hear of an error.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace cohort::supervise
