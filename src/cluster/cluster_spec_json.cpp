#include <cohort/cluster/cluster_spec_json.h>

#include <charconv>

#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "json_text.h"

namespace cohort {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kForm = R"({"worker": ["host:port", ...], "ps": {"3": "host:port"}})";

const std::string& address_of(const Json& value, const std::string& job) {
  if (const auto* address = value.get_ptr<const std::string*>()) return *address;
  throw InvalidArgument("job '{}' has the task {}; a task is the address \"host:port\"", job, quote(value));
}

int index_of(const std::string& key, const std::string& job) {
  int index = -1;
  const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (status != std::errc() || end != key.data() + key.size() || index < 0)
    throw InvalidArgument("job '{}' has a task '{}'; tasks are numbered from 0", job, key);
  return index;
}

ClusterSpec::Tasks tasks_of(const Json& value, const std::string& job) {
  ClusterSpec::Tasks tasks;
  if (value.is_array()) {
    for (const Json& address : value) tasks.emplace(static_cast<int>(tasks.size()), address_of(address, job));
  } else if (value.is_object()) {
    for (const auto& [key, address] : value.items())
      tasks.emplace(index_of(key, job), address_of(address, job));
  } else {
    throw InvalidArgument("job '{}' is {}; give a list of addresses, or an object of addresses by index", job,
                          quote(value));
  }
  return tasks;
}

bool has_no_gaps(const ClusterSpec::Tasks& tasks) {
  return tasks.empty() || tasks.rbegin()->first == static_cast<int>(tasks.size()) - 1;
}

}  // namespace

ClusterSpec cluster_spec_from_json(std::string_view json) {
  const Json spec = parse_json(json, "the cluster", kForm);
  if (!spec.is_object()) throw InvalidArgument("the cluster is {}; write {}", quote(spec), kForm);
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const auto& [job, tasks] : spec.items()) jobs.emplace(job, tasks_of(tasks, job));
  return ClusterSpec(std::move(jobs));
}

std::string to_json(const ClusterSpec& spec) {
  Json json = Json::object();
  for (const std::string& job : spec.jobs()) {
    const ClusterSpec::Tasks& tasks = spec.tasks(job);
    Json& addresses = json[job] = has_no_gaps(tasks) ? Json::array() : Json::object();
    for (const auto& [index, address] : tasks) {
      if (addresses.is_array())
        addresses.push_back(address);
      else
        addresses[std::to_string(index)] = address;
    }
  }
  return json.dump();
}

}  // namespace cohort
