#include <cohort/resolvers/kubernetes_cluster_resolver.h>

#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/json.h"

namespace cohort {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPodForm =
    R"({"items": [{"metadata": {"name": ..., "labels": {...}}, "status": {"phase": "Running", "podIP": ...}}]})";

/// The text at `pointer`, as in `/metadata/name`; nothing where there is none.
std::optional<std::string> text_at(const Json& pod, const char* pointer) {
  const Json::json_pointer path(pointer);
  if (!pod.contains(path)) return std::nullopt;
  const auto* text = pod.at(path).get_ptr<const std::string*>();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

bool has_label(const Json& pod, const std::string& job, const std::string& label) {
  const std::size_t equals = label.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InvalidArgument("job '{}' has the label '{}'; a label is key=value", job, label);
  const auto metadata = pod.find("metadata");
  if (metadata == pod.end() || !metadata->is_object()) return false;
  const auto labels = metadata->find("labels");
  if (labels == metadata->end() || !labels->is_object()) return false;
  const auto value = labels->find(label.substr(0, equals));
  return value != labels->end() && value->is_string() &&
         value->get<std::string>() == label.substr(equals + 1);
}

std::string name_of(const Json& pod, std::size_t number) {
  if (const auto name = text_at(pod, "/metadata/name")) return *name;
  throw InvalidArgument("the list of pods: item {} has no metadata.name; it is {}", number, kPodForm);
}

std::string address_of(const Json& pod, const std::string& name) {
  const std::string phase = text_at(pod, "/status/phase").value_or("unknown");
  if (phase != "Running")
    throw Unavailable("pod '{}' is {}, not Running; wait for all pods of the job", name, phase);
  std::string address = text_at(pod, "/status/podIP").value_or("");
  if (!address.empty()) return address;
  throw Unavailable("pod '{}' has no status.podIP yet; wait for all pods of the job", name);
}

/// The sort key of a pod among those of its job, whose names end in numbers: `worker-10` comes after
/// `worker-2`.
std::tuple<std::string_view, std::size_t, std::string_view> place_of(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return {name.substr(0, digits), name.size(), name};
}

struct ByNumber {
  bool operator()(std::string_view a, std::string_view b) const { return place_of(a) < place_of(b); }
};

/// The pods with that label, by name.
std::map<std::string, const Json*, ByNumber> pods_of(const Json& items, const std::string& job,
                                                     const std::string& label) {
  std::map<std::string, const Json*, ByNumber> pods;
  std::size_t number = 0;
  for (const Json& pod : items) {
    if (!pod.is_object())
      throw InvalidArgument("the list of pods: item {} is {}; write {}", number, quote(pod), kPodForm);
    if (has_label(pod, job, label)) pods.emplace(name_of(pod, number), &pod);
    ++number;
  }
  return pods;
}

}  // namespace

KubernetesClusterResolver::KubernetesClusterResolver(std::string_view pods, KubernetesOptions options,
                                                     const Environment& variables)
    : options_(std::move(options)) {
  const Json list = parse_json<Json>(pods, "the list of pods", kPodForm);
  const auto items = list.find("items");
  if (!list.is_object() || items == list.end() || !items->is_array())
    throw InvalidArgument("the list of pods is {}; write {}", quote(list), kPodForm);

  const auto hostname = variables.find("HOSTNAME");
  const std::string own_pod = options_.own_pod.value_or(hostname == variables.end() ? "" : hostname->second);
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const auto& [job, label] : options_.jobs) {
    ClusterSpec::Tasks& tasks = jobs[job];
    for (const auto& [name, pod] : pods_of(*items, job, label)) {
      const auto id = static_cast<int>(tasks.size());
      tasks.emplace(id, fmt::format("{}:{}", address_of(*pod, name), options_.port));
      if (name == own_pod) own_ = {job, id};
    }
  }
  spec_ = ClusterSpec(std::move(jobs));
}

std::optional<std::string> KubernetesClusterResolver::task_type() const {
  return own_ ? std::optional(own_->type) : std::nullopt;
}

std::optional<int> KubernetesClusterResolver::task_id() const {
  return own_ ? std::optional(own_->id) : std::nullopt;
}

std::string KubernetesClusterResolver::master() const {
  return own_ ? ClusterResolver::master() : std::string();
}

}  // namespace cohort
