// Makes one of the calls whose instructions are bounded, so often, each through `counted`, which callgrind
// looks for. Whoever the call is with is there before: nothing that is counted waits.
//
//   counted_calls all_reduce|long_all_reduce|gradient_buckets|fit COUNT
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/collective/gradient_buckets.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/trainer.h>

#include "../trainer/linear_model.h"
#include "collective/host_communicators.h"

using namespace cohort;

namespace {

using Members = std::vector<std::unique_ptr<Communicator>>;

/// Members of one process, whose calls go on only where they are waited for or asked.
Members make_members(int count) {
  NodeGroupOptions options;
  options.members = count;
  options.any_thread = false;
  return make_node_communicators(options);
}

}  // namespace

/// In C, so that its name is the same in the program.
extern "C" [[gnu::noinline]] void counted(void (*call)(void*), void* state) { call(state); }

namespace {

template <class Call>
void count(Call& call) {
  counted([](void* state) { (*static_cast<Call*>(state))(); }, &call);
}

/// Of two members, on 4 bytes.
void all_reduce(int calls) {
  const Members members = make_members(2);
  const Tensor mine = Tensor::zeros({1}, DType::kFloat32);
  const Tensor theirs = Tensor::zeros({1}, DType::kFloat32);
  auto call = [&] { members[0]->all_reduce(mine, ReduceOp::kSum); };
  for (int i = 0; i < calls; ++i) {
    Work work = members[1]->all_reduce_async(theirs, ReduceOp::kSum);
    static_cast<void>(work.done());  // announces it
    count(call);
    work.wait();
  }
}

/// Of one member, on 16 KiB: what does not fit a slot.
void long_all_reduce(int calls) {
  const Members members = make_members(1);
  const Tensor mine = members.front()->allocate({4096}, DType::kFloat32);
  mine.fill(0);
  auto call = [&] { members.front()->all_reduce(mine, ReduceOp::kSum); };
  for (int i = 0; i < calls; ++i) count(call);
}

/// 20 small gradients in their buckets.
void gradient_buckets(int passes) {
  const Members members = make_members(1);
  const std::vector<TensorSpec> gradients(20, {{64}, DType::kFloat32});
  GradientBuckets buckets(*members.front(), gradients);
  auto pass = [&] {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets.ready(i);
    buckets.wait();
  };
  for (int i = 0; i < passes; ++i) count(pass);
}

/// All of a `fit` of so many steps: what a step takes is in the difference of two.
void fit(int steps) {
  const OneDeviceStrategy strategy;
  const auto scope = strategy.scope();
  testing::LinearModel model;
  Sgd optimizer({.learning_rate = 0.1});
  Trainer<testing::LinearModel::Batch> trainer(strategy, model, optimizer);
  const auto batches = strategy.distribute_dataset(testing::linear_batches(8, 8).repeat(),
                                                   {.input = {.per_replica_buffer_size = 0}});
  auto all = [&] { trainer.fit(batches, {.steps_per_epoch = steps}); };
  count(all);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  const int number = argc == 3 ? std::atoi(argv[2]) : 0;
  if (what == "all_reduce")
    all_reduce(number);
  else if (what == "long_all_reduce")
    long_all_reduce(number);
  else if (what == "gradient_buckets")
    gradient_buckets(number);
  else if (what == "fit")
    fit(number);
  else
    return std::cerr
               << "counted_calls: write all_reduce, long_all_reduce, gradient_buckets or fit, and a number\n",
           2;
}
