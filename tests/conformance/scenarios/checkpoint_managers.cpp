// Names of checkpoints, which of them are kept, and which is the latest.
#include <optional>

#include "checkpoints.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNoStateFile = "a folder says itself which checkpoints it has";
constexpr std::string_view kZeroKeepsAll = "0 keeps all checkpoints";
constexpr std::string_view kBySteps = "the highest step is the latest";
constexpr std::string_view kOlderOne = "an older checkpoint is better than none";
constexpr std::string_view kNotOverwritten = "a checkpoint is not overwritten";
constexpr std::string_view kMultiples = "checkpoints are due at multiples";

/// One variable, and the manager of its checkpoints.
class Managed {
 public:
  explicit Managed(const CheckpointFolder& folder, int max_to_keep = 0, std::int64_t interval = 0)
      : variable_({.initial_value = number(1)}) {
    checkpoint_.add("v", variable_);
    manager_.emplace(checkpoint_, folder.path(),
                     CheckpointManagerOptions{.max_to_keep = max_to_keep, .save_every_steps = interval});
  }

  [[nodiscard]] CheckpointManager& manager() { return *manager_; }

  /// The step that is restored, or nothing.
  [[nodiscard]] Json latest() {
    const LatestCheckpoint latest = manager_->restore_latest();
    return latest.step ? Json(*latest.step) : Json(nullptr);
  }

 private:
  Variable variable_;
  Checkpoint checkpoint_;
  std::optional<CheckpointManager> manager_;
};

/// The line's name of a step.
Json named(const Json& step) { return step.is_null() ? step : Json(fmt::format("ckpt-{}", step.dump())); }

Json found(const CheckpointFolder& folder) {
  Json names = Json::array();
  for (const FoundCheckpoint& checkpoint : list_checkpoints(folder.path()))
    names.push_back(named(checkpoint.step));
  return names;
}

/// The same as there are manifests, which are what the original calls an index.
Json index_files(const CheckpointFolder& folder) {
  Json names = Json::array();
  for (const std::string& name : folder.entries()) {
    if (std::filesystem::exists(std::filesystem::path(folder.path()) / name / "manifest.json"))
      names.push_back(fmt::format("ckpt-{}.index", name.substr(name.find('-') + 1)));
  }
  return names;
}

Json kept(const Record& record) {
  const CheckpointFolder folder;
  const int max_to_keep = record.arguments.value("max_to_keep", 0);
  Json outcome;
  {
    Managed managed(folder, max_to_keep);
    for (int step = 1; step <= 4; ++step) {
      managed.manager().save(step);
      outcome["steps"].push_back({named(step), found(folder), index_files(folder)});
    }
    outcome["latest"] = named(managed.latest());
  }
  Managed another(folder, max_to_keep);
  outcome["new_manager_sees"] = found(folder);
  outcome["latest_checkpoint(dir)"] = named(another.latest());
  return outcome;
}

Json kept_all(const Record& /*record*/) {
  const CheckpointFolder folder;
  Managed managed(folder, 0);
  managed.manager().save(1);
  return found(folder);
}

Json kept_out_of_order(const Record& /*record*/) {
  const CheckpointFolder folder;
  Managed managed(folder, 2);
  Json outcome = Json::array();
  for (const int step : {10, 5, 7}) {
    managed.manager().save(step);
    outcome.push_back(named(step));
  }
  outcome.push_back(found(folder));
  outcome.push_back(named(managed.latest()));
  return outcome;
}

Json restored_or_initialized(const Record& /*record*/) {
  const CheckpointFolder folder;
  Managed managed(folder);
  Json calls = Json::array();
  const auto begin = [&] {
    Json step = managed.latest();
    if (step.is_null()) calls.push_back("init");
    return named(step);
  };
  Json outcome = Json::array();
  outcome.push_back(begin());
  outcome.push_back(calls);
  managed.manager().save(1);
  outcome.push_back(begin());
  return outcome;
}

Json latest_of_nothing(const Record& /*record*/) {
  const CheckpointFolder folder;
  return Managed(folder).latest();
}

Json latest_of_lost_files(const Record& /*record*/) {
  const CheckpointFolder folder;
  Managed managed(folder);
  managed.manager().save(1);
  std::filesystem::remove_all(managed.manager().save(2));
  return named(managed.latest());
}

Json kept_beside_deletions(const Record& /*record*/) {
  const CheckpointFolder folder;
  Managed managed(folder, 2);
  std::filesystem::remove_all(managed.manager().save(1));
  managed.manager().save(2);
  managed.manager().save(3);
  return Json::array({folder.entries(), found(folder)});
}

// ---- names

/// What `result` returns, and the checkpoints that are there then.
Json with_entries(const std::function<Json(const CheckpointFolder&, Checkpoint&)>& result) {
  const CheckpointFolder folder;
  const Variable variable({.initial_value = number(1)});
  Checkpoint checkpoint;
  checkpoint.add("v", variable);
  Json outcome{{"result", result(folder, checkpoint)}};
  outcome["files"] = folder.entries();
  return outcome;
}

Json name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Json saved_three_times(const Record& /*record*/) {
  return with_entries([](const CheckpointFolder& folder, Checkpoint& checkpoint) {
    Json names = Json::array();
    for (int step = 1; step <= 3; ++step) names.push_back(name_of(checkpoint.save(folder.path(), step)));
    return names;
  });
}

/// `[step, name or null]` for each of seven steps, and a last save that asks for no interval.
Json saved_if_due(std::int64_t interval, std::int64_t advance) {
  const CheckpointFolder folder;
  Managed managed(folder, 0, interval);
  Json outcome = Json::array();
  for (std::int64_t step = 0; step < 7 * advance; step += advance) {
    const auto path = managed.manager().save_if_due(step);
    outcome.push_back({step, path ? Json(name_of(*path)) : Json(nullptr)});
  }
  outcome.push_back({"check_interval=False", name_of(managed.manager().save(7 * advance))});
  return outcome;
}

Json saved_in_background(const Record& /*record*/) {
  const CheckpointFolder folder;
  Checkpoint checkpoint;
  const Variable variable({.initial_value = number(1)});
  checkpoint.add("v", variable);
  Json names = Json::array();
  for (int step = 1; step <= 2; ++step) names.push_back(name_of(checkpoint.save_async(folder.path(), step)));
  checkpoint.wait();
  return {names, folder.entries()};
}

Json written_twice(const Record& /*record*/) {
  return with_entries([](const CheckpointFolder& folder, Checkpoint& checkpoint) {
    Json names = Json::array();
    for (int i = 0; i < 2; ++i) names.push_back(name_of(checkpoint.save(folder.path(), 1)));
    return names;
  });
}

/// The original counts in the checkpoint; here it says its step.
Json counted_on(const Record& /*record*/) {
  return with_entries([](const CheckpointFolder& folder, Checkpoint& checkpoint) {
    checkpoint.save(folder.path(), 1);
    const std::string second = checkpoint.save(folder.path(), 2);
    Checkpoint another;
    const Variable variable({.initial_value = number(0)});
    another.add("v", variable);
    const std::int64_t step = another.restore(second).step();
    return Json{step, name_of(another.save(folder.path(), step + 1))};
  });
}

Json names_of_steps(int count) {
  Json names = Json::array();
  for (int step = 1; step <= count; ++step) names.push_back(fmt::format("step-{}", step));
  return names;
}

FamilyDifference instead(std::string_view why, const Json& outcome) {
  return {"*", why, [outcome](const Record& /*record*/) { return outcome; }};
}

}  // namespace

std::vector<Family> checkpoint_manager_families() {
  const auto without_fields = [](const Record& record) {
    Json outcome = record.outcome;
    outcome.erase("state_fields");
    return outcome;
  };
  return {
      {{"w2/checkpoint/default/manager_keep3"}, kept, {{"*", kNoStateFile, without_fields}}},
      {{"w2/checkpoint/default/manager_keep0"}, kept_all, {instead(kZeroKeepsAll, Json::array({"ckpt-1"}))}},
      {{"w2/checkpoint/default/manager_number"},
       kept_out_of_order,
       {instead(kBySteps, {"ckpt-10", "ckpt-5", "ckpt-7", {"ckpt-7", "ckpt-10"}, "ckpt-10"})}},
      {{"w2/checkpoint/default/manager_init_fn"}, restored_or_initialized},
      {{"w2/checkpoint/default/latest_empty"}, latest_of_nothing},
      {{"w2/checkpoint/default/latest_missing_file"}, latest_of_lost_files, {instead(kOlderOne, "ckpt-1")}},
      {{"w2/checkpoint/default/max_to_keep_external_delete"},
       kept_beside_deletions,
       {instead(kCheckpointFolder,
                Json::array({Json::array({"step-2", "step-3"}), Json::array({"ckpt-2", "ckpt-3"})}))}},
      {{"w2/checkpoint/default/save_names"},
       saved_three_times,
       {instead(kCheckpointFolder, {{"result", names_of_steps(3)}, {"files", names_of_steps(3)}})}},
      {{"w2/checkpoint/default/options_async"},
       saved_in_background,
       {instead(kCheckpointFolder, {names_of_steps(2), names_of_steps(2)})}},
      {{"w2/checkpoint/default/manager_interval3"},
       [](const Record& /*record*/) { return saved_if_due(3, 1); },
       {instead(kCheckpointFolder, {{0, "step-0"},
                                    {1, nullptr},
                                    {2, nullptr},
                                    {3, "step-3"},
                                    {4, nullptr},
                                    {5, nullptr},
                                    {6, "step-6"},
                                    {"check_interval=False", "step-7"}})}},
      {{"w2/checkpoint/default/manager_interval2_by3"},
       [](const Record& /*record*/) { return saved_if_due(2, 3); },
       {instead(kMultiples, {{0, "step-0"},
                             {3, nullptr},
                             {6, "step-6"},
                             {9, nullptr},
                             {12, "step-12"},
                             {15, nullptr},
                             {18, "step-18"},
                             {"check_interval=False", "step-21"}})}},
      {{"w2/checkpoint/default/write_names"}, written_twice, {instead(kNotOverwritten, an_error())}},
      {{"w2/checkpoint/default/save_counter_restored"},
       counted_on,
       {instead(kCheckpointFolder, {{"result", {2, "step-3"}}, {"files", names_of_steps(3)}})}}};
}

}  // namespace cohort::conformance
