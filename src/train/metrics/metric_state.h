// What the handles of a metric share: its rule, and the sums of each local replica.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/metrics/metric.h>

namespace cohort {

class MetricState {
 public:
  MetricState(std::string name, std::shared_ptr<const MetricRule> rule);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const MetricRule& rule() const noexcept { return *rule_; }
  [[nodiscard]] const Strategy& strategy() const noexcept { return strategy_; }
  [[nodiscard]] std::size_t sums() const noexcept { return size_; }
  [[nodiscard]] std::size_t local_replicas() const noexcept { return replicas_; }

  /// The sums of a local replica.
  [[nodiscard]] std::span<double> replica(std::size_t local) noexcept {
    return std::span(sums_).subspan(local * stride_, size_);
  }

  void bind(const Strategy& strategy);
  void update(const MetricBatch& batch);

  /// `change(sums)` on the sums of the replica that runs; outside replicas, on sums of which each replica
  /// gets its part.
  template <class Change>
  void change(Change change) {
    const int running = running_replica("update_state");
    if (running >= 0) return change(replica(static_cast<std::size_t>(running)));
    if (strategy_.num_replicas_in_sync() == 1) return change(replica(0));
    std::ranges::fill(shared_, 0.0);
    change(std::span(shared_));
    share_out();
  }
  void reset();
  [[nodiscard]] Tensor result();

  /// The sums over this worker's replicas, in their order.
  void add_up(std::span<double> total) const;

  /// @throws WrongContext inside replicas, and where another strategy is active.
  void require_cross_replica(const char* what) const;

 private:
  /// The local replica that runs, or -1 outside replicas. @throws WrongContext where another strategy is
  /// active.
  [[nodiscard]] int running_replica(const char* what) const;
  void share_out();

  std::string name_;
  std::shared_ptr<const MetricRule> rule_;
  Strategy strategy_;
  std::size_t size_;
  std::size_t stride_;  // of replicas, which share no cache line
  std::size_t replicas_ = 0;
  std::vector<double> sums_;
  std::vector<double> shared_;  // those of an update outside replicas, before they are divided
};

/// The fingerprint of a metric in a collective of several.
[[nodiscard]] std::uint64_t fingerprint_of(const MetricState& metric);

/// Adds up `sums` over the workers; `names()` says for messages whose they are.
template <class Names>
void add_up_over_workers(const Strategy& strategy, std::uint64_t fingerprint, const Tensor& sums,
                         Names names) {
  StrategyExtended& extended = strategy.extended();
  if (extended.workers() == 1) return;
  PurposeOf purpose(fingerprint, Caller::kWorker, [&] {
    return PurposeWords{"adds up metrics", fmt::format("{} numbers: {}", sums.elements(), names())};
  });
  Communicator& communicator = extended.workers_communicator();
  const CommunicationScope scope(communicator, {}, purpose);
  communicator.all_reduce(sums, ReduceOp::kSum);
}

}  // namespace cohort
