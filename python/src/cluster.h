// The ranks of a process group as Cohort's workers. They find each other through the key-value store of
// PyTorch's rendezvous; MPI is not needed.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cohort/rendezvous/session.h>

namespace cohort::pytorch {

/// Collective over all ranks. @throws Error naming ranks that do not come in time.
[[nodiscard]] std::unique_ptr<rendezvous::Group> connect(const c10::intrusive_ptr<c10d::Store>& store,
                                                         int rank, int size,
                                                         std::chrono::milliseconds timeout);

}  // namespace cohort::pytorch
