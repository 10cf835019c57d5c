// A cluster with a coordinator in this process, as the lines of `coordinator` and `fault` were recorded with:
// its variables, and the functions that these lines name.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/coordinator/cluster_coordinator.h>

#include "../scenario.h"
#include "remote/task_processes.h"

namespace cohort::conformance {

/// Bytes between the test and functions that workers run: a pipe that tasks inherit which are started after
/// it was made. What a function writes to variables is seen when it has ended; these are seen at once, so
/// that the test knows which functions run. One thread reads.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int input() const noexcept { return input_; }
  [[nodiscard]] int output() const noexcept { return output_; }

  /// Waits for so many bytes. @throws DeadlineExceeded after a minute.
  void await(int count = 1) const;
  void give(int count = 1) const;
  /// Those that are there and that nobody awaits.
  void take_all() const;

 private:
  int input_ = -1;
  int output_ = -1;
};

/// For functions, which are given the descriptors.
void await_signal(int input);
void give_signal(int output);

class Coordinated {
 public:
  Coordinated(int workers, int servers);

  [[nodiscard]] int workers() const noexcept { return workers_; }
  [[nodiscard]] const ClusterCoordinator& coordinator() const noexcept { return coordinator_; }
  [[nodiscard]] const ParameterServerStrategy& strategy() const noexcept { return strategy_; }
  [[nodiscard]] remote::TaskProcesses& processes() noexcept { return processes_; }

  /// All values are again what they were at first. Nothing may be running.
  void reset() const;

  /// Has workers run `waiting(number)`, which ends when the gate is opened.
  [[nodiscard]] RemoteValue<std::int64_t> schedule_waiting(std::int64_t number) const;
  [[nodiscard]] RemoteValue<std::int64_t> schedule_add(std::int64_t number) const;
  [[nodiscard]] RemoteValue<std::int64_t> schedule_fail() const;
  void open_gate() const;

  /// Waits until all workers take part.
  void await_workers() const;

  /// Lets functions go on that have come to `meet`, when so many are there: each on a worker of its own.
  void let_meet(int functions) const;

  /// Given by functions when they begin.
  [[nodiscard]] const Signals& begun() const noexcept { return begun_; }
  /// Given to functions.
  [[nodiscard]] const Signals& pass() const noexcept { return pass_; }
  [[nodiscard]] const Signals& pass_of_held() const noexcept { return pass_of_held_; }

 private:
  int workers_;
  Signals begun_;
  Signals pass_;
  Signals pass_of_held_;
  remote::TaskProcesses processes_;
  ParameterServerStrategy strategy_;
  ClusterCoordinator coordinator_;

 public:
  const Variable counter;         ///< `v` of the lines
  const Variable numbers;         ///< `fv`: 1, 2, 3
  const Variable table;           ///< `emb`: 0 to 7, 4x2
  const Variable log;             ///< what `append` was given
  const Variable position;        ///< how many that were
  const Variable count_of_begun;  ///< of `waiting`
  const Variable count_of_ended;  ///< of `waiting`
  const Variable gate;            ///< not 0: open
};

// ---- the functions that the lines name

std::int64_t add(const Variable& counter, std::int64_t number);
/// @throws InvalidArgument
std::int64_t fail();
std::int64_t wait_for_gate(const Variable& gate, const Variable& begun, const Variable& ended, int signal,
                           std::int64_t number);
/// Waits until `let_meet`, and then for a pass. Before that the worker gives back what waits behind this
/// call, since it reads a variable; after that nothing interrupts it.
void meet(const Variable& gate, int begun, int pass);

// ---- what came out

/// The original's name for an error of this kind.
[[nodiscard]] std::string class_of(const Error& error);

/// What `function` returns, or the error that it throws, as an outcome.
[[nodiscard]] Json outcome_of(const std::function<Json()>& function);
/// The same with the name of an error's class alone.
[[nodiscard]] Json name_or_value(const std::function<Json()>& function);
/// Null, or the error that was thrown.
[[nodiscard]] Json outcome_of_join(const ClusterCoordinator& coordinator);

[[nodiscard]] std::int64_t value_of(const Variable& variable);

// ---- the lines

/// A row of "Deliberate differences" that several groups refer to.
inline constexpr std::string_view kOwnVariables = "a function may make variables of its own task";

/// What replays one line, of the topic and the layout of its cluster.
using Play = std::function<Json(Coordinated&)>;

/// A line by its name, the last part of its id.
[[nodiscard]] Family line(Coordinated& cluster, std::string_view pattern, Play play,
                          std::vector<FamilyDifference> differences = {});

[[nodiscard]] std::vector<Family> result_families(Coordinated& cluster);
[[nodiscard]] std::vector<Family> argument_families(Coordinated& cluster);
[[nodiscard]] std::vector<Family> context_families(Coordinated& cluster);
[[nodiscard]] std::vector<Family> queue_families(Coordinated& cluster);
[[nodiscard]] std::vector<Family> error_families(Coordinated& cluster);
[[nodiscard]] std::vector<Family> per_worker_families(Coordinated& cluster);
[[nodiscard]] std::vector<Family> server_variable_families(Coordinated& cluster);

[[nodiscard]] std::vector<Scenario> first_call_scenarios(const Coordinated& cluster);
[[nodiscard]] std::vector<Scenario> server_strategy_scenarios(const Coordinated& cluster);

// Tasks that are killed or stopped while functions run. Each line has a cluster of its own.

/// The lines whose servers are killed. They wait for a server that does not come back, and so they run beside
/// all other lines: from when this is made until their outcomes are asked for.
class LostServers {
 public:
  LostServers();

  [[nodiscard]] const std::vector<Family>& families() const noexcept { return families_; }

 private:
  void add(const std::vector<std::string_view>& patterns, int servers,
           const std::function<Json(Coordinated&)>& play, std::vector<FamilyDifference> differences = {});

  std::vector<Family> families_;
};

[[nodiscard]] std::vector<Family> lost_worker_families();

/// The line whose coordinator is killed. It starts this program with a folder as its argument, which is to
/// call `train_as_coordinator` then.
[[nodiscard]] Family restarted_coordinator_family();
int train_as_coordinator(const std::string& folder);

/// `["ok", null]` or `["raised", class]`.
[[nodiscard]] Json told(const std::function<void()>& function);

/// `add` of the lines of `fault`: counts, and returns the number of its worker.
int add_here(const InputContext& worker, const Variable& counter);

}  // namespace cohort::conformance
