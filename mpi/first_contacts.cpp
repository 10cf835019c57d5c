#include "first_contacts.h"

#include <cstddef>
#include <thread>
#include <vector>

namespace cohort::mpi {
namespace {

/// Each of them has up to 63 connections.
constexpr std::size_t kMostWorkers = 64;
/// No other message over the communicator of a session has it.
constexpr int kContactTag = 2;

}  // namespace

void make_first_contacts(MPI_Comm comm, std::span<const WorkerInfo> workers) {
  if (workers.size() > kMostWorkers) return;
  const auto rank = static_cast<std::size_t>(comm_rank(comm));
  std::vector<MPI_Request> sends;
  const auto greet = [&](const WorkerInfo& other) {
    sends.push_back(isend(nullptr, 0, MPI_BYTE, other.rank, kContactTag, comm));
  };
  const auto hear = [&](const WorkerInfo& other) {
    recv(nullptr, 0, MPI_BYTE, other.rank, kContactTag, comm);
  };
  const auto is_elsewhere = [&](const WorkerInfo& other) { return other.node != workers[rank].node; };

  for (const WorkerInfo& other : workers.subspan(rank))
    if (is_elsewhere(other)) greet(other);
  for (const WorkerInfo& other : workers.first(rank)) {
    if (!is_elsewhere(other)) continue;
    hear(other);
    greet(other);
  }
  for (const WorkerInfo& other : workers.subspan(rank))
    if (is_elsewhere(other)) hear(other);
  for (MPI_Request& send : sends) {
    while (!test(send)) std::this_thread::yield();
  }
}

}  // namespace cohort::mpi
