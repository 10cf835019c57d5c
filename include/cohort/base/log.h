// The log: one line per event on standard error, marked with the worker that wrote
// it. The level comes from COHORT_LOG_LEVEL. Any thread may log.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cohort::logging {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

[[nodiscard]] bool enabled(Level level);
void write(Level level, std::string_view message);

/// Marks all later lines with this text, for example `worker 2`; called once by the session.
void set_origin(const std::string& origin);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarning)) write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kError)) write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cohort::logging
