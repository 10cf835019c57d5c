// Workers that meet over one MPI communicator, as a Bootstrap: all workers of a Session, or
// those that play one role. The Session outlives its groups.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/bootstrap.h>

#include "calls.h"
#include "cluster/agreement.h"
#include "collective/host_communicators.h"
#include "collective/record/call_record.h"
#include "device/node_memory.h"
#include "environment.h"
#include "worker_exchange.h"

namespace cohort::mpi {

class WorkerGroup final : public Bootstrap {
 public:
  /// `workers` are the members of `comm`, by rank.
  WorkerGroup(std::shared_ptr<MpiEnvironment> environment, Comm comm, std::vector<WorkerInfo> workers);
  ~WorkerGroup() override;

  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Finds out who can reach whose memory; before communicators are made. Collective.
  void connect_memory();

  /// The workers with the nodes that communicators have.
  [[nodiscard]] const std::vector<WorkerInfo>& workers_by_memory() const noexcept { return nodes_; }

  /// Of the communicators that are made from now on.
  void set_observer(std::shared_ptr<RecordObserver> observer) noexcept { observer_ = std::move(observer); }

  /// Returns when all workers have come here, and gives MPI's communicator back. Collective.
  void close();

  [[nodiscard]] std::span<const WorkerInfo> workers() const override { return workers_; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<std::string> exchange(std::string_view blob) override;
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(const CommunicationOptions& options) override;
  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
      const CommunicationOptions& options, int members) override;
  [[nodiscard]] std::unique_ptr<Bootstrap> split(int color, int key) override;

 private:
  [[nodiscard]] std::vector<AgreedSettings> exchange_settings(const AgreedSettings& own);
  [[nodiscard]] bool on_one_node() const;
  /// Whether workers of one machine are on nodes of their own, for they share no memory.
  [[nodiscard]] bool neighbours_are_apart() const;
  void require_threads_may_communicate(std::span<const AgreedSettings> by_worker) const;
  [[nodiscard]] NodeGroupOptions node_options(const CommunicationOptions& options, int members);

  std::shared_ptr<MpiEnvironment> environment_;
  Comm comm_;
  std::vector<WorkerInfo> workers_;
  int rank_;
  std::optional<WorkerExchange> exchange_;
  std::shared_ptr<const NodeMemory> node_memory_;
  /// The workers with the nodes that communicators have: each of those that cannot share memory has its own.
  std::vector<WorkerInfo> nodes_;
  std::shared_ptr<RecordObserver> observer_;
};

}  // namespace cohort::mpi
