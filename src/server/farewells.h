// Which tasks of the training have ended their part. It lies in the server's store, so that a server that is
// started again does not wait for those who have gone. One thread.
#pragma once

#include <cstddef>
#include <vector>

#include <cohort/remote/task_place.h>

#include "server/store.h"

namespace cohort::server {

class Farewells {
 public:
  Farewells(Store& store, const remote::TaskPlace& place);

  /// A chief or worker has ended its part, and will not come back.
  void add(const ClusterTask& task);

  [[nodiscard]] bool are_any() const { return count() > 0; }
  /// Whether chief and workers all have.
  [[nodiscard]] bool are_complete() const { return count() == std::ssize(tasks_); }

 private:
  [[nodiscard]] bool has(std::size_t task) const;
  [[nodiscard]] std::ptrdiff_t count() const;

  Store& store_;
  std::vector<ClusterTask> tasks_;  ///< of the job
};

}  // namespace cohort::server
