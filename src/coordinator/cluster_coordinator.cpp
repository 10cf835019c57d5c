#include <cohort/coordinator/cluster_coordinator.h>

#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/coordinator/detail/function.h>
#include <cohort/coordinator/per_worker.h>
#include <cohort/coordinator/remote_value.h>

#include "coordinator_part.h"
#include "remote/supervised_task.h"
#include "server/client/connections.h"

namespace cohort::coordinator {
namespace {

/// Filled before `main`, and only read after that.
std::vector<Function>& functions() {
  static std::vector<Function> all;
  return all;
}

}  // namespace

// Functions, as all tasks know them.

/// `name` is that of a RegisteredFunction as the compiler writes it: `... RegisteredFunction<train_step>;
/// ...`.
std::string_view Function::short_name() const noexcept {
  constexpr std::string_view kBefore = "RegisteredFunction<";
  std::string_view text = name;
  const std::size_t begin = text.rfind(kBefore);
  if (begin == std::string_view::npos || text.find("lambda") != std::string_view::npos) return "lambda";
  text.remove_prefix(begin + kBefore.size());
  text = text.substr(0, text.find_first_of(";]"));
  text = text.substr(0, text.rfind('>'));
  const std::size_t first = text.find_first_not_of("(& ");
  const std::size_t last = text.find_last_not_of(") ");
  return first == std::string_view::npos ? "lambda" : text.substr(first, last - first + 1);
}

FunctionNumber register_function(const Function& function) {
  functions().push_back(function);
  return static_cast<FunctionNumber>(functions().size() - 1);
}

const Function& function(FunctionNumber number) {
  if (number < functions().size()) return functions()[number];
  throw InvalidArgument(
      "there is no function {} in this program, which has {}: all tasks must run the same program", number,
      functions().size());
}

std::uint64_t fingerprint_of_functions() {
  Fingerprint fingerprint;
  for (const Function& function : functions()) fingerprint.add(function.name);
  return fingerprint.value();
}

// What users hold of calls and of PerWorkers.

void ReleasedPerWorkers::add(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    numbers_.push_back(number);
  } catch (...) {  // NOLINT(bugprone-empty-catch): without memory for a number the elements stay
  }
}

std::vector<std::uint64_t> ReleasedPerWorkers::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(numbers_, {});
}

void RemoteState::succeed(std::span<const std::byte> result) {
  result_.assign(result.begin(), result.end());
  settled_.store(true, std::memory_order_release);
}

void RemoteState::fail(const Error& error) {
  failure_ = std::make_unique<Error>(error);
  settled_.store(true, std::memory_order_release);
}

std::span<const std::byte> RemoteState::wait() const {
  if (!is_settled()) connections_->wait_until([this] { return is_settled(); });
  if (failure_ != nullptr) throw_error(*failure_);
  return result_;
}

}  // namespace cohort::coordinator

namespace cohort {
namespace {

std::shared_ptr<coordinator::CoordinatorPart> part_of(const ParameterServerStrategy& strategy,
                                                      const ClusterCoordinatorOptions& options) {
  if (strategy.task().type != "chief")
    throw WrongContext("a ClusterCoordinator is made by the chief, but this task is {}; it calls serve()",
                       remote::name_of(strategy.task()));
  if (options.queue_limit == 0) throw InvalidArgument("ClusterCoordinator: a queue for 0 calls takes none");
  if (!(options.worker_timeout_seconds >= 0))
    throw InvalidArgument("ClusterCoordinator: a worker timeout of {} s; use 0 for none",
                          options.worker_timeout_seconds);
  auto& place = strategy.variables()->coordinator();
  const std::lock_guard lock(place.mutex);
  if (auto part = std::static_pointer_cast<coordinator::CoordinatorPart>(place.part.lock())) return part;
  if (place.is_taken || strategy.variables()->client().connections().job_is_over()) {
    throw WrongContext(
        "the job of this strategy is over: its ClusterCoordinator has ended, and workers and servers with "
        "it; keep a handle of the first one until all work is done");
  }
  auto part = std::make_shared<coordinator::CoordinatorPart>(strategy.variables(), options);
  place.part = part;
  place.is_taken = true;
  return part;
}

}  // namespace

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy,
                                       const ClusterCoordinatorOptions& options)
    : strategy_(strategy), part_(part_of(strategy, options)) {}

std::shared_ptr<const coordinator::RemoteState> ClusterCoordinator::schedule_call(
    coordinator::FunctionNumber function, coordinator::EncodedArguments arguments) const {
  return part_->schedule(function, std::move(arguments));
}

std::shared_ptr<const coordinator::PerWorkerState> ClusterCoordinator::make_per_worker(
    coordinator::FunctionNumber function, coordinator::EncodedArguments arguments) const {
  return part_->make_per_worker(function, std::move(arguments));
}

void ClusterCoordinator::join() const { part_->join(); }

bool ClusterCoordinator::done() const { return part_->done(); }

}  // namespace cohort
