// Where a reader of a job's last words learns what the code of an error means: the tool is there wherever the
// library is, and needs no network.
#pragma once

#include <exception>
#include <string>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort {

/// The end of a line, with a blank before it: ` (cohort-info --explain unavailable)`.
[[nodiscard]] inline std::string where_explained(ErrorCode code) {
  return fmt::format(" (cohort-info --explain {})", to_string(code));
}

/// The same, or nothing for exceptions that have no code.
[[nodiscard]] inline std::string where_explained(const std::exception& exception) {
  const auto* const error = dynamic_cast<const Error*>(&exception);
  return error != nullptr ? where_explained(error->code()) : std::string();
}

}  // namespace cohort
