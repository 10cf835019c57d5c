// What restores find: names that match or do not, other shapes and dtypes, variables that come later, files
// that are missing or damaged.
#include <filesystem>
#include <map>

#include "checkpoints.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kEachName = "each name is a value of its own";

/// Numbers as variables of these names.
using Numbers = std::map<std::string, double>;

/// What is saved, and the variables that are there when it is restored.
struct Match {
  Numbers saved;
  Numbers present;
  std::vector<std::string> attributes = {};  ///< of which the line has values
};

Match match_named(const std::string& name) {
  static const std::map<std::string, Match> kMatches{
      {"exact", {{{"a", 1}, {"b", 2}}, {{"a", 0}, {"b", 0}}, {"a", "b"}}},
      {"missing_in_object", {{{"a", 1}, {"b", 2}}, {{"a", 0}}, {"a"}}},
      {"missing_in_file", {{{"a", 1}}, {{"a", 0}, {"b", 5}}, {"a", "b"}}},
      {"nothing_common", {{{"a", 1}}, {{"z", 5}}, {"z"}}},
      {"list", {{{"l/0", 1}, {"l/1", 2}}, {{"l/0", 0}, {"a", 7}}, {"a"}}},
      {"dict", {{{"d/x", 1}}, {{"d/x", 0}}}}};
  return kMatches.at(name);
}

std::map<std::string, Variable> variables_of(const Numbers& numbers) {
  std::map<std::string, Variable> variables;
  for (const auto& [name, value] : numbers)
    variables.emplace(name, Variable({.initial_value = number(value)}));
  return variables;
}

void add(Checkpoint& checkpoint, const std::map<std::string, Variable>& variables) {
  for (const auto& [name, variable] : variables) checkpoint.add(name, variable);
}

/// `expected` is how many variables there are.
Json judged(const RestoreStatus& status, std::size_t expected) {
  Json outcome;
  outcome["assert_consumed"] = verdict_of([&] { status.assert_consumed(); });
  outcome["assert_existing_objects_matched"] = verdict_of([&] { status.assert_existing_restored(); });
  // The original's own assertion that anything matches; here the program asks how much is missing.
  outcome["assert_nontrivial_match"] = status.missing().size() < expected ? "ok" : "AssertionError";
  outcome["expect_partial"] = verdict_of([&] { status.expect_partial(); });
  return outcome;
}

std::string save(const CheckpointFolder& folder, const std::map<std::string, Variable>& variables) {
  Checkpoint checkpoint;
  add(checkpoint, variables);
  return checkpoint.save(folder.path(), 1);
}

Json matched(const Record& record) {
  const CheckpointFolder folder;
  const Match match = match_named(record.arguments.at("case").get<std::string>());
  const std::string path = save(folder, variables_of(match.saved));
  const auto variables = variables_of(match.present);
  Checkpoint checkpoint;
  add(checkpoint, variables);
  Json outcome = judged(checkpoint.restore(path), variables.size());
  outcome["values"] = Json::object();
  for (const std::string& name : match.attributes)
    outcome["values"][name] = {{"Variable", show(variables.at(name).read())}};
  return outcome;
}

/// One variable under two names that had different values.
Json matched_twice(const Record& /*record*/) {
  const CheckpointFolder folder;
  const std::string path = save(folder, variables_of({{"a", 3}, {"b", 4}}));
  const Variable shared({.initial_value = number(0)});
  Checkpoint checkpoint;
  add(checkpoint, {{"a", shared}, {"b", shared}});
  Json outcome = judged(checkpoint.restore(path), 2);
  const Json value{{"Variable", show(shared.read())}};
  outcome["values"] = {{"a", value}, {"b", value}};
  return outcome;
}

/// The last name's value.
Json value_of_last_name(const Record& record) {
  Json outcome = record.outcome;
  const Json value{{"Variable", 4.0}};
  outcome["values"] = {{"a", value}, {"b", value}};
  return outcome;
}

// ---- shapes and dtypes

Tensor numbers_of(const Json& elements, DType dtype) {
  const Tensor all =
      elements.is_array() ? vector(elements.get<std::vector<double>>()) : number(elements.get<double>());
  return all.cast(dtype);
}

DType dtype_of(const Json& elements) {
  const Json& first = elements.is_array() ? elements.at(0) : elements;
  return first.is_number_integer() ? DType::kInt32 : DType::kFloat32;
}

Json into_another(const Record& record) {
  const CheckpointFolder folder;
  const Json& from = record.arguments.at("A");
  const Json& to = record.arguments.at("B");
  const DType dtype = case_of(record) == "mismatch_float64" ? DType::kFloat64 : dtype_of(to);
  const std::string path = folder.save(Variable({.initial_value = numbers_of(from, dtype_of(from))}));
  restore(path, Variable({.initial_value = numbers_of(to, dtype)}));
  return "restored";
}

Json round_trip(const Tensor& value) {
  const CheckpointFolder folder;
  const std::string path = folder.save(Variable({.initial_value = value}));
  const Variable variable({.initial_value = Tensor::zeros(value.shape(), value.dtype())});
  restore(path, variable);
  return {{"Variable", show(variable.read())}};
}

Json of_dtype(const Record& record) {
  const DType dtype = parse_dtype(record.arguments.at("dtype").get<std::string>());
  return round_trip(numbers_of(record.arguments.at("value"), dtype));
}

Json of_bool(const Record& record) {
  Json outcome = of_dtype(record);
  for (Json& element : outcome.at("Variable")) element = element.get<double>() != 0;
  return outcome;
}

Json of_shape(const Record& record) {
  const Shape shape(record.arguments.at("shape").get<std::vector<std::int64_t>>());
  return round_trip(Tensor::full(shape, DType::kFloat32, 1));
}

Json of_texts(const Record& record) {
  const CheckpointFolder folder;
  auto texts = record.arguments.at("value").get<std::vector<std::string>>();
  std::string path;
  {
    Checkpoint checkpoint;
    checkpoint.add("v", texts);
    path = checkpoint.save(folder.path(), 1);
  }
  std::vector<std::string> restored(texts.size());
  Checkpoint checkpoint;
  checkpoint.add("v", restored);
  checkpoint.restore(path).assert_consumed();
  return {{"Variable", restored}};
}

// ---- variables that come later

/// [1, 2], or the number 1, restored into a variable that is made and changed after the restore.
Json restored_later(const Record& record) {
  const CheckpointFolder folder;
  const bool is_assigned = case_of(record) == "deferred_after_assign";
  const Tensor saved = is_assigned ? number(1) : vector({1, 2});
  const std::string path = folder.save(Variable({.initial_value = saved}));
  const std::string name = case_of(record).substr(std::string("deferred_").size());
  const Strategy strategy = strategy_named(is_assigned ? "default" : name);
  const auto scope = strategy.scope();
  Checkpoint checkpoint;
  const RestoreStatus status = checkpoint.restore(path);
  const Variable variable({.initial_value = Tensor::zeros(saved.shape(), DType::kFloat32)});
  if (is_assigned) variable.assign(number(9));
  checkpoint.add("v", variable);
  status.assert_consumed();
  if (name.starts_with("mirrored")) return {{"MirroredVariable", show_components(variable)}};
  return {{"Variable", show(variable.read())}};
}

// ---- files

Json of_missing_file(const Record& /*record*/) {
  restore("/nonexistent/step-1", Variable({.initial_value = number(1)}));
  return "restored";
}

Json of_truncated_manifest(const Record& /*record*/) {
  const CheckpointFolder folder;
  const std::string path = folder.save(Variable({.initial_value = number(1)}));
  const std::filesystem::path manifest = std::filesystem::path(path) / "manifest.json";
  std::filesystem::resize_file(manifest, std::filesystem::file_size(manifest) / 2);
  restore(path, Variable({.initial_value = number(0)}));
  return "restored";
}

Json into_new_folder(const Record& /*record*/) {
  const CheckpointFolder folder;
  const std::filesystem::path parent = std::filesystem::path(folder.path()) / "a" / "b";
  Checkpoint checkpoint;
  const Variable variable({.initial_value = number(1)});
  checkpoint.add("v", variable);
  checkpoint.save(parent.string(), 1);
  Json names = Json::array();
  for (const FoundCheckpoint& found : list_checkpoints(parent.string()))
    names.push_back(std::filesystem::path(found.path).filename().string());
  return names;
}

}  // namespace

std::vector<Family> checkpoint_matching_families() {
  return {{{"w2/checkpoint/default/match_unshared_to_shared"},
           matched_twice,
           {{"*", kEachName, value_of_last_name}}},
          {{"w2/checkpoint/default/match_*"}, matched},
          {{"w2/checkpoint/default/mismatch_*"}, into_another},
          {{"w2/checkpoint/default/dtype_string"}, of_texts},
          {{"w2/checkpoint/default/dtype_bool"}, of_bool},
          {{"w2/checkpoint/default/dtype_*"}, of_dtype},
          {{"w2/checkpoint/default/shape_*"}, of_shape},
          {{"w2/checkpoint/default/deferred_*"}, restored_later},
          {{"w2/checkpoint/default/restore_missing_file"}, of_missing_file},
          {{"w2/checkpoint/default/restore_truncated_index"}, of_truncated_manifest},
          {{"w2/checkpoint/default/write_no_dir"},
           into_new_folder,
           {{"*", kCheckpointFolder, [](const Record& /*record*/) { return Json::array({"step-1"}); }}}}};
}

}  // namespace cohort::conformance
