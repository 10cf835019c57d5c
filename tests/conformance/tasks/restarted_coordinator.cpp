// A coordinator that saves checkpoints, is killed, and is started again. It is a process of its own, which
// starts workers and a server of its own: with a coordinator ends its job.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "../scenarios/checkpoints.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

constexpr std::int64_t kSaveEvery = 5;
constexpr std::int64_t kKilledAfter = 12;
constexpr std::int64_t kSteps = 30;
constexpr const char* kLog = "log";

void add_half(const Variable& w) { w.assign_add(Tensor::full({2}, DType::kFloat32, 0.5)); }

Json values_of(const Variable& w) {
  const Tensor value = w.read();
  return Json(std::vector<float>(value.span<float>().begin(), value.span<float>().end()));
}

/// Starts this program as a coordinator, and returns what it has written to its log, with how it ended.
Json run_coordinator(const std::string& folder) {
  std::string program = "/proc/self/exe";
  std::string argument = folder;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0)
    throw std::runtime_error("cannot start a coordinator");
  int status = 0;
  ::waitpid(child, &status, 0);
  std::ifstream log(std::filesystem::path(folder) / kLog);
  Json outcome = Json::parse(log);
  outcome["exit"] = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

Json restarted_coordinator(const Record& /*record*/) {
  const CheckpointFolder folder;
  Json outcome;
  outcome["killed"] = run_coordinator(folder.path());
  outcome["finished"] = run_coordinator(folder.path());
  outcome["checkpoints"] = folder.entries();
  return outcome;
}

}  // namespace

int train_as_coordinator(const std::string& folder) {
  remote::TaskProcesses tasks(2, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  const auto scope = strategy.scope();
  const Variable step({.dtype = DType::kInt64, .name = "step"});
  const Variable w({.name = "w", .initial_value = Tensor::from({1.0F, 2.0F})});
  Checkpoint checkpoint(strategy);
  checkpoint.add("step", step);
  checkpoint.add("w", w);
  CheckpointManager manager(checkpoint, folder, {.max_to_keep = 2, .save_every_steps = kSaveEvery});

  Json log{{"initial_before_restore", {value_of(step), values_of(w)}}};
  const bool is_first = !manager.restore_latest().step;
  log["restored_step"] = value_of(step);
  log["restored_w"] = values_of(w);
  const auto write_log = [&] { std::ofstream(std::filesystem::path(folder) / kLog) << log; };
  for (std::int64_t done = value_of(step) + 1; done <= kSteps; ++done) {
    coordinator.schedule<add_half>(w);
    coordinator.join();
    step.assign(done);
    manager.save_if_due(done);
    if (!is_first || done != kKilledAfter) continue;
    log["step_at_kill"] = done;
    write_log();
    ::kill(::getpid(), SIGKILL);
  }
  log["final_step"] = value_of(step);
  log["final_w"] = values_of(w);
  write_log();
  return EXIT_SUCCESS;
}

Family restarted_coordinator_family() {
  return {
      {"*/coordinator_restart"}, restarted_coordinator, {{"*", kCheckpointFolder, [](const Record& record) {
                                                            Json outcome = record.outcome;
                                                            outcome["checkpoints"] = {"step-25", "step-30"};
                                                            return outcome;
                                                          }}}};
}

}  // namespace cohort::conformance
