#include <cohort/resolvers/union_cluster_resolver.h>

#include <algorithm>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using JobParts = std::map<std::string, std::vector<ClusterSpec::Tasks>, std::less<>>;

bool has_gaps(const ClusterSpec::Tasks& tasks) {
  return !tasks.empty() && tasks.rbegin()->first != static_cast<int>(tasks.size()) - 1;
}

ClusterSpec::Tasks appended(const std::vector<ClusterSpec::Tasks>& parts) {
  ClusterSpec::Tasks all;
  for (const ClusterSpec::Tasks& part : parts)
    for (const auto& [index, address] : part) all.emplace(static_cast<int>(all.size()), address);
  return all;
}

ClusterSpec::Tasks merged(const std::string& job, const std::vector<ClusterSpec::Tasks>& parts) {
  ClusterSpec::Tasks all;
  for (const ClusterSpec::Tasks& part : parts) {
    for (const auto& [index, address] : part) {
      const auto [place, is_new] = all.emplace(index, address);
      if (!is_new)
        throw InvalidArgument("two of the united clusters have a task {} of the job '{}': {} and {}", index,
                              job, place->second, address);
    }
  }
  return all;
}

}  // namespace

UnionClusterResolver::UnionClusterResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers,
                                           UnionClusterOptions options)
    : resolvers_(std::move(resolvers)), options_(std::move(options)) {
  if (resolvers_.empty()) throw InvalidArgument("a union of clusters needs at least one resolver");
}

ClusterSpec UnionClusterResolver::cluster_spec() const {
  JobParts parts;
  for (const auto& resolver : resolvers_) {
    const ClusterSpec spec = resolver->cluster_spec();
    for (const std::string& job : spec.jobs()) parts[job].push_back(spec.tasks(job));
  }
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const auto& [job, tasks] : parts)
    jobs.emplace(job, std::ranges::any_of(tasks, has_gaps) ? merged(job, tasks) : appended(tasks));
  return ClusterSpec(std::move(jobs));
}

std::optional<std::string> UnionClusterResolver::task_type() const {
  return options_.task_type ? options_.task_type : first().task_type();
}

std::optional<int> UnionClusterResolver::task_id() const {
  return options_.task_id ? options_.task_id : first().task_id();
}

std::string UnionClusterResolver::rpc_layer() const {
  return options_.rpc_layer ? *options_.rpc_layer : first().rpc_layer();
}

}  // namespace cohort
