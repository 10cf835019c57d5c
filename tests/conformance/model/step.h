// A program of the model test: steps, each of which does one thing in one context. Steps are plain data,
// which the model and the library carry out each in their own way; of their values, the C++ types.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/value/tensor_or_slices.h>
#include <cohort/value/variable.h>

#include "array.h"

namespace cohort::model {

enum class Kind { kDefault, kOneDevice, kMirrored, kCentral };

/// The strategy. With several workers it is a mirrored one over all of them.
struct Layout {
  Kind kind = Kind::kDefault;
  int workers = 1;
  int devices = 1;  ///< of each worker

  [[nodiscard]] int replicas() const { return workers * devices; }
  [[nodiscard]] std::size_t first_of_worker(int worker) const {
    return static_cast<std::size_t>(worker) * static_cast<std::size_t>(devices);
  }
  [[nodiscard]] bool mirrors() const { return kind == Kind::kMirrored; }
};

enum class Place {
  kOutside,        ///< no scope is open
  kScope,          ///< in the strategy's scope
  kForeignScope,   ///< in the scope of another strategy
  kReplica,        ///< in every replica
  kMerge,          ///< once, while the replicas pause
  kUpdate,         ///< in an update of the variable, with the values by component
  kReplicaUpdate,  ///< in an update that the replicas ask for, each with its value
};

enum class Action {
  kMake,
  kAssign,
  kAssignAdd,
  kAssignSub,
  kAssignNumber,  ///< all replicas the same one
  kScatterAdd,
  kScatterSub,
  kScatterMul,
  kScatterDiv,
  kScatterMin,
  kScatterMax,
  kScatterUpdate,
  kRead,
  kMovingAverage,
  kReduce,
  kReduceAlong,
  kReduceTo,
  kBatchReduceTo,  ///< a pair for each tensor of a list
  kGather,
  kBroadcast,
  kAllReduce,
  kAllReduceInPlace,
  kAllGather,
  kReduceScatter,
  kMergeSum,     ///< replicas merge, and the merge function reduces what they pass
  kMergeAndRun,  ///< the merge function runs replicas again, which all-reduce what they get
  kPassThrough,  ///< values go into replicas and out again
  kAsk,          ///< which context is this?
};

[[nodiscard]] constexpr bool is_scatter(Action action) {
  return action >= Action::kScatterAdd && action <= Action::kScatterUpdate;
}

enum class Op { kSum, kMean, kMax };
enum class Synchronization { kAuto, kNone, kOnWrite, kOnRead };
enum class Aggregation { kNone, kSum, kMean, kOnlyFirstReplica };

/// What is reduced.
enum class Source {
  kPerReplica,
  kPlain,
  kMirrored,
  kVariable,
  kStructure,  ///< a tuple of a PerReplica, a plain tensor and a Mirrored
};

/// The C++ type of what a replica passes.
enum class Form {
  kTensor,
  kNumber,    ///< double
  kInteger,   ///< int
  kList,      ///< std::vector<Tensor>
  kTuple,     ///< std::tuple<Tensor, double>
  kMap,       ///< std::map<std::string, Tensor>
  kOptional,  ///< std::optional<Tensor>
  kSlices,    ///< IndexedSlices
  kMixed,     ///< std::vector<TensorOrSlices>
};

struct Step {
  Action action = Action::kAsk;
  Place place = Place::kOutside;
  int variable = 0;
  Synchronization synchronization = Synchronization::kAuto;
  Aggregation aggregation = Aggregation::kNone;
  std::optional<bool> trainable = {};
  Op op = Op::kSum;
  Source source = Source::kPerReplica;
  Form form = Form::kTensor;
  std::vector<Leaves> values = {};  ///< by replica of all workers
  std::vector<int> axes = {};
  std::vector<std::int64_t> parts = {};  ///< lengths along the axis, by replica
  double decay = 0;
  int destinations = 1;
};

[[nodiscard]] std::string text(const Layout& layout);
[[nodiscard]] std::string text(const Step& step);

// The C++ types of the forms: made of leaves, and taken apart again.

[[nodiscard]] Tensor to_tensor(const Array& array);
[[nodiscard]] TensorOrSlices to_library(const Leaf& leaf);
[[nodiscard]] Leaf from_library(const TensorOrSlices& leaf);

using List = std::vector<Tensor>;
using Tuple = std::tuple<Tensor, double>;
using Map = std::map<std::string, Tensor>;
using Mixed = std::vector<TensorOrSlices>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// Calls `visit(std::type_identity<T>())` with the type of a form.
template <class Visit>
auto with_form(Form form, Visit visit) {
  switch (form) {
    case Form::kTensor: return visit(std::type_identity<Tensor>());
    case Form::kNumber: return visit(std::type_identity<double>());
    case Form::kInteger: return visit(std::type_identity<int>());
    case Form::kList: return visit(std::type_identity<List>());
    case Form::kTuple: return visit(std::type_identity<Tuple>());
    case Form::kMap: return visit(std::type_identity<Map>());
    case Form::kOptional: return visit(std::type_identity<std::optional<Tensor>>());
    case Form::kSlices: return visit(std::type_identity<IndexedSlices>());
    case Form::kMixed: return visit(std::type_identity<Mixed>());
  }
  throw std::invalid_argument("no such form");
}

template <class T>
[[nodiscard]] T built(const Leaves& leaves) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return to_tensor(leaves.at(0).values);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(leaves.at(0).values.elements.at(0));
  } else if constexpr (std::is_same_v<T, IndexedSlices>) {
    return std::get<IndexedSlices>(to_library(leaves.at(0)));
  } else if constexpr (std::is_same_v<T, Tuple>) {
    return {built<Tensor>({leaves.at(0)}), built<double>({leaves.at(1)})};
  } else if constexpr (std::is_same_v<T, Map>) {
    Map map;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      map.emplace(std::string(1, static_cast<char>('a' + i)), to_tensor(leaves[i].values));
    return map;
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    return leaves.empty() ? std::nullopt : std::optional(to_tensor(leaves[0].values));
  } else {
    T list;
    for (const Leaf& leaf : leaves) list.push_back(built<typename T::value_type>({leaf}));
    return list;
  }
}
template <>
[[nodiscard]] inline TensorOrSlices built<TensorOrSlices>(const Leaves& leaves) {
  return to_library(leaves.at(0));
}

template <class T>
[[nodiscard]] Leaves taken_apart(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return {Leaf{scalar(std::is_same_v<T, double> ? Type::kF64 : Type::kI32, value)}};
  } else if constexpr (std::is_convertible_v<const T&, TensorOrSlices>) {
    return {from_library(value)};
  } else if constexpr (std::is_same_v<T, Tuple>) {
    return {from_library(std::get<0>(value)), Leaf{scalar(Type::kF64, std::get<1>(value))}};
  } else if constexpr (std::is_same_v<T, Three>) {
    return {from_library(std::get<0>(value)), from_library(std::get<1>(value)),
            from_library(std::get<2>(value))};
  } else if constexpr (std::is_same_v<T, Map>) {
    Leaves leaves;
    for (const auto& [key, tensor] : value) leaves.push_back(from_library(tensor));
    return leaves;
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    return value ? Leaves{from_library(*value)} : Leaves();
  } else {
    Leaves leaves;
    for (const auto& element : value) leaves.push_back(from_library(element));
    return leaves;
  }
}

}  // namespace cohort::model
