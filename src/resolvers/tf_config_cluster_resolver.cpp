#include <cohort/resolvers/tf_config_cluster_resolver.h>

#include <charconv>

#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/cluster/cluster_spec_json.h>

#include "base/json.h"

namespace cohort {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTfConfigForm =
    R"({"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}})";

Json parse(const Environment& variables) {
  const auto found = variables.find("TF_CONFIG");
  if (found == variables.end()) return Json::object();
  Json config = parse_json<Json>(found->second, "TF_CONFIG", kTfConfigForm);
  // As in the original, which takes any empty value for an empty object.
  if (config.is_null() || (config.is_array() && config.empty())) return Json::object();
  if (!config.is_object()) throw InvalidArgument("TF_CONFIG is {}; write {}", quote(config), kTfConfigForm);
  return config;
}

std::optional<std::string> text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::optional<int> index_of(const Json& task) {
  const std::optional<std::string> text = text_of(task, "index");
  if (!text) return std::nullopt;
  int index = -1;
  const auto [end, status] = std::from_chars(text->data(), text->data() + text->size(), index);
  if (status != std::errc() || end != text->data() + text->size() || index < 0)
    throw InvalidArgument("TF_CONFIG: task.index is '{}'; it must be a whole number, at least 0", *text);
  return index;
}

ClusterSpec cluster_of(const Json& config) {
  const auto found = config.find("cluster");
  if (found == config.end()) return {};
  try {
    return cluster_spec_from_json(found->dump());
  } catch (const InvalidArgument& error) {
    throw InvalidArgument("TF_CONFIG: {}", error.what());
  }
}

/// A cluster whose only task has the number 0, or none at all, needs no address.
bool is_alone(const ClusterSpec& spec) {
  const std::vector<std::string> jobs = spec.jobs();
  if (jobs.size() != 1) return jobs.empty();
  const ClusterSpec::Tasks& tasks = spec.tasks(jobs.front());
  return tasks.empty() || tasks.rbegin()->first == 0;
}

}  // namespace

TfConfigClusterResolver::TfConfigClusterResolver(TfConfigOptions options, const Environment& variables)
    : options_(std::move(options)) {
  const Json config = parse(variables);
  const Json task = config.value("task", Json::object());
  if (!task.is_object()) throw InvalidArgument("TF_CONFIG: task is {}; write {}", quote(task), kTfConfigForm);
  spec_ = cluster_of(config);
  session_master_ = text_of(config, "session_master");
  if (!options_.task_type) options_.task_type = text_of(task, "type");
  if (!options_.task_id) options_.task_id = index_of(task);
  if (!options_.rpc_layer) options_.rpc_layer = text_of(config, "rpc_layer");
}

std::optional<std::string> TfConfigClusterResolver::common_master() const {
  return !session_master_ && is_alone(spec_) ? "" : session_master_;
}

std::string TfConfigClusterResolver::master() const {
  const std::optional<std::string> common = common_master();
  return common ? *common : ClusterResolver::master();
}

std::string TfConfigClusterResolver::master(std::string_view task_type, int task_id) const {
  const std::optional<std::string> common = common_master();
  return common ? *common : ClusterResolver::master(task_type, task_id);
}

}  // namespace cohort
