// What scenarios of several groups need.
#pragma once

#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "../scenario.h"

namespace cohort::conformance {

/// Layouts in which a worker has several replicas.
inline constexpr std::string_view kSeveralReplicas = "mirrored2 mirrored3 central2";

// The rows of "Deliberate differences" that scenarios of several groups refer to.
inline constexpr std::string_view kIdentity = "identity of objects";
inline constexpr std::string_view kConcurrent = "replicas run concurrently";
inline constexpr std::string_view kSharedTensor = "a shared tensor counts once per replica";
inline constexpr std::string_view kDefaultInside = "the default strategy inside a replica";
inline constexpr std::string_view kAlwaysPerReplica = "always PerReplica";

[[nodiscard]] inline Tensor number(double value) { return Tensor::scalar(static_cast<float>(value)); }

/// A tensor of float32 with these elements.
[[nodiscard]] inline Tensor tensor(std::vector<double> values, const Shape& shape) {
  const Tensor doubles = Tensor::from(std::span<const double>(values), shape);
  return doubles.cast(DType::kFloat32);
}
[[nodiscard]] inline Tensor vector(std::vector<double> values) {
  const auto elements = static_cast<std::int64_t>(values.size());
  return tensor(std::move(values), {elements});
}

/// What comes out when every local replica has `value`.
[[nodiscard]] inline Json on_each(const Layout& layout, const Json& value) {
  const Json list(layout.local_ids().size(), value);
  return list.size() == 1 ? value : Json{{"PerReplica", list}};
}

/// The original's name of the class of a strategy that is the layout's, or the default one.
[[nodiscard]] inline std::string class_of(const Layout& layout, const Strategy& strategy) {
  if (!(strategy == layout.strategy())) return has_strategy() ? "another" : "_DefaultDistributionStrategy";
  if (layout.is_default()) return "_DefaultDistributionStrategy";
  if (layout.is_one_device()) return "OneDeviceStrategy";
  if (layout.is_multi_worker()) return "CollectiveAllReduceStrategy";
  return layout.prefix() == "central2" ? "CentralStorageStrategy" : "MirroredStrategy";
}

/// The original's name of a device of the layout's worker.
[[nodiscard]] inline Json device_name(const Layout& layout, Device device) {
  return fmt::format("/job:{}/replica:0/task:{}/device:CPU:{}",
                     layout.is_multi_worker() ? "worker" : "localhost", layout.worker(), device.index());
}
[[nodiscard]] inline Json device_names(const Layout& layout, std::span<const Device> devices) {
  Json names = Json::array();
  for (const Device device : devices) names.push_back(device_name(layout, device));
  return names;
}

/// A variable of the layout's strategy, of shape [].
[[nodiscard]] inline Variable variable_of(const Layout& layout, double value) {
  const auto scope = layout.strategy().scope();
  return Variable({.initial_value = number(value)});
}

/// r + 1 in replica r.
[[nodiscard]] inline PerReplica<Tensor> counted(const Layout& layout) {
  return layout.each([](int r) { return number(r + 1); });
}

/// The context of the calling thread: [strategy's class, has_strategy, replica context,
/// in_cross_replica_context]
[[nodiscard]] inline Json state(const Layout& l) {
  const ReplicaContext* replica = get_replica_context();
  Json context = nullptr;
  if (replica != nullptr) {
    context = {has_strategy() ? "ReplicaContext" : "_DefaultReplicaContext",
               replica->replica_id_in_sync_group()};
  }
  const std::string name =
      has_strategy() ? class_of(l, get_strategy()) : std::string("_DefaultDistributionStrategy");
  return {name, has_strategy(), context, in_cross_replica_context()};
}

/// What a user's function throws.
struct MyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace cohort::conformance
