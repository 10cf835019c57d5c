#include <cohort/base/log.h>

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

namespace cohort::logging {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarning: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
    case Level::kOff: return spdlog::level::off;
  }
  return spdlog::level::off;
}

/// The default where a setting is wrong, which whoever asks for the settings themselves is told.
std::string level_name() {
  try {
    return config().log_level();
  } catch (const InvalidArgument&) {
    return Config({}).log_level();
  }
}

Level configured_level() {
  const std::string name = level_name();
  if (name == "debug") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  return Level::kOff;
}

// One log per process, made on first use and never destroyed, so that destructors of statics may still log.
spdlog::logger& logger() {
  static spdlog::logger& instance = [&]() -> spdlog::logger& {
    auto* made = new spdlog::logger("cohort", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("[%H:%M:%S.%e %l] cohort: %v");
    made->set_level(spdlog_level(configured_level()));
    made->flush_on(spdlog::level::debug);
    return *made;
  }();
  return instance;
}

}  // namespace

bool enabled(Level level) { return logger().should_log(spdlog_level(level)); }

void write(Level level, std::string_view message) {
  logger().log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
}

void set_origin(const std::string& origin) {
  logger().set_pattern("[%H:%M:%S.%e %l] cohort, " + origin + ": %v");
}

}  // namespace cohort::logging
