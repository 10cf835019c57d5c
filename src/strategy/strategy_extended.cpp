#include <cohort/strategy/strategy_extended.h>

#include <algorithm>
#include <exception>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/gather_tensors.h>
#include <cohort/collective/reduction.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/device/topology.h>
#include <cohort/strategy/replica_context.h>

#include "default_replica.h"
#include "replica_run.h"

namespace cohort {
namespace {

void require_sum_or_mean(ReduceOp op) {
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) return;
  throw InvalidArgument("strategies reduce by sum or mean, not {}; use a Communicator for the others",
                        to_string(op));
}

/// The dtype of a MEAN: integers become floating, wide enough for their values.
DType mean_dtype(DType dtype) {
  if (is_floating(dtype)) return dtype;
  return size_of(dtype) == 1 ? DType::kFloat32 : DType::kFloat64;
}

std::vector<Tensor> prepared(ReduceOp op, std::span<const Tensor> values) {
  std::vector<Tensor> result(values.begin(), values.end());
  for (Tensor& value : result) {
    if (op == ReduceOp::kMean) value = value.cast(mean_dtype(value.dtype()));
    require_legal(op, value.dtype());
  }
  return result;
}

/// All lists of tensors must look like that of the first replica.
void require_alike(std::span<const std::vector<Tensor>> values, int first_replica) {
  for (std::size_t replica = 1; replica < values.size(); ++replica) {
    if (values[replica].size() != values[0].size()) {
      throw InvalidArgument("reduce: replica {} has {} tensors, replica {} has {}",
                            first_replica + static_cast<int>(replica), values[replica].size(), first_replica,
                            values[0].size());
    }
    for (std::size_t i = 0; i < values[0].size(); ++i) {
      if (values[replica][i].dtype() == values[0][i].dtype() &&
          values[replica][i].shape() == values[0][i].shape()) {
        continue;
      }
      throw InvalidArgument(
          "reduce: replica {} has {}, replica {} has {}; without an axis, shapes must agree",
          first_replica + static_cast<int>(replica), describe(values[replica][i]), first_replica,
          describe(values[0][i]));
    }
  }
}

/// The same for tensors of which `sums` are left: only the extents that have gone may differ.
void require_alike(std::span<const Tensor> values, std::span<const Tensor> sums, int first_replica) {
  for (std::size_t replica = 1; replica < values.size(); ++replica) {
    if (values[replica].dtype() == values[0].dtype() && sums[replica].shape() == sums[0].shape()) continue;
    throw InvalidArgument("reduce: replica {} has {}, replica {} has {}; only the reduced axes may differ",
                          first_replica + static_cast<int>(replica), describe(values[replica]), first_replica,
                          describe(values[0]));
  }
}

/// A merge of the only replica needs no meeting: it runs where the replica runs.
class LoneMergePoint final : public MergePoint {
 public:
  explicit LoneMergePoint(VariableOwner* strategy) : strategy_(strategy) {}

  std::shared_ptr<void> meet(int /*local_replica*/, MergeRequest& request) override {
    const ContextScope scope(ContextMode::cross_replica(strategy_));
    const InheritedCreators outside(strategy_ == nullptr ? VariableCreatorScope::innermost() : creators_);
    void* const arguments[] = {request.arguments};
    return request.merge(arguments);
  }

 private:
  VariableOwner* strategy_;  // null in the default context, which a merge leaves as it is
  const VariableCreatorScope* creators_ = VariableCreatorScope::innermost();  // of the caller of run
};

}  // namespace

ReplicaContext& default_replica() {
  static LoneMergePoint merge_point(nullptr);
  static ReplicaContext replica(*StrategyExtended::default_strategy(), 0, merge_point);
  return replica;
}

std::shared_ptr<StrategyExtended> StrategyExtended::make(StrategyLayout layout) {
  return std::shared_ptr<StrategyExtended>(new StrategyExtended(std::move(layout)));
}

const std::shared_ptr<StrategyExtended>& StrategyExtended::default_strategy() {
  static const std::shared_ptr<StrategyExtended> instance = make(
      {.name = "the default strategy", .devices = {Device()}, .parameter_device = Device(), .connect = [] {
         return make_thread_communicators(1);
       }});
  return instance;
}

StrategyExtended::StrategyExtended(StrategyLayout layout) : layout_(std::move(layout)) {
  if (layout_.devices.empty()) throw InvalidArgument("{} needs at least one device", layout_.name);
  for (auto device = layout_.devices.begin(); device != layout_.devices.end(); ++device) {
    if (device->kind() != DeviceKind::kCpu) {
      throw Unavailable("{}: device {} does not exist: this build of Cohort has no GPU support", layout_.name,
                        to_string(*device));
    }
    if (std::find(layout_.devices.begin(), device, *device) != device) {
      throw InvalidArgument("{}: device {} is named twice; each replica needs its own", layout_.name,
                            to_string(*device));
    }
  }
  parameter_devices_ = layout_.parameter_device ? std::vector{*layout_.parameter_device} : layout_.devices;
  seats_ = layout_.connect();
  COHORT_CHECK(seats_.size() == layout_.devices.size());
  for (std::size_t seat = 0; seat < seats_.size(); ++seat)
    reducers_.emplace_back(BatchReducerOptions{.bytes_per_pack = layout_.bytes_per_pack});
}

void StrategyExtended::require_cross_replica(const char* what) const {
  const ContextMode& mode = current_mode();
  if (mode.kind == ContextKind::kReplica) {
    throw WrongContext(
        "{} needs a cross-replica context, but this code is inside a replica function; use "
        "merge_call, or the functions of ReplicaContext such as all_reduce and all_gather",
        what);
  }
  if (mode.strategy == nullptr || mode.strategy == this) return;
  throw WrongContext("{} of {} while {} is active: mixing different strategies", what, layout_.name,
                     mode.strategy->strategy_name());
}

void StrategyExtended::call_for_each_replica(const std::function<void(ReplicaContext&)>& body) {
  require_cross_replica("run");
  if (local_replicas() == 1) return run_inline(body);
  run_concurrently(body);
}

void StrategyExtended::run_inline(const std::function<void(ReplicaContext&)>& body) {
  // The default strategy leaves the context as it is: there, the caller is the replica.
  if (is_default()) return body(default_replica());
  LoneMergePoint merge_point(this);
  ReplicaContext replica(*this, 0, merge_point);
  const ContextScope scope({ContextKind::kReplica, this, &replica, 0, layout_.devices.front(), &merge_point});
  try {
    body(replica);
  } catch (...) {
    // The other workers may wait for this replica in a collective, and must not take a later one for it.
    if (workers() > 1) {
      communicator(0).abort(
          Aborted("replica {} failed first: {}", first_replica_id(), what_of(std::current_exception())));
    }
    throw;
  }
}

StrategyExtended::Team StrategyExtended::make_team() const {
  const auto cores = split_cores(allowed_cores(), local_replicas());
  Team team;
  for (const auto& device_cores : cores) team.push_back(std::make_unique<DeviceThread>(device_cores));
  return team;
}

void StrategyExtended::run_concurrently(const std::function<void(ReplicaContext&)>& body) {
  // A merge function may call run again, while the threads of the outer run are parked.
  if (teams_.size() == depth_) teams_.push_back(make_team());
  ReplicaRun run(*this, body);
  ++depth_;
  try {
    run.execute(teams_[depth_ - 1]);
    --depth_;
  } catch (...) {
    --depth_;
    // All replicas have left; the seats of a group that somebody left early are of no more use.
    if (workers() == 1) seats_ = layout_.connect();
    throw;
  }
}

std::vector<Tensor> StrategyExtended::reduce(ReduceOp op, std::span<const std::vector<Tensor>> values,
                                             std::uint64_t structure) {
  require_sum_or_mean(op);
  const bool per_replica = static_cast<int>(values.size()) == local_replicas();
  if (!per_replica && op == ReduceOp::kSum) {
    throw InvalidArgument(
        "sum of a value that is not PerReplica: {} has {} replicas, and the value does not say what "
        "each of them contributes; return it from run()",
        layout_.name, num_replicas_in_sync());
  }
  std::vector<Tensor> results;
  if (!per_replica || num_replicas_in_sync() == 1) {
    for (const Tensor& value : values.front()) results.push_back(value.clone());
    return results;
  }
  require_alike(values, first_replica_id());
  if (workers() > 1) return all_reduce(0, op, values.front(), structure);

  std::vector<std::vector<Tensor>> lists;
  lists.reserve(values.size());
  for (const auto& list : values) lists.push_back(prepared(op, list));
  for (std::size_t i = 0; i < lists.front().size(); ++i) {
    const Tensor& like = lists.front()[i];
    std::vector<const std::byte*> inputs;
    inputs.reserve(lists.size());
    for (const auto& list : lists) inputs.push_back(list[i].data());
    results.push_back(Tensor::uninitialized(like.shape(), like.dtype()));
    reduce_elements(like.dtype(), op, inputs, results.back().data(), like.elements());
  }
  return results;
}

Tensor StrategyExtended::reduce_along(ReduceOp op, std::span<const Tensor> values,
                                      std::span<const int> axes) {
  require_sum_or_mean(op);
  if (static_cast<int>(values.size()) != local_replicas()) {
    throw InvalidArgument("reduce: {} values for {} local replicas", values.size(), local_replicas());
  }
  require_legal(ReduceOp::kSum, values.front().dtype());
  std::vector<Tensor> sums;
  for (const Tensor& value : values) {
    // A mean is taken in float64 from the start: sums of large integers would wrap.
    sums.push_back(sum_along(op == ReduceOp::kMean ? value.cast(mean_dtype(value.dtype())) : value, axes));
  }
  require_alike(values, sums, first_replica_id());

  std::vector<std::vector<Tensor>> partial;
  for (std::size_t replica = 0; replica < values.size(); ++replica) {
    if (op == ReduceOp::kSum) {
      partial.push_back({sums[replica]});
      continue;
    }
    // The number of summed elements travels beside the sums, so that one collective does both.
    double count = 1;
    for (const int axis : axes) count *= static_cast<double>(values[replica].shape()[axis]);
    partial.push_back({sums[replica].cast(DType::kFloat64), Tensor::scalar(count)});
  }
  const DType dtype = values.front().dtype();
  const std::vector<Tensor> totals =
      reduce(ReduceOp::kSum, partial, Fingerprint().add(static_cast<std::uint64_t>(dtype)).value());
  if (op == ReduceOp::kSum) return totals.front().cast(dtype);

  const double count = totals.back().item<double>();
  for (double& value : totals.front().span<double>()) value /= count;
  return totals.front().cast(mean_dtype(dtype));
}

Tensor StrategyExtended::gather(std::span<const Tensor> values, int axis) {
  if (static_cast<int>(values.size()) != local_replicas()) {
    throw InvalidArgument("gather: {} values for {} local replicas", values.size(), local_replicas());
  }
  if (workers() == 1) return concatenate(values, axis);
  return concatenate(all_gather_tensors(communicator(0), values.front()), axis);
}

std::vector<Tensor> StrategyExtended::all_reduce(int local_replica, ReduceOp op,
                                                 std::span<const Tensor> values, std::uint64_t structure) {
  require_sum_or_mean(op);
  if (num_replicas_in_sync() == 1) {
    std::vector<Tensor> copies;
    copies.reserve(values.size());
    for (const Tensor& value : values) copies.push_back(value.clone());
    return copies;
  }
  return reducers_[static_cast<std::size_t>(local_replica)].all_reduced(communicator(local_replica),
                                                                        prepared(op, values), op, structure);
}

void StrategyExtended::all_reduce_in_place(int local_replica, ReduceOp op, std::span<const Tensor> tensors) {
  require_sum_or_mean(op);
  if (num_replicas_in_sync() == 1) return;
  reducers_[static_cast<std::size_t>(local_replica)].all_reduce(communicator(local_replica), tensors, op);
}

}  // namespace cohort
