// What scenarios of several groups need.
#pragma once

#include <stdexcept>
#include <string_view>

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

/// What a user's function throws.
struct MyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace cohort::conformance
