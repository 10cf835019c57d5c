// The environment variables of this process, as a value: what reads them takes one, so
// that tests can hand in another.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace cohort {

using Environment = std::map<std::string, std::string, std::less<>>;

[[nodiscard]] Environment process_environment();

/// The whole number from 0 that a variable holds; nothing when it is not set.
/// @throws InvalidArgument with the variable and what it holds, when that is no such number.
[[nodiscard]] std::optional<int> number_in(const Environment& variables, const char* name);

}  // namespace cohort
