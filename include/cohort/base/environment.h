// The environment variables of this process, as a value: functions that read variables take an Environment,
// so that tests can pass another.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace cohort {

using Environment = std::map<std::string, std::string, std::less<>>;

[[nodiscard]] Environment process_environment();

/// The whole number, at least 0, that a variable holds; nothing when it is not set.
/// @throws InvalidArgument naming the variable and its value when that is no such number.
[[nodiscard]] std::optional<int> number_in(const Environment& variables, const char* name);

}  // namespace cohort
