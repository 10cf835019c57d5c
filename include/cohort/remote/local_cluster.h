// The tasks of a whole cluster in this process, for tests and for programs that play all roles in threads or
// forked children: each task listens on the loopback interface and on an abstract local socket, and a `ps`
// has a memory file.
//
//     LocalCluster cluster({{"chief", 1}, {"worker", 2}, {"ps", 2}});
//     const TaskPlace place = cluster.place({"worker", 1});
//
// Owns the descriptors of all places: it outlives who uses them. Any thread may read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/remote/task_place.h>

namespace cohort::remote {

class LocalCluster {
 public:
  /// Jobs and how many tasks each has. @throws InvalidArgument for a job that clusters do not have or that is
  /// given twice, a number below 1, and more than one chief or evaluator; Unavailable when the system
  /// refuses.
  explicit LocalCluster(const std::vector<std::pair<std::string, int>>& jobs);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  /// By job in the order given, then by index.
  [[nodiscard]] std::span<const TaskPlace> places() const noexcept { return places_; }

  /// @throws InvalidArgument for a task that the cluster does not have.
  [[nodiscard]] const TaskPlace& place(const ClusterTask& task) const;

 private:
  class Listeners;
  std::unique_ptr<Listeners> listeners_;
  std::vector<TaskPlace> places_;
};

}  // namespace cohort::remote
