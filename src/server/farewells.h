// Which tasks of the training have ended their part. It lies in the server's store, so that a server that is
// started again does not wait for those who have gone. One thread.
#pragma once

#include <string>
#include <vector>

#include <cohort/remote/task_place.h>

#include "server/store.h"

namespace cohort::server {

class Farewells {
 public:
  Farewells(Store& store, const remote::TaskPlace& place);

  /// A chief or worker has ended its part, and will not come back.
  void add(const ClusterTask& task);

  /// Whether chief and workers all have.
  [[nodiscard]] bool are_complete() const;

 private:
  [[nodiscard]] bool has(std::size_t task) const;

  Store& store_;
  std::vector<ClusterTask> tasks_;  ///< of the job
};

}  // namespace cohort::server
