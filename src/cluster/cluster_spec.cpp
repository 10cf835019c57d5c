#include <cohort/cluster/cluster_spec.h>

#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort {

ClusterSpec::ClusterSpec(std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs) {
  for (const auto& [job, addresses] : jobs) {
    Tasks& tasks = jobs_[job];
    for (const std::string& address : addresses) tasks.emplace(static_cast<int>(tasks.size()), address);
  }
}

ClusterSpec::ClusterSpec(std::map<std::string, Tasks, std::less<>> jobs) : jobs_(std::move(jobs)) {
  for (const auto& [job, tasks] : jobs_) {
    if (!tasks.empty() && tasks.begin()->first < 0) {
      throw InvalidArgument("job '{}' has task {}; task indices start at 0", job, tasks.begin()->first);
    }
  }
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& entry : jobs_) names.push_back(entry.first);
  return names;
}

const ClusterSpec::Tasks& ClusterSpec::tasks(std::string_view job) const& {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    throw InvalidArgument("the cluster has no job '{}'; it has [{}]", job, fmt::join(jobs(), ", "));
  }
  return found->second;
}

const std::string& ClusterSpec::task_address(std::string_view job, int index) const& {
  const Tasks& known = tasks(job);
  const auto found = known.find(index);
  if (found == known.end()) {
    throw InvalidArgument("job '{}' has no task {}; it has {} tasks", job, index, known.size());
  }
  return found->second;
}

}  // namespace cohort
