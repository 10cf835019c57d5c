// Where and with what a benchmark ran: what a reader needs to judge or repeat its figures.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/bootstrap.h>

namespace cohort::bench {

/// A node of the run, as its workers see it.
struct NodeFacts {
  std::string host;
  std::string cpu_model;
  std::string kernel;
  std::vector<std::vector<int>> cores_of_workers;  ///< the cores that each of its workers may use

  [[nodiscard]] int workers() const { return static_cast<int>(cores_of_workers.size()); }
  /// Cores that at least one of its workers may use.
  [[nodiscard]] int cores() const;
};

struct SettingFact {
  std::string name;
  std::string value;
  bool from_environment = false;
};

struct Environment {
  std::string version;
  std::string build;         ///< build type and compiler
  std::string date;          ///< UTC, ISO 8601
  std::string command_line;  ///< as `describe_command` writes it
  std::string mpi_library;
  std::string gpu;    ///< the model of the first member's GPU; empty where tensors are on the host
  std::string clock;  ///< what timed the calls, and what was taken off for reading it
  std::vector<NodeFacts> nodes;
  std::vector<SettingFact> settings;  ///< every COHORT_ variable
  std::optional<int> threads;         ///< set: the members are this many threads of the only worker

  [[nodiscard]] int members() const;
  [[nodiscard]] int cores() const;
  /// Members on `node`.
  [[nodiscard]] int members_of(const NodeFacts& node) const { return threads.value_or(node.workers()); }
  [[nodiscard]] bool oversubscribed() const;
};

/// Collective: every worker contributes its own facts, and all get the same.
[[nodiscard]] Environment capture_environment(Bootstrap& bootstrap, const std::string& mpi_library,
                                              const std::vector<std::string>& command_line);

/// The program's name and its arguments without the folders that only tell where somebody keeps things: the
/// program's own, and the user's home folder, which becomes ~.
[[nodiscard]] std::string describe_command(std::span<const std::string> command_line, std::string_view home);

/// ~ for `home` where `text` is a path in it, or an option's value that is one.
[[nodiscard]] std::string without_home(std::string text, std::string_view home);

/// The user's home folder, or nothing where the user has none.
[[nodiscard]] std::string home_folder();

/// How the workers share the cores, for example `each worker has cores of its own`.
[[nodiscard]] std::string describe_binding(const Environment& environment);

/// A warning when more members than cores make the timings meaningless; otherwise empty.
[[nodiscard]] std::string oversubscription_warning(const Environment& environment);

}  // namespace cohort::bench
