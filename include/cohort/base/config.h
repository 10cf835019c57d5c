// The settings: every COHORT_* environment variable, declared once with its type, default and meaning.
// Parsing is strict: a value that does not fit, or an unknown COHORT_ name, is an error that lists the legal
// ones, because a typo that is silently ignored costs its user a day.
//
// `config()` reads the environment once, on first use. Immutable afterwards; any
// thread may read.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/base/environment.h>

namespace cohort {

enum class SettingType { kBoolean, kInteger, kSeconds, kChoice, kText };

[[nodiscard]] std::string_view to_string(SettingType type) noexcept;

/// One row of the table of settings.
struct SettingSpec {
  std::string_view name = {};
  SettingType type = SettingType::kText;
  std::string_view default_value = {};
  std::string_view choices = {};  ///< for `kChoice`: the legal values, separated by `|`
  double minimum = 0;             ///< for numbers: the smallest legal value
  double maximum = 0;             ///< for numbers: the largest legal value
  std::string_view text = {};
};

/// A setting with the value in force and where that came from.
struct Setting {
  SettingSpec spec = {};
  std::string value = {};
  bool from_environment = false;
};

class Config {
 public:
  /// @throws InvalidArgument for an unknown COHORT_ name, a value that does not parse, or values that do
  /// not fit together.
  explicit Config(const Environment& environment);

  /// The whole table, in declaration order.
  [[nodiscard]] static std::span<const SettingSpec> specs() noexcept;

  [[nodiscard]] std::span<const Setting> settings() const& noexcept { return settings_; }
  [[nodiscard]] std::vector<Setting> settings() && { return std::move(settings_); }

  /// Whether the environment has the setting of this name, which is one of the table.
  [[nodiscard]] bool is_set(std::string_view name) const { return find(name).from_environment; }

  [[nodiscard]] std::string log_level() const;
  [[nodiscard]] std::chrono::duration<double> collective_timeout() const;
  [[nodiscard]] std::chrono::duration<double> fault_grace() const;
  [[nodiscard]] std::chrono::duration<double> heartbeat() const;
  [[nodiscard]] std::chrono::duration<double> silence() const;
  [[nodiscard]] int cpu_devices() const;
  [[nodiscard]] bool bind_cores() const;
  [[nodiscard]] bool huge_pages() const;
  [[nodiscard]] int workers_per_node() const;
  [[nodiscard]] bool node_heap() const;
  [[nodiscard]] bool check_buffers() const;
  [[nodiscard]] std::string algorithm() const;
  [[nodiscard]] std::string tuning_file() const;
  [[nodiscard]] std::string topology() const;
  [[nodiscard]] std::string report() const;
  [[nodiscard]] bool stragglers() const;
  [[nodiscard]] std::string timeline() const;
  [[nodiscard]] bool run_numbers() const;
  [[nodiscard]] std::string prometheus() const;
  [[nodiscard]] std::string snapshot_folder() const;
  [[nodiscard]] std::string nccl_library() const;
  [[nodiscard]] std::string mpi_calls() const;
  [[nodiscard]] int restarts() const;
  [[nodiscard]] int task_descriptor() const;

 private:
  void require_silence_longer_than_heartbeat() const;
  [[nodiscard]] const Setting& find(std::string_view name) const;
  std::vector<Setting> settings_;
};

/// The settings of this process, from its environment.
/// @throws InvalidArgument as `Config::Config`.
[[nodiscard]] const Config& config();

}  // namespace cohort
