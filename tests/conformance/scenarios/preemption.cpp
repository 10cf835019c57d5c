// Preemption of one process without a strategy.
#include "preemption.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <utility>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/remote/local_cluster.h>
#include <cohort/server/parameter_server_strategy.h>

namespace cohort::conformance {
namespace {

constexpr std::string_view kOwnValues = "values are not chosen by platform";

std::string own_folder() {
  return std::filesystem::temp_directory_path() / fmt::format("cohort-golden-preemption-{}", ::getpid());
}

struct Exited {};

/// v += 1 in each of the steps 0 to 7, which return ten times their number. The request comes in step `at`.
class Loop {
 public:
  Loop(const Record& record, const std::string& folder, std::optional<std::int64_t> at) : at_(at) {
    const Json& arguments = record.arguments;
    const auto has = [&](const char* name) { return arguments.contains(name); };
    request_ = arguments.value("by", "").starts_with("termination_watcher_fn") ? request_by_watcher()
                                                                               : request_by_signal();
    TerminationConfig config = std::exchange(request_.config, {});
    config.end_time = std::nullopt;
    config.exit_fn = [this] {
      log("exit_fn");
      throw Exited();
    };
    if (has("save_fn")) {
      config.save_fn = [this] {
        log_.push_back({"save_fn", 0, Json::array(), v_});  // it has no arguments
      };
    }
    checkpoint_.add("v", v_);
    if (has("object") || arguments.value("save_fn", "").find("Manager") != std::string::npos) {
      manager_.emplace(checkpoint_, folder, CheckpointManagerOptions{.max_to_keep = 3});
      handler_.emplace(*manager_, std::move(config));
    } else {
      handler_.emplace(checkpoint_, folder, std::move(config));
    }
  }

  Json run(const JobFolder& folder) {
    log("start");
    Json returned = Json::array();
    try {
      while (handler_->total_run_calls() < 8)
        returned.push_back(handler_->run([this] { return step(handler_->total_run_calls()); }));
    } catch (const Exited&) {
      log_.push_back({"exited"});
    }
    return {{"log", log_},
            {"returned", returned},
            {"total_run_calls", handler_->total_run_calls()},
            {"v", v_},
            {"files", checkpoint_names(folder.path())}};
  }

 private:
  std::int64_t step(std::int64_t number) {
    if (number == at_) request_.announce();
    v_ += 1;
    return 10 * number;
  }
  void log(const char* what) { log_.push_back({what, handler_ ? handler_->total_run_calls() : 0, v_}); }

  std::optional<std::int64_t> at_;
  Request request_;
  double v_ = 0;
  Json log_ = Json::array();
  Checkpoint checkpoint_;
  std::optional<CheckpointManager> manager_;
  std::optional<PreemptionCheckpointHandler> handler_;
};

Json run_loop(const Record& record) {
  const JobFolder folder(own_folder());
  const Json& at = record.arguments.at("at");
  const auto step = at.is_null() ? std::nullopt : std::optional(at.get<std::int64_t>());
  Json first = Loop(record, folder.path(), step).run(folder);
  if (!record.arguments.contains("then")) return first;
  const Json second = Loop(record, folder.path(), std::nullopt).run(folder);
  return {{"first", first}, {"second", second}};
}

Json with_names_by_step(Json outcome) {
  if (!outcome.contains("first")) {
    outcome["files"] = names_by_step(outcome.at("files"), outcome.at("total_run_calls"));
    return outcome;
  }
  const Json steps = outcome["first"].at("total_run_calls");
  for (const char* run : {"first", "second"})
    outcome[run]["files"] = names_by_step(outcome[run].at("files"), steps);
  return outcome;
}

/// A handler of v, and what `use` of it returns.
Json with_handler(const std::function<Json(PreemptionCheckpointHandler& handler, double& v)>& use) {
  const JobFolder folder(own_folder());
  double v = 0;
  Checkpoint checkpoint;
  checkpoint.add("v", v);
  PreemptionCheckpointHandler handler(checkpoint, folder.path());
  return use(handler, v);
}

Json watch_scope(const Record& /*record*/) {
  return with_handler([](PreemptionCheckpointHandler& handler, double& v) -> Json {
    handler.watch_preemption_scope([&] { v += 1; });
    return {handler.total_run_calls(), v};
  });
}

Json raise_status(const Record& /*record*/) {
  return with_handler([](PreemptionCheckpointHandler& handler, double&) -> Json {
    try {
      handler.run([] { throw Unavailable("no room"); });
    } catch (const Unavailable&) {
      return {"ResourceExhaustedError", handler.total_run_calls()};
    }
    return "no error";
  });
}

Json return_plainly(const Record& /*record*/) {
  return with_handler([](PreemptionCheckpointHandler& handler, double&) -> Json {
    return handler.run([](int a, int k) { return a + k; }, 2, 5);
  });
}

Json show_defaults(const Record& /*record*/) {
  const TerminationConfig config;
  const auto show = [](bool is_there) { return is_there ? Json("a function") : Json(); };
  return {show(config.termination_watcher_fn != nullptr), show(config.exit_fn != nullptr),
          config.grace_period, show(config.save_fn != nullptr)};
}

Json refuse_servers(const Record& /*record*/) {
  const JobFolder folder(own_folder());
  const remote::LocalCluster cluster({{"worker", 1}, {"ps", 1}});
  const ParameterServerStrategy strategy(cluster.place({"worker", 0}));
  Checkpoint checkpoint(strategy);
  const PreemptionCheckpointHandler handler(checkpoint, folder.path());
  return "taken";
}

}  // namespace

Request request_by_signal() {
  return {.announce = [] { std::raise(SIGTERM); }};
}

Request request_by_watcher() {
  auto ends = std::make_shared<std::atomic<bool>>(false);
  auto known = std::make_shared<std::promise<void>>();
  // The handler lets go of the function when it has taken note of its answer.
  const std::shared_ptr<void> while_asked(nullptr, [known](void*) { known->set_value(); });
  Request request;
  request.config.watcher_interval_seconds = 0.001;
  request.config.termination_watcher_fn = [ends, while_asked] { return ends->load(); };
  request.announce = [ends, known] {
    *ends = true;
    known->get_future().wait();
  };
  return request;
}

JobFolder::JobFolder(std::string path) : path_(std::move(path)) { std::filesystem::remove_all(path_); }

JobFolder::~JobFolder() { std::filesystem::remove_all(path_); }

Json checkpoint_names(const std::string& folder) {
  Json names = Json::array();
  for (const FoundCheckpoint& found : list_checkpoints(folder))
    names.push_back(std::filesystem::path(found.path).filename());
  return names;
}

Json names_by_step(const Json& recorded, const Json& steps) {
  if (recorded.empty()) return Json::array();
  return Json::array({fmt::format("step-{}", steps.get<std::int64_t>())});
}

std::vector<Family> preemption_families() {
  const auto by_step = [](const Record& record) { return with_names_by_step(record.outcome); };
  return {
      {{"w2/preemption/default/watcher_at*", "w2/preemption/default/sigterm_at*",
        "w2/preemption/default/restart_*", "w2/preemption/default/none", "w2/preemption/default/save_fn*"},
       run_loop,
       {{"*_at0", kNamedByStep, by_step},
        {"*_at1", kNamedByStep, by_step},
        {"*_at3", kNamedByStep, by_step},
        {"*_at4", kNamedByStep, by_step}}},
      {{"w2/preemption/default/watch_scope"}, watch_scope},
      {{"w2/preemption/default/run_raises_status"}, raise_status},
      {{"w2/preemption/default/misc_run_plain_return"}, return_plainly},
      {{"w2/preemption/default/misc_config_defaults"},
       show_defaults,
       {{"*", kOwnValues,
         [](const Record&) {
           return Json{nullptr, nullptr, 0.0, nullptr};
         }}}},
      {{"w2/preemption/default/misc_ps_cluster"}, refuse_servers}};
}

}  // namespace cohort::conformance
