// A program that opens both namespaces at once, and whose own names are those that suggest themselves. What
// Cohort needs for itself is in nested namespaces; the names of its interface give way to those of a program
// in a namespace of its own. Compiling it is the test; options that are documented must not warn.
#pragma GCC diagnostic error "-Wmissing-field-initializers"
#include <cmath>
#include <iostream>
#include <stack>
#include <string>
#include <vector>

#include "all_headers.h"

using namespace std;
using namespace cohort;

struct Batch {
  Tensor images;
  Tensor labels;
};
COHORT_FIELDS(Batch, images, labels)

struct Pass {};
struct Leaf {};
struct BatchSize {};
struct Epoch {};
struct Example {};
struct Layer {};
struct Level {};
struct Logger {};
struct Matrix {};
struct Metrics {};
struct Model {};
struct Node {};
struct Options {};
struct Part {};
struct Range {};
struct Record {};
struct Row {};
struct Sample {};
struct Slot {};
struct State {};
struct Step {};
struct Vector {};
struct Worker {};

struct Program {
  Pass pass;
  Leaf leaf;
  BatchSize batch_size;
  Epoch epoch;
  Example example;
  Layer layer;
  Level level;
  Logger logger;
  Matrix matrix;
  Metrics metrics;
  Model model;
  Node node;
  Options options;
  Part part;
  Range range;
  Record record;
  Row row;
  Sample sample;
  Slot slot;
  State state;
  Step step;
  Vector vector;
  Worker worker;
};

float softplus(float x) { return log(1 + exp(x)); }
stack<int> numbers() { return {}; }

namespace trainer {

struct Shape {
  int rows = 0;
};
struct Error {};
struct Config {};
struct Element {};
struct Device {};
struct Work {};
struct Task {};
int zip(int one, int other) { return one + other; }
string describe(const Shape& shape) { return to_string(shape.rows); }

Shape own(const Error& /*error*/, const Config& /*config*/, const Element& /*element*/,
          const Device& /*device*/, const Work& /*work*/, const Task& /*task*/) {
  return {zip(1, 2)};
}

}  // namespace trainer

Program documented_options(const vector<string>& files, const MirroredStrategy& strategy) {
  const auto batches =
      Dataset<Batch>::from_tensor_slices({Tensor::from(vector{1.0F}), Tensor::from(vector{1LL})})
          .shuffle({.seed = 1})
          .batch(2);
  const auto rows = csv_dataset<Tensor>(files, {.has_header = true});
  const auto records = fixed_length_record_dataset(files, {.record_bytes = 4});
  const auto arrays = npz_dataset<Batch>(files, {.arrays = {"x", "y"}});
  const auto typed = npy_dataset(files, {.dtype = DType::kFloat32});
  const auto mapped = rows.map([](const Tensor& row) { return row; }, {.parallelism = 2});
  const auto opened = Dataset<string>::list_files("*").interleave(
      [](const string& file) { return tf_record_dataset({file}); }, {.cycle_length = 4});
  const auto distributed =
      strategy.distribute_dataset(batches, {.auto_shard_policy = AutoShardPolicy::kData});
  const auto made = strategy.distribute_datasets_from_function([&](const InputContext&) { return batches; },
                                                               {.per_replica_buffer_size = 2});
  const Variable weight({.name = "weight"});
  Adam({.learning_rate = 0.1}).apply_gradients({{Tensor::scalar(1.0F), weight}});
  Momentum({.nesterov = true}).apply_gradients({{Tensor::scalar(1.0F), weight}});
  cout << compute_average_loss(weight.read(), {.global_batch_size = 4}) << trainer::describe({1})
       << softplus(1);
  const MirroredStrategy other(
      {"/cpu:0", "cpu:1"}, {.timeout_seconds = 60},
      make_shared<ReductionToOneDevice>(ReductionToOneDeviceOptions{.reduce_to_device = Device::cpu(0)}));
  const HierarchicalCopyAllReduce packed({.num_packs = 2});
  const LogicalDeviceStrategy logical(
      DeviceAssignment::build(cpu_topology({2, 2}), {.computation_shape = {1, 2}, .num_replicas = 2}));
  const SlurmClusterResolver slurm({.port_base = 1});
  const TfConfigClusterResolver tf_config({.rpc_layer = "grpc"});
  const KubernetesClusterResolver kubernetes("{}", {.port = 1});
  const SimpleClusterResolver simple({}, {}, {}, nullptr, {.rpc_layer = "grpc"});
  const UnionClusterResolver both({make_shared<SimpleClusterResolver>(simple)}, {.task_id = 1});
  const auto group = strategy.extended().workers_communicator().split(0);
  group->all_reduce(weight.read(), ReduceOp::kSum, {.priority = Priority::kUrgent});
  const vector<TensorSpec> specs{{.shape = {2}}, {.name = "bias"}};
  const GradientBuckets buckets(*group, specs, {.op = ReduceOp::kMean});
  const IndexedSlices slices{.values = weight.read()};
  return {};
}
