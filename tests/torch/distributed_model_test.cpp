// Gradients of a DistributedModel are those of one process with the whole batch, up to the order in which
// floating-point numbers are added, and the same bits on all ranks.
#include <cohort/torch/distributed_model.h>

#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/torch.h>

#include <cohort/mpi/session.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/torch/tensor.h>

#include "mpi_main.h"

namespace cohort::libtorch {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRowsEach = 3;
constexpr double kTolerance = 1e-12;  // of float64 sums in another order

/// With a large layer, which has a bucket of its own, and one that not every pass reaches.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t width = 90)
      : first(register_module("first", torch::nn::Linear(4, width))),
        second(register_module("second", torch::nn::Linear(width, width))),
        last(register_module("last", torch::nn::Linear(width, 1))),
        extra(register_module("extra", torch::nn::Linear(4, 1))),
        never(register_module("never", torch::nn::Linear(2, 2))) {
    to(torch::kFloat64);
  }
  torch::Tensor forward(const torch::Tensor& inputs, bool with_extra = true) {
    const torch::Tensor main = last(second(first(inputs).tanh()).tanh());
    return with_extra ? main + extra(inputs) : main;
  }
  torch::nn::Linear first, second, last, extra, never;
};
TORCH_MODULE(Net);

class DistributedModelTest : public ::testing::Test {
 protected:
  DistributedModelTest() : strategy_(cohort::testing::session()) {
    at::set_num_threads(1);
    torch::manual_seed(3);
    inputs_ = torch::randn({kRowsEach * size(), 4}, torch::kFloat64);
    torch::manual_seed(static_cast<std::uint64_t>(100 + rank()));  // the ranks begin with other parameters
  }
  [[nodiscard]] int size() const { return strategy_.num_replicas_in_sync(); }
  [[nodiscard]] int rank() const { return strategy_.extended().communicator(0).rank(); }
  [[nodiscard]] torch::Tensor mine() const { return inputs_.narrow(0, rank() * kRowsEach, kRowsEach); }
  static torch::Tensor loss(Net& net, const torch::Tensor& inputs, bool with_extra = true) {
    return net->forward(inputs, with_extra).square().mean();
  }

  /// The gradients of a copy of `net` with the whole batch.
  std::vector<torch::Tensor> alone(Net& net, double scale = 1) {
    std::vector<torch::Tensor> reached = {net->first->weight, net->first->bias,  net->second->weight,
                                          net->second->bias,  net->last->weight, net->last->bias,
                                          net->extra->weight, net->extra->bias};
    return torch::autograd::grad({scale * loss(net, inputs_)}, reached);
  }
  void expect_gradients(Net& net, const std::vector<torch::Tensor>& expected) {
    const auto parameters = net->parameters();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(parameters[i].grad().defined()) << i;
      EXPECT_LT((parameters[i].grad() - expected[i]).abs().max().item<double>(), kTolerance) << i;
      expect_same_bits(parameters[i].grad());
    }
  }
  void expect_same_bits(const torch::Tensor& tensor) {
    Communicator& communicator = strategy_.extended().communicator(0);
    const Tensor of_first = to_cohort(tensor.detach().clone());
    communicator.broadcast(of_first, 0);
    EXPECT_TRUE(bitwise_equal(of_first, to_cohort(tensor)));
  }
  static void clear(Net& net) {
    for (auto& parameter : net->parameters()) parameter.mutable_grad().reset();
  }

  MultiWorkerMirroredStrategy strategy_;
  torch::Tensor inputs_;
};

TEST_F(DistributedModelTest, GivesTheGradientsOfTheWholeBatch) {
  Net net;
  DistributedModel model(net, strategy_);
  EXPECT_GT(model.bucket_count(), 1U);
  for (const auto& parameter : net->parameters()) expect_same_bits(parameter);
  for (int step = 0; step < 4; ++step) {
    clear(net);
    const auto expected = alone(net);
    model.backward(loss(net, mine()));
    expect_gradients(net, expected);
    EXPECT_FALSE(net->never->weight.grad().defined());
    const torch::NoGradGuard no_gradients;
    for (auto& parameter : net->parameters())
      if (parameter.grad().defined()) parameter -= 0.1 * parameter.grad();
  }
}

TEST_F(DistributedModelTest, SumsOnRequest) {
  Net net;
  DistributedModel model(net, strategy_, {.op = ReduceOp::kSum, .bytes_per_bucket = 1000});
  const auto expected = alone(net, size());
  model.backward(loss(net, mine()));
  expect_gradients(net, expected);
}

TEST_F(DistributedModelTest, SumsOf16BitGradientsAreRoundedOnce) {
  const MultiWorkerMirroredStrategy strategy(cohort::testing::session(), {.reproducible = true});
  // 256 + 1 is 256 in bfloat16, and 2048 + 1 is 2048 in float16.
  for (const auto& [dtype, large] : {std::pair(torch::kBFloat16, 256.), std::pair(torch::kFloat16, 2048.)}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      for (int owner = 0; owner < size(); ++owner) {
        torch::nn::Linear net(torch::nn::LinearOptions(1100, 3).bias(false));
        net->to(dtype);
        DistributedModel model(net, strategy, {.op = op});
        model.backward((net->weight * (rank() == owner ? large : 1.)).sum());
        const double sum = large + size() - 1;
        const torch::Tensor exact = torch::tensor(op == ReduceOp::kSum ? sum : sum / size(), torch::kFloat64);
        EXPECT_TRUE(torch::equal(net->weight.grad(), exact.to(dtype).expand({3, 1100})))
            << net->weight.grad()[0][0] << " and not " << exact;
      }
    }
  }
}

TEST_F(DistributedModelTest, AddsUp16BitGradientsOfSeveralPassesInFloat32) {
  torch::nn::Linear net(torch::nn::LinearOptions(5, 3).bias(false));
  net->to(torch::kBFloat16);
  DistributedModel model(net, strategy_);
  const auto step = [&] {
    {
      const auto no_sync = model.no_sync();
      model.backward((net->weight * 256.).sum());
      model.backward((net->weight * 1.).sum());
    }
    model.backward((net->weight * 1.).sum());
    return net->weight.grad()[0][0].item<float>();
  };
  EXPECT_EQ(step(), 258);
  EXPECT_EQ(step(), 516);  // to gradients that are left
  {
    const torch::NoGradGuard no_gradients;
    net->weight.mutable_grad().mul_(0.5);  // as clipping does between passes
  }
  EXPECT_EQ(step(), 516);
  net->weight.mutable_grad().zero_();
  EXPECT_EQ(step(), 258);
  net->weight.mutable_grad().reset();
  EXPECT_EQ(step(), 258);
}

/// A matrix that is the first layer's and the last one's, so that its gradient comes from both.
struct TiedImpl : torch::nn::Cloneable<TiedImpl> {
  TiedImpl() { reset(); }
  void reset() override {
    first = register_module("first", torch::nn::Linear(torch::nn::LinearOptions(3, 3).bias(false)));
    head = register_parameter("head", first->weight);
  }
  torch::Tensor forward(const torch::Tensor& inputs) { return torch::matmul(first(inputs), head); }
  torch::nn::Linear first = nullptr;
  torch::Tensor head;
};
TORCH_MODULE(Tied);

TEST_F(DistributedModelTest, ReducesAParameterWithTwoNamesOnce) {
  Tied net;
  net->to(torch::kFloat64);
  net->head = net->first->weight;
  DistributedModel model(net, strategy_, {.bytes_per_bucket = 1});
  EXPECT_EQ(model.bucket_count(), 2U);  // of the matrix, and of what a pass has reached
  const torch::Tensor inputs = inputs_.narrow(1, 0, 3);
  const auto expected = torch::autograd::grad({net->forward(inputs).square().mean()}, {net->head});
  model.backward(net->forward(inputs.narrow(0, rank() * kRowsEach, kRowsEach)).square().mean());
  EXPECT_LT((net->head.grad() - expected[0]).abs().max().item<double>(), kTolerance);
  expect_same_bits(net->head.grad());
}

TEST_F(DistributedModelTest, NamesTheWorkerWhoseTensorsAreNotTied) {
  if (size() < 3) GTEST_SKIP() << "needs a majority";
  Tied net;
  if (rank() == 1) {
    struct Apart : torch::nn::Module {
      Apart() {
        register_parameter("head", torch::zeros({3, 3}));
        register_module("first", torch::nn::Linear(torch::nn::LinearOptions(3, 3).bias(false)));
      }
    };
    try {
      const DistributedModel model(std::make_shared<Apart>(), strategy_);
      FAIL() << "no error";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("parameter 'head' float32[3, 3] with a gradient, also 'first.weight'"));
    }
    return;
  }
  EXPECT_THROW(DistributedModel(net, strategy_), InvalidArgument);
}

TEST_F(DistributedModelTest, AddsUpTheGradientsOfSeveralPasses) {
  Net net;
  DistributedModel model(net, strategy_);
  for (int step = 0; step < 2; ++step) {
    clear(net);
    const auto expected = alone(net, 3);
    {
      const auto no_sync = model.no_sync();
      model.backward(2 * loss(net, mine()));
    }
    model.backward(loss(net, mine()));
    expect_gradients(net, expected);
  }
  // Gradients that are left are added to.
  const auto expected = alone(net, 5);
  model.backward(2 * loss(net, mine()));
  expect_gradients(net, expected);
}

TEST_F(DistributedModelTest, CountsAParameterThatAPassDoesNotReachAsZero) {
  Net net;
  DistributedModel model(net, strategy_);
  const bool odd = rank() % 2 == 1;
  for (int step = 0; step < 2; ++step) {
    clear(net);
    model.backward(loss(net, mine(), !odd));
    ASSERT_TRUE(net->extra->bias.grad().defined());
    expect_same_bits(net->extra->bias.grad());
    EXPECT_FALSE(net->never->bias.grad().defined());
  }
  clear(net);
  model.backward(loss(net, mine(), false));
  EXPECT_FALSE(net->extra->bias.grad().defined());
}

TEST_F(DistributedModelTest, CountsAParameterThatOnlyAnEarlierPartOfABatchReached) {
  Net net;
  DistributedModel model(net, strategy_);
  {
    const auto no_sync = model.no_sync();
    model.backward(loss(net, mine(), rank() == 0));
  }
  model.backward(loss(net, mine(), false));
  ASSERT_TRUE(net->extra->bias.grad().defined());
  expect_same_bits(net->extra->bias.grad());
}

TEST_F(DistributedModelTest, WorkersMayHaveOtherNumbersOfBatches) {
  Net net;
  DistributedModel model(net, strategy_);
  torch::Tensor own_bias;
  model.join([&] {
    for (int step = 0; step <= rank(); ++step) {
      clear(net);
      // Of the workers that have this batch: those from `step` on.
      const torch::Tensor theirs = inputs_.narrow(0, step * kRowsEach, (size() - step) * kRowsEach);
      const auto expected =
          torch::autograd::grad({loss(net, theirs)}, {net->second->weight, net->extra->bias});
      model.backward(loss(net, mine()));
      EXPECT_LT((net->second->weight.grad() - expected[0]).abs().max().item<double>(), kTolerance);
      EXPECT_LT((net->extra->bias.grad() - expected[1]).abs().max().item<double>(), kTolerance);
      const torch::NoGradGuard no_gradients;
      for (auto& parameter : net->parameters())
        if (parameter.grad().defined()) parameter -= 0.1 * parameter.grad();
    }
    own_bias = net->first->bias.detach().clone();
  });
  // The last worker made the most passes.
  EXPECT_EQ(torch::equal(net->first->bias, own_bias), rank() == size() - 1);
  for (const auto& parameter : net->parameters()) expect_same_bits(parameter);
  clear(net);
  const auto expected = alone(net);
  model.backward(loss(net, mine()));
  expect_gradients(net, expected);
}

TEST_F(DistributedModelTest, ExchangesBuffers) {
  for (const BufferExchange exchange :
       {BufferExchange::kBroadcast, BufferExchange::kMean, BufferExchange::kNone}) {
    torch::nn::BatchNorm1d norm(4);
    norm->to(torch::kFloat64);
    DistributedModel model(norm, strategy_, {.buffers = exchange});
    const torch::Tensor output = norm->forward(mine());
    const torch::Tensor of_all = inputs_.view({size(), kRowsEach, 4}).mean(1) * 0.1;
    model.backward(output.sum());
    const torch::Tensor expected = exchange == BufferExchange::kBroadcast ? of_all[0]
                                   : exchange == BufferExchange::kMean    ? of_all.mean(0)
                                                                          : of_all[rank()];
    EXPECT_LT((norm->running_mean - expected).abs().max().item<double>(), kTolerance);
    EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
  }
}

TEST_F(DistributedModelTest, NamesTheWorkerWithAnotherModule) {
  if (size() < 3) GTEST_SKIP() << "needs a majority";
  Net net(rank() == 1 ? 91 : 90);
  try {
    const DistributedModel model(net, strategy_);
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("member 1 (worker 1"));
    EXPECT_THAT(error.what(), HasSubstr("parameter 'first.weight' float64[91, 4]"));
    EXPECT_THAT(error.what(), HasSubstr("parameter 'first.weight' float64[90, 4]"));
  }
}

TEST_F(DistributedModelTest, NamesTheWorkerThatTrainsOtherParameters) {
  if (size() < 3) GTEST_SKIP() << "needs a majority";
  Net net;
  net->last->bias.set_requires_grad(rank() != 2);
  try {
    const DistributedModel model(net, strategy_);
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("member 2 (worker 2"));
    EXPECT_THAT(error.what(), HasSubstr("parameter 'last.bias' float64[1], where"));
    EXPECT_THAT(error.what(), HasSubstr("parameter 'last.bias' float64[1] with a gradient"));
  }
  net->last->bias.set_requires_grad(true);
  DistributedModel model(net, strategy_);  // the strategy can be used
  const auto expected = alone(net);
  model.backward(loss(net, mine()));
  expect_gradients(net, expected);
}

TEST_F(DistributedModelTest, NamesTheWorkerThatThrows) {
  Net net;
  try {
    DistributedModel model(net, strategy_);
    torch::Tensor its_loss = loss(net, mine());
    if (rank() == size() - 1)
      net->first->weight.register_hook(
          [](const torch::Tensor&) { throw std::runtime_error("no such luck"); });
    model.backward(its_loss);
    FAIL() << "no error";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("no such luck"));
    if (rank() != size() - 1) {
      EXPECT_THAT(error.what(), HasSubstr("worker " + std::to_string(size() - 1)));
    }
  }
}

TEST_F(DistributedModelTest, NamesTheWorkerThatLeaves) {
  if (size() == 1) GTEST_SKIP() << "nobody waits";
  Net net;
  try {
    DistributedModel model(net, strategy_);
    if (rank() == 0) throw std::runtime_error("out of data");
    model.backward(loss(net, mine()));
    FAIL() << "no error";
  } catch (const std::exception& error) {
    if (rank() != 0) {
      EXPECT_THAT(error.what(), HasSubstr("member 0 (worker 0"));
    }
  }
}

TEST_F(DistributedModelTest, RefusesABackwardPassThatItDoesNotReduce) {
  Net net;
  DistributedModel model(net, strategy_);
  EXPECT_THROW(loss(net, mine()).backward(), WrongContext);
}

TEST(DistributedModel, EachReplicaOfAProcessMayHaveOne) {
  const MirroredStrategy strategy(cpu_devices(3));
  torch::manual_seed(5);
  const torch::Tensor inputs = torch::randn({9, 4}, torch::kFloat64);
  std::vector<Net> nets(3);
  EXPECT_THROW(DistributedModel(nets[0], strategy), InvalidArgument);
  strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    Net& net = nets[static_cast<std::size_t>(id)];
    DistributedModel model(net, replica);
    model.backward(net->forward(inputs.narrow(0, 3 * id, 3)).square().mean());
  });
  const auto expected =
      torch::autograd::grad({nets[2]->forward(inputs).square().mean()}, {nets[2]->first->bias});
  for (Net& net : nets)
    EXPECT_LT((net->first->bias.grad() - expected[0]).abs().max().item<double>(), kTolerance);
}

}  // namespace
}  // namespace cohort::libtorch
