// The ranks of a process group as Cohort's workers. They find each other through the key-value store of
// PyTorch's rendezvous; MPI is not needed.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cohort/collective/communicator.h>

namespace cohort::pytorch {

class Cluster {
 public:
  /// Collective over all ranks. @throws Error naming ranks that do not come in time.
  Cluster(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::chrono::milliseconds timeout);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Collective over all ranks.
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(const CommunicationOptions& options);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::pytorch
