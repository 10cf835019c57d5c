// Functions whose arguments do not fit what calls them.
//
// Says: the function of run() takes (ReplicaContext&, arguments...) or (arguments...)
// Says: the function of merge_call() takes (const Strategy&, const PerReplica<T>&...)
// Says: the function of update() takes (const Variable&, arguments...)
// Says: the function of update_non_slot() takes the arguments of update_non_slot() in their order
// Says: the function of distribute_values_from_function() takes a ValueContext
// Says: the function of distribute_datasets_from_function() takes a const InputContext&
// Says: the function of reduce() takes (State, const PerReplica<Element>&) and returns a State
#include <vector>

#include <cohort/input/distribute.h>

using cohort::Dataset;
using cohort::Device;
using cohort::DistributedDataset;
using cohort::InputContext;
using cohort::PerReplica;
using cohort::ReplicaContext;
using cohort::Strategy;
using cohort::Tensor;
using cohort::ValueContext;
using cohort::Variable;

#ifdef MISUSE
const auto kStep = [](const Tensor& /*batch*/, ReplicaContext& /*replica*/) { return 1; };
const auto kMany = [](ReplicaContext& /*replica*/, const Tensor& /*batch*/, int /*epoch*/) {};
const auto kCopied = [](ReplicaContext /*replica*/, const Tensor& /*batch*/) {};
const auto kMutable = [](ReplicaContext& /*replica*/, Tensor& /*batch*/) {};
const auto kMerge = [](const PerReplica<int>& /*ids*/) { return 1; };
const auto kUpdate = [](const Tensor& /*value*/) {};
const auto kNonSlot = [](const Tensor& /*value*/) {};
const auto kValue = [] { return 1; };
const auto kDataset = [] { return Dataset<Tensor>::range(4).batch(2); };
const auto kCount = [](const PerReplica<Tensor>& /*batch*/) { return 1; };
#else
const auto kStep = [](ReplicaContext& /*replica*/, const Tensor& /*batch*/) { return 1; };
const auto& kMany = kStep;
const auto& kCopied = kStep;
const auto kMutable = [](Tensor /*batch*/) {};
const auto kMerge = [](const Strategy& /*strategy*/, const PerReplica<int>& /*ids*/) { return 1; };
const auto kUpdate = [](const Variable& /*variable*/, const Tensor& /*value*/) {};
const auto kNonSlot = [] {};
const auto kValue = [](const ValueContext& /*context*/) { return 1; };
const auto kDataset = [](const InputContext& /*context*/) { return Dataset<Tensor>::range(4).batch(2); };
const auto kCount = [](int count, const PerReplica<Tensor>& /*batch*/) { return count + 1; };
#endif

void train(const Strategy& strategy, const PerReplica<Tensor>& batches) {
  static_cast<void>(strategy.run(kStep, batches));
  static_cast<void>(strategy.run(kMany, batches));
  static_cast<void>(strategy.run(kCopied, batches));
  strategy.run(kMutable, batches);
}
void merge(const ReplicaContext& replica) { static_cast<void>(replica.merge_call(kMerge, 1)); }
void update(const Strategy& strategy, const Variable& weight, const PerReplica<Tensor>& values) {
  strategy.extended().update(weight, kUpdate, values);
}
void update(const Strategy& strategy, const std::vector<Device>& devices) {
  strategy.extended().update_non_slot(devices, kNonSlot);
}
void values(const Strategy& strategy) { static_cast<void>(strategy.distribute_values_from_function(kValue)); }
void datasets(const Strategy& strategy) {
  static_cast<void>(strategy.distribute_datasets_from_function(kDataset));
}
int count(const DistributedDataset<Tensor>& batches) { return batches.reduce(0, kCount); }
