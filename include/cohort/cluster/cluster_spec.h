// A ClusterSpec names the jobs of a cluster (chief, worker, ps, evaluator) and the
// address of each of their tasks. Task indices may have gaps. An immutable value.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

class ClusterSpec {
 public:
  using Tasks = std::map<int, std::string>;  ///< index to address

  /// No jobs: a single worker on its own.
  ClusterSpec() = default;

  /// Tasks of each job in order, for example `{{"worker", {"n0:2222", "n1:2222"}}}`.
  ClusterSpec(std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs);

  /// Tasks of each job by index. @throws InvalidArgument for a negative index.
  explicit ClusterSpec(std::map<std::string, Tasks, std::less<>> jobs);

  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  [[nodiscard]] std::vector<std::string> jobs() const;
  [[nodiscard]] bool has_job(std::string_view job) const { return jobs_.find(job) != jobs_.end(); }

  /// @throws InvalidArgument for an unknown job, naming the known ones.
  [[nodiscard]] const Tasks& tasks(std::string_view job) const&;
  // NOLINTNEXTLINE(readability-make-member-function-const): of temporaries, which a const one would not be
  [[nodiscard]] Tasks tasks(std::string_view job) && { return tasks(job); }  // outlives what it is asked of
  [[nodiscard]] int num_tasks(std::string_view job) const { return static_cast<int>(tasks(job).size()); }

  /// @throws InvalidArgument for an unknown job or index.
  [[nodiscard]] const std::string& task_address(std::string_view job, int index) const&;
  // NOLINTNEXTLINE(readability-make-member-function-const): likewise
  [[nodiscard]] std::string task_address(std::string_view job, int index) && {
    return task_address(job, index);
  }

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  std::map<std::string, Tasks, std::less<>> jobs_;
};

}  // namespace cohort
