// Preemption of two workers, and errors of one of them.
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <utility>

#include <cohort/checkpoint/checkpoint_folder.h>

#include "preemption.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNamesTheWorker = "failures name the worker";

// Who gets the request, beside worker 0 and worker 1.
constexpr int kNobody = -1;
constexpr int kBoth = -2;

/// The status with which a program leaves.
struct Exit {
  int status;
};

struct Run {
  std::int64_t steps = 0;  ///< to train, beyond those of the checkpoint
  int victim = kNobody;
  std::int64_t requested = 0;  ///< in this step; recorded is only what came of it
  bool is_watched = false;     ///< the request comes by a function, not by a signal
  bool has_exit_fn = false;
};

/// The same path on both workers: a variable begins with the chief's value.
std::string common_folder(const Layout& layout) {
  const auto scope = layout.strategy().scope();
  const Variable chief({.initial_value = Tensor::scalar(std::int64_t{::getpid()})});
  return std::filesystem::temp_directory_path() /
         fmt::format("cohort-golden-preemption-{}", chief.read().item<std::int64_t>());
}

/// v += 1, summed over the replicas, in each step. What comes out where both workers fare alike.
Json run_workers(const Layout& layout, const std::string& folder, const Run& run) {
  const auto scope = layout.strategy().scope();
  const Variable v({.initial_value = number(0)});
  Checkpoint checkpoint(layout.strategy());
  checkpoint.add("v", v);
  Request request = run.is_watched ? request_by_watcher() : request_by_signal();
  TerminationConfig& config = request.config;
  config.end_time = std::nullopt;
  if (run.has_exit_fn) config.exit_fn = [] { throw Exit{7}; };
  PreemptionCheckpointHandler handler(checkpoint, folder, std::exchange(config, {}));

  Json log = Json::array();
  const auto note = [&](const char* what) {
    log.push_back({what, handler.total_run_calls(), v.read().item<float>()});
  };
  note("start");
  int status = 0;
  try {
    for (const std::int64_t last = handler.total_run_calls() + run.steps; handler.total_run_calls() < last;) {
      handler.run([&] {
        const bool is_victim = run.victim == kBoth || run.victim == layout.worker();
        if (is_victim && handler.total_run_calls() == run.requested) request.announce();
        const auto ones = layout.each([](int) { return number(1); });
        v.assign_add(layout.strategy().reduce(ReduceOp::kSum, ones));
      });
    }
    note("finished");
  } catch (const Preempted& preempted) {
    status = preempted.exit_code();
  } catch (const Exit& exit) {
    status = exit.status;
  }
  note("exit at run calls");
  return {{"exit_codes", {status, status}}, {"hung", Json::array()}, {"worker_logs", {log, log}}};
}

/// Removes the folder when both workers have looked at it.
class CommonFolder {
 public:
  explicit CommonFolder(const Layout& layout) : layout_(layout), path_(common_folder(layout)) {
    if (layout.worker() == 0) folder_.emplace(path_);
    meet();
  }
  ~CommonFolder() { meet(); }
  CommonFolder(const CommonFolder&) = delete;
  CommonFolder& operator=(const CommonFolder&) = delete;

  Json run(const Run& run) const {
    Json outcome = run_workers(layout_, path_, run);
    meet();
    outcome["files"] = checkpoint_names(path_);
    meet();
    return outcome;
  }

 private:
  void meet() const { layout_.strategy().extended().workers_communicator().barrier(); }
  const Layout& layout_;
  std::string path_;
  std::optional<JobFolder> folder_;
};

Json expected(const Json& exit_codes, std::int64_t begin, std::int64_t end, bool finishes,
              std::optional<std::int64_t> saved) {
  const auto line = [](const char* what, std::int64_t steps) {
    return Json{what, steps, 2.0 * static_cast<double>(steps)};
  };
  Json log = Json::array({line("start", begin)});
  if (finishes) log.push_back(line("finished", end));
  log.push_back(line("exit at run calls", end));
  return {{"exit_codes", exit_codes},
          {"hung", Json::array()},
          {"worker_logs", {log, log}},
          {"files", saved ? Json::array({fmt::format("step-{}", *saved)}) : Json::array()}};
}

/// A run that is preempted after `steps` steps; and another one after it, if `more`.
Scenario preempted(const char* name, std::int64_t steps, Run run, std::int64_t more = 0) {
  run.steps = 400;
  run.requested = steps - 2;
  const int status = run.has_exit_fn ? 7 : 42;
  const auto play = [=](const Layout& layout) -> Json {
    const CommonFolder folder(layout);
    Json outcome{{"first", folder.run(run)}};
    if (more > 0) outcome["second"] = folder.run({.steps = more});
    return outcome;
  };
  const auto named_by_step = [=](const Layout&) -> Json {
    Json outcome{{"first", expected({status, status}, 0, steps, false, steps)}};
    if (more > 0) outcome["second"] = expected({0, 0}, steps, steps + more, true, steps);
    return outcome;
  };
  return {fmt::format("w2/preemption/mwms2/{}", name), play, {{"", kNamedByStep, named_by_step}}};
}

/// One worker fails in a step: what each of them gets. Afterwards the strategy is of no more use.
Json fail_on_one(const Layout& layout) {
  const std::string path = common_folder(layout);
  const auto scope = layout.strategy().scope();
  Checkpoint checkpoint(layout.strategy());
  Json outcome = Json::array();
  {
    PreemptionCheckpointHandler handler(checkpoint, path, {.end_time = std::nullopt});
    try {
      for (int step = 0; step < 30; ++step) {
        handler.run([&] {
          if (step == 3 && layout.worker() == 1) throw Unavailable("Running out of resources");
          static_cast<void>(
              layout.strategy().reduce(ReduceOp::kSum, layout.each([](int) { return number(1); })));
        });
      }
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool names_it = text.find("worker 1") != std::string::npos;
      const bool says_why = text.find("Running out of resources") != std::string::npos;
      outcome = {to_string(error.code()), names_it, says_why};
    }
    outcome.push_back(list_checkpoints(path).size());
  }
  if (layout.worker() == 0) std::filesystem::remove_all(path);
  return outcome;
}

Json failure_by_worker(const Layout& layout) {
  if (layout.worker() == 0) return {"aborted", true, true, 0};
  return {"unavailable", false, true, 0};
}

Json finish(const Layout& layout) {
  const CommonFolder folder(layout);
  return {{"first", folder.run({.steps = 10})}};
}

}  // namespace

std::vector<Scenario> preemption_scenarios() {
  return {{"w2/preemption/mwms2/mw_none", finish},
          preempted("mw_sigterm_both", 11, {.victim = kBoth}),
          preempted("mw_watcher_w1", 17, {.victim = 1, .is_watched = true}),
          preempted("mw_exit_fn", 11, {.victim = 0, .has_exit_fn = true}),
          preempted("mw_sigterm_w0", 11, {.victim = 0}, 5),
          {"w2/preemption/mwms2/mw_raise_w1", fail_on_one, {{"", kNamesTheWorker, failure_by_worker}}}};
}

}  // namespace cohort::conformance
