// A cluster whose workers are threads of this process: code that needs a Bootstrap runs on it without a
// launcher.
#pragma once

#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/cluster/bootstrap.h>
#include <cohort/collective/thread_communicator.h>

#include "collective/packing/tensor_lists.h"

namespace cohort::testing {

/// What the workers of one cluster share.
class FakeCluster {
 public:
  explicit FakeCluster(int workers) {
    for (int rank = 0; rank < workers; ++rank) workers_.push_back({rank, 0, rank, "n0", 1000 + rank});
  }

  [[nodiscard]] std::span<const WorkerInfo> workers() const { return workers_; }

  /// The members of worker `rank` in its `index`-th communicator.
  std::vector<std::unique_ptr<Communicator>> take_seats(int index, int rank,
                                                        const CommunicationOptions& options, int members) {
    const std::lock_guard lock(mutex_);
    auto& seats = groups_[index];
    if (seats.empty())
      seats = make_thread_communicators(static_cast<int>(workers_.size()) * members, options);
    const auto first = seats.begin() + std::ptrdiff_t{rank} * members;
    return {std::make_move_iterator(first), std::make_move_iterator(first + members)};
  }

 private:
  std::vector<WorkerInfo> workers_;
  std::mutex mutex_;
  std::map<int, std::vector<std::unique_ptr<Communicator>>> groups_;
};

class FakeWorker final : public Bootstrap {
 public:
  FakeWorker(FakeCluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}

  [[nodiscard]] std::span<const WorkerInfo> workers() const override { return cluster_.workers(); }
  [[nodiscard]] int rank() const override { return rank_; }

  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(
      const CommunicationOptions& options) override {
    return std::move(make_communicators(options, 1).front());
  }

  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
      const CommunicationOptions& options, int members) override {
    return cluster_.take_seats(communicators_++, rank_, options, members);
  }

  [[nodiscard]] std::vector<std::string> exchange(std::string_view blob) override {
    const auto bytes = std::vector<std::uint8_t>(blob.begin(), blob.end());
    const auto extent = static_cast<std::int64_t>(bytes.size());
    const auto communicator = make_communicator({.timeout_seconds = 60});
    std::vector<std::string> blobs;
    for (const Tensor& tensor :
         all_gather_tensors(*communicator, Tensor::from(std::span<const std::uint8_t>(bytes), {extent}))) {
      const auto received = tensor.span<std::uint8_t>();
      blobs.emplace_back(received.begin(), received.end());
    }
    return blobs;
  }

  [[nodiscard]] std::unique_ptr<Bootstrap> split(int, int) override {
    throw Unimplemented("a fake cluster has no parts");
  }

 private:
  FakeCluster& cluster_;
  int rank_;
  int communicators_ = 0;
};

/// Calls `function` once per worker, each on a thread of its own.
inline void for_each_worker(int workers, const std::function<void(Bootstrap&)>& function) {
  FakeCluster cluster(workers);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers));
  for (int rank = 0; rank < workers; ++rank) {
    threads.emplace_back([&cluster, &function, rank] {
      FakeWorker worker(cluster, rank);
      try {
        function(worker);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "worker " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cohort::testing
