// Where a scenario takes place: a strategy, as the prefix of the recorded lines names it; and which of these
// layouts which program replays.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/bootstrap.h>
#include <cohort/strategy/strategy.h>

namespace cohort::conformance {

class Layout {
 public:
  /// `prefix` as in golden.jsonl, for example `mirrored2`; empty where no strategy takes part. Each call
  /// makes a new strategy; `bootstrap` is what the workers of `mwms2` share, and may be null elsewhere.
  Layout(std::string_view prefix, Bootstrap* bootstrap);

  /// Whether this version has the strategy.
  [[nodiscard]] static bool exists(std::string_view prefix);

  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  [[nodiscard]] const Strategy& strategy() const noexcept { return strategy_; }

  [[nodiscard]] bool is_default() const noexcept { return prefix_ == "default1"; }
  [[nodiscard]] bool is_one_device() const noexcept { return prefix_ == "onedevice1"; }
  [[nodiscard]] bool is_multi_worker() const noexcept { return prefix_ == "mwms2"; }
  [[nodiscard]] int replicas() const { return strategy_.num_replicas_in_sync(); }
  [[nodiscard]] int worker() const noexcept { return bootstrap_ == nullptr ? 0 : bootstrap_->rank(); }

  /// The replicas' numbers among all: those of this worker.
  [[nodiscard]] std::vector<int> local_ids() const;

  /// A PerReplica of `make(r)`, for each local replica r.
  template <class Make>
  [[nodiscard]] auto each(Make make) const {
    std::vector<decltype(make(0))> components;
    for (const int id : local_ids()) components.push_back(make(id));
    return PerReplica(std::move(components));
  }

  /// `strategy().run` of a function of the replica's number.
  template <class Function>
  auto run(Function function) const {
    return strategy_.run(
        [&](ReplicaContext& replica) { return function(replica.replica_id_in_sync_group()); });
  }

 private:
  std::string prefix_;
  Bootstrap* bootstrap_;
  Strategy strategy_;
};

/// Layouts of one process; "" for lines without a strategy.
inline constexpr std::array<std::string_view, 6> kDeviceLayouts{"",          "default1",  "onedevice1",
                                                                "mirrored2", "mirrored3", "central2"};
/// The layout of two ranks.
inline constexpr std::string_view kWorkersLayout = "mwms2";

/// Lines about training, whose strategies are the scenarios' own.
inline constexpr std::string_view kTrainingLayout = "training";

/// Layouts whose tasks are processes. Their strategies are the scenarios' own.
inline constexpr std::array<std::string_view, 10> kTaskLayouts{
    "ps11", "ps22",          "ps_w1_p1",   "ps_w2_p1",   "ps_w2_p2",
    "psv1", "psv1_c1_w1_p1", "psv1_w1_p1", "psv1_w2_p2", "psv1_w2_p3"};

[[nodiscard]] constexpr bool is_device_layout(std::string_view layout) {
  return std::ranges::find(kDeviceLayouts, layout) != kDeviceLayouts.end();
}
[[nodiscard]] constexpr bool is_task_layout(std::string_view layout) {
  return std::ranges::find(kTaskLayouts, layout) != kTaskLayouts.end();
}

}  // namespace cohort::conformance
