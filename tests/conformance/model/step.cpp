#include "step.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cohort::model {
namespace {

template <std::size_t kSize, class Enum>
const char* name(const std::array<const char*, kSize>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

constexpr std::array kKinds{"default", "one_device", "mirrored", "central_storage"};
constexpr std::array kPlaces{"outside", "scope",  "foreign scope", "replica",
                             "merge",   "update", "replica update"};
constexpr std::array kActions{"make",
                              "assign",
                              "assign_add",
                              "assign_sub",
                              "assign number",
                              "scatter_add",
                              "scatter_sub",
                              "scatter_mul",
                              "scatter_div",
                              "scatter_min",
                              "scatter_max",
                              "scatter_update",
                              "read",
                              "moving_average",
                              "reduce",
                              "reduce_along",
                              "reduce_to",
                              "batch_reduce_to",
                              "gather",
                              "broadcast_to",
                              "all_reduce",
                              "all_reduce_in_place",
                              "all_gather",
                              "reduce_scatter",
                              "merge_call that reduces",
                              "merge_call that runs again",
                              "pass through",
                              "ask"};
constexpr std::array kOps{"sum", "mean", "max"};
constexpr std::array kSynchronizations{"auto", "none", "on_write", "on_read"};
constexpr std::array kAggregations{"none", "sum", "mean", "only_first_replica"};
constexpr std::array kSources{"PerReplica", "plain", "Mirrored", "variable", "structure"};
constexpr std::array kForms{"tensor", "double", "int", "list", "tuple", "map", "optional", "slices", "mixed"};

}  // namespace

std::string text(const Layout& layout) {
  return fmt::format("{} of {} workers x {} devices", name(kKinds, layout.kind), layout.workers,
                     layout.devices);
}

std::string text(const Step& step) {
  std::string result = fmt::format("{} in {}: variable {}, ", name(kActions, step.action),
                                   name(kPlaces, step.place), step.variable);
  if (step.action == Action::kMake) {
    result += fmt::format("{} {}, ", name(kSynchronizations, step.synchronization),
                          name(kAggregations, step.aggregation));
  }
  result += fmt::format("{} of {} {}, axes {}, parts {}, decay {}, {} destinations", name(kOps, step.op),
                        name(kSources, step.source), name(kForms, step.form), step.axes, step.parts,
                        step.decay, step.destinations);
  for (std::size_t replica = 0; replica < step.values.size(); ++replica)
    result += fmt::format("\n      {}: {}", replica, text(step.values[replica]));
  return result;
}

namespace {

DType dtype_of(Type type) { return static_cast<DType>(type); }  // the lists have the same order

}  // namespace

Tensor to_tensor(const Array& array) {
  Tensor tensor = Tensor::uninitialized(Shape(array.extents), dtype_of(array.type));
  visit_dtype(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<T> elements = tensor.span<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if constexpr (HalfElement<T>)
        elements[i] = T(static_cast<float>(array.elements[i]));
      else
        elements[i] = static_cast<T>(array.elements[i]);
    }
  });
  return tensor;
}

TensorOrSlices to_library(const Leaf& leaf) {
  if (!leaf.rows) return to_tensor(leaf.values);
  return IndexedSlices{to_tensor(leaf.values), to_tensor(*leaf.rows), Shape(leaf.dense)};
}

Leaf from_library(const TensorOrSlices& leaf) {
  const auto array_of = [](const Tensor& tensor) {
    const auto extents = tensor.shape().extents();
    Array array{static_cast<Type>(tensor.dtype()), {extents.begin(), extents.end()}, {}};
    visit_dtype(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
      for (const T element : tensor.on_host().span<T>()) {
        if constexpr (HalfElement<T>)
          array.elements.push_back(static_cast<float>(element));
        else
          array.elements.push_back(static_cast<Number>(element));
      }
    });
    return array;
  };
  if (!is_sparse(leaf)) return {array_of(std::get<Tensor>(leaf))};
  const auto& slices = std::get<IndexedSlices>(leaf);
  const auto dense = slices.dense_shape.extents();
  return {array_of(slices.values), array_of(slices.indices), {dense.begin(), dense.end()}};
}

}  // namespace cohort::model
