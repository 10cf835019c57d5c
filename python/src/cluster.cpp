#include "cluster.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "collective/host_communicators.h"
#include "device/node_memory.h"

namespace cohort::pytorch {

class Cluster::Impl {
 public:
  Impl(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::chrono::milliseconds timeout)
      : store_(std::move(store)), rank_(rank), size_(size), timeout_(timeout) {
    std::array<char, HOST_NAME_MAX + 1> host{};
    ::gethostname(host.data(), host.size() - 1);
    const std::vector<std::string> hosts = exchange(fmt::format("{}/{}", ::getpid(), host.data()));
    for (int other = 0; other < size; ++other) {
      const std::string& text = hosts[static_cast<std::size_t>(other)];
      const std::size_t slash = text.find('/');
      WorkerInfo worker;
      worker.rank = other;
      worker.local_rank = other;
      worker.pid = std::stoll(text.substr(0, slash));
      worker.host = text.substr(slash + 1);
      workers_.push_back(std::move(worker));
    }
    memory_ = NodeMemory::connect(rank, workers_, [this](std::string_view blob) { return exchange(blob); });
  }

  std::unique_ptr<Communicator> make_communicator(const CommunicationOptions& options) {
    NodeGroupOptions group;
    group.memory = memory_;
    group.workers = workers_;
    group.rank = rank_;
    group.exchange = [this](std::string_view blob) { return exchange(blob); };
    group.communication = options;
    return std::move(make_node_communicators(group).front());
  }

 private:
  std::vector<std::string> exchange(std::string_view blob) {
    const std::string prefix = fmt::format("{}/", rounds_++);
    store_->set(prefix + std::to_string(rank_), std::string(blob));
    std::vector<std::string> blobs;
    for (int other = 0; other < size_; ++other) {
      const std::string key = prefix + std::to_string(other);
      store_->wait({key}, timeout_);
      blobs.push_back(store_->get_to_str(key));
    }
    return blobs;
  }

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  int rounds_ = 0;
  std::vector<WorkerInfo> workers_;
  std::shared_ptr<const NodeMemory> memory_;
};

Cluster::Cluster(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::chrono::milliseconds timeout)
    : impl_(std::make_unique<Impl>(std::move(store), rank, size, timeout)) {}
Cluster::~Cluster() = default;

std::unique_ptr<Communicator> Cluster::make_communicator(const CommunicationOptions& options) {
  return impl_->make_communicator(options);
}

}  // namespace cohort::pytorch
