// A program of the model test: steps, each of which does one thing in one context. Steps are plain data,
// which the model and the library carry out each in their own way.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace cohort::model
