// Batch normalization by the statistics of all replicas.
#include <cohort/train/normalization/sync_batch_norm.h>

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "../../strategy/fake_cluster.h"
#include "../../strategy/strategies.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::SizeIs;

Tensor rows_of(std::int64_t rows, int seed = 0) {
  Tensor tensor = Tensor::uninitialized({rows, 2}, DType::kFloat64);
  for (std::size_t i = 0; i < tensor.elements(); ++i)
    tensor.span<double>()[i] = std::sin(static_cast<double>(i * 7 + i * i) + seed) * 2 + 1;
  return tensor;
}

SyncBatchNorm norm_in(const Strategy& strategy,
                      const SyncBatchNormOptions& options = {.dtype = DType::kFloat64}) {
  const auto scope = strategy.scope();
  return SyncBatchNorm(2, options);
}

class BatchNorm : public WithReplicas {
 protected:
  /// Replica r has r + 1 rows of the batch, and the last one none if there are others.
  Tensor own_rows(const Tensor& batch, int replica) const {
    const std::int64_t begin = std::int64_t{replica} * (replica + 1) / 2;
    const bool is_empty = replica == last() && replicas() > 1;
    return batch.rows(begin, is_empty ? begin : begin + replica + 1);
  }
  [[nodiscard]] static std::int64_t all_rows() {
    return replicas() == 1 ? 1 : std::int64_t{last()} * replicas() / 2;
  }

  /// A loss over all replicas: the sum of output^3 / 3.
  double loss(const SyncBatchNorm& norm, const Tensor& batch) const {
    const auto losses = strategy_.run([&](ReplicaContext& replica) {
      const Tensor own = own_rows(batch, replica.replica_id_in_sync_group());
      const Tensor output = norm.forward(own).output;
      double sum = 0;
      for (const double y : output.span<double>()) sum += y * y * y / 3;
      return sum;
    });
    double sum = 0;
    for (const double own : losses.components()) sum += own;
    return sum;
  }

  struct Gradients {
    std::vector<double> by_input;
    std::vector<double> by_gamma = {0, 0};
    std::vector<double> by_beta = {0, 0};
  };
  Gradients gradients(const SyncBatchNorm& norm, const Tensor& batch) const {
    const auto parts = strategy_.run([&](ReplicaContext& replica) {
      const Tensor own = own_rows(batch, replica.replica_id_in_sync_group());
      const NormalizedBatch normalized = norm.forward(own);
      const Tensor slope = normalized.output.clone();
      for (double& y : slope.span<double>()) y *= y;
      return norm.backward(slope, own, normalized.moments);
    });
    Gradients all;
    for (const BatchNormGradients& part : parts.components()) {
      for (const double slope : part.input.span<double>()) all.by_input.push_back(slope);
      for (std::size_t c = 0; c < 2; ++c) {
        all.by_gamma[c] += part.gamma.span<double>()[c];
        all.by_beta[c] += part.beta.span<double>()[c];
      }
    }
    return all;
  }
};
COHORT_INSTANTIATE_REPLICAS(BatchNorm);

/// The slope of `function` in each number, by central differences.
template <class Function>
std::vector<double> slopes_of(const Tensor& numbers, Function function) {
  std::vector<double> slopes;
  for (double& number : numbers.span<double>()) {
    const double before = number;
    constexpr double kStep = 1e-5;
    number = before + kStep;
    const double above = function();
    number = before - kStep;
    slopes.push_back((above - function()) / (2 * kStep));
    number = before;
  }
  return slopes;
}

TEST_P(BatchNorm, HasTheGradientsOfFiniteDifferences) {
  const SyncBatchNorm norm = norm_in(strategy_);
  norm.gamma()->assign(Tensor::from({1.5, -0.5}));
  norm.beta()->assign(Tensor::from({0.25, 1.0}));
  const Tensor batch = rows_of(all_rows());
  const Gradients found = gradients(norm, batch);
  const auto near = [](const std::vector<double>& wanted) { return Pointwise(DoubleNear(1e-6), wanted); };
  EXPECT_THAT(found.by_input, near(slopes_of(batch, [&] { return loss(norm, batch); })));
  const auto by = [&](const Variable& variable) {
    const Tensor value = variable.components()[0].clone();
    return slopes_of(value, [&] {
      variable.assign(value);
      return loss(norm, batch);
    });
  };
  EXPECT_THAT(found.by_gamma, near(by(*norm.gamma())));
  norm.gamma()->assign(Tensor::from({1.5, -0.5}));
  EXPECT_THAT(found.by_beta, near(by(*norm.beta())));
}

TEST_P(BatchNorm, KeepsTheMovingStatisticsEqual) {
  const SyncBatchNorm norm = norm_in(strategy_, {.momentum = 0.5, .dtype = DType::kFloat64});
  const Tensor batch = Tensor::from(std::vector<double>{1, 2, 3, 10}, {2, 2});
  strategy_.run([&](ReplicaContext& replica) {
    const bool first = replica.replica_id_in_sync_group() == 0;
    static_cast<void>(norm.forward(first ? batch : batch.rows(0, 0)));
  });
  for (int id = 0; id < replicas(); ++id) {
    EXPECT_THAT(component(norm.moving_mean(), id), ElementsAre(1, 3));
    EXPECT_THAT(component(norm.moving_variance(), id), ElementsAre(1, 8.5));
  }
}

TEST_P(BatchNorm, OfNoRowsChangesNothing) {
  const SyncBatchNorm norm = norm_in(strategy_);
  strategy_.run([&] {
    const Tensor none = Tensor::zeros({0, 2}, DType::kFloat64);
    const NormalizedBatch normalized = norm.forward(none);
    EXPECT_EQ(normalized.output.shape(), none.shape());
    const BatchNormGradients by = norm.backward(none, none, normalized.moments);
    EXPECT_EQ(by.input.shape(), none.shape());
    EXPECT_THAT(by.gamma.span<double>(), ElementsAre(0, 0));
    EXPECT_THAT(by.beta.span<double>(), ElementsAre(0, 0));
  });
  EXPECT_THAT(component(norm.moving_mean(), 0), ElementsAre(0, 0));
  EXPECT_THAT(component(norm.moving_variance(), 0), ElementsAre(1, 1));
}

TEST_P(BatchNorm, OfTheOwnReplicaLeavesTheOthersAlone) {
  const SyncBatchNorm norm = norm_in(
      strategy_, {.momentum = 0.5, .statistics = BatchStatistics::kOwnReplica, .dtype = DType::kFloat64});
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == 0) return;  // nobody waits for it
    const double id = replica.replica_id_in_sync_group();
    static_cast<void>(norm.forward(Tensor::from(std::vector<double>{id, 0, id, 2}, {2, 2})));
  });
  EXPECT_THAT(component(norm.moving_mean(), 0), ElementsAre(0, 0));
  for (int id = 1; id < replicas(); ++id) {
    EXPECT_THAT(component(norm.moving_mean(), id), ElementsAre(id / 2.0, 0.5));
    EXPECT_THAT(component(norm.moving_variance(), id), ElementsAre(0.5, 1));
  }
  const auto scope = strategy_.scope();
  EXPECT_THAT(numbers(norm.moving_mean().read()),
              ElementsAre(last() / 4.0, DoubleNear(0.5 * last() / replicas(), 1e-15)));
}

TEST_P(BatchNorm, KeepsSingleCopies) {
  const CentralStorageStrategy strategy(cpu_devices(replicas()));
  for (const BatchStatistics statistics : {BatchStatistics::kAllReplicas, BatchStatistics::kOwnReplica}) {
    const SyncBatchNorm norm =
        norm_in(strategy, {.momentum = 0.5, .statistics = statistics, .dtype = DType::kFloat64});
    strategy.run([&](ReplicaContext& replica) {
      const double id = replica.replica_id_in_sync_group();
      static_cast<void>(norm.forward(Tensor::from(std::vector<double>{id, 0, id, 2}, {2, 2})));
    });
    EXPECT_THAT(component(norm.moving_mean(), 0),
                ElementsAre(DoubleNear(last() / 4.0, 1e-15), DoubleNear(0.5, 1e-15)));
  }
}

TEST_P(BatchNorm, RefusesWhatItCannotNormalize) {
  const SyncBatchNorm norm = norm_in(strategy_, {.name = "norm"});
  const auto refusal = [&](const Tensor& input) {
    return message_of(ErrorCode::kInvalidArgument,
                      [&] { strategy_.run([&] { static_cast<void>(norm.forward(input)); }); });
  };
  EXPECT_THAT(
      refusal(Tensor::zeros({4, 3}, DType::kFloat32)),
      HasSubstr("SyncBatchNorm 'norm' of 2 channels along axis -1: it cannot normalize float32[4, 3]"));
  EXPECT_THAT(refusal(Tensor::zeros({4, 2}, DType::kInt32)), HasSubstr("int32[4, 2]"));
  EXPECT_THAT(refusal(Tensor::zeros({}, DType::kFloat32)), HasSubstr("float32[]"));
  const Tensor fits = Tensor::zeros({4, 2}, DType::kFloat32);
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument,
                 [&] {
                   strategy_.run([&] {
                     static_cast<void>(norm.backward(fits.rows(0, 1), fits, norm.forward(fits).moments));
                   });
                 }),
      HasSubstr("the gradient float32[1, 2] does not look like the input float32[4, 2]"));
  const auto scope = strategy_.scope();
  EXPECT_THAT(message_of(ErrorCode::kWrongContext, [&] { static_cast<void>(norm.forward(fits)); }),
              HasSubstr("run()"));
}

TEST(BatchNormOptions, AreChecked) {
  const auto refusal = [](std::int64_t channels, const SyncBatchNormOptions& options) {
    return message_of(ErrorCode::kInvalidArgument, [&] { SyncBatchNorm(channels, options); });
  };
  EXPECT_THAT(refusal(0, {.name = "norm"}), HasSubstr("'norm': it has 0 channels"));
  EXPECT_THAT(refusal(2, {.momentum = 1.5}), HasSubstr("the momentum is 1.5"));
  EXPECT_THAT(refusal(2, {.momentum = std::numeric_limits<double>::quiet_NaN()}), HasSubstr("momentum"));
  EXPECT_THAT(refusal(2, {.epsilon = -1}), HasSubstr("epsilon is -1"));
  EXPECT_THAT(refusal(2, {.dtype = DType::kFloat16}), HasSubstr("float16"));
}

TEST(BatchNormOptions, SayWhichVariablesThereAre) {
  const SyncBatchNorm plain(2, {.center = false, .scale = false});
  EXPECT_FALSE(plain.gamma());
  EXPECT_FALSE(plain.beta());
  EXPECT_THAT(plain.parameters(), SizeIs(0));
  const SyncBatchNorm full(2, {.name = "norm"});
  ASSERT_THAT(full.parameters(), SizeIs(2));
  EXPECT_EQ(full.parameters()[0].name(), "norm/gamma");
  EXPECT_EQ(full.moving_mean().aggregation(), VariableAggregation::kMean);
  EXPECT_FALSE(full.moving_mean().trainable());
}

// The same numbers in [N, H, W, C] and in [N, C, H, W].
TEST(BatchNormAxis, MayLieAnywhere) {
  const SyncBatchNorm last(2, {.dtype = DType::kFloat64});
  const SyncBatchNorm second(2, {.axis = 1, .dtype = DType::kFloat64});
  const Tensor by_pixels = rows_of(12).reshape({2, 3, 2, 2});
  const auto in_planes = [](const Tensor& pixels) {
    const Tensor planes = Tensor::uninitialized({2, 2, 3, 2}, DType::kFloat64);
    for (std::size_t n = 0; n < 2; ++n)
      for (std::size_t pixel = 0; pixel < 6; ++pixel)
        for (std::size_t c = 0; c < 2; ++c)
          planes.span<double>()[(n * 2 + c) * 6 + pixel] = pixels.span<double>()[(n * 6 + pixel) * 2 + c];
    return planes;
  };
  const NormalizedBatch one = last.forward(by_pixels);
  const NormalizedBatch other = second.forward(in_planes(by_pixels));
  EXPECT_TRUE(bitwise_equal(in_planes(one.output), other.output));
  const BatchNormGradients by_one = last.backward(one.output, by_pixels, one.moments);
  const BatchNormGradients by_other = second.backward(other.output, in_planes(by_pixels), other.moments);
  EXPECT_TRUE(bitwise_equal(in_planes(by_one.input), by_other.input));
  EXPECT_TRUE(bitwise_equal(by_one.gamma, by_other.gamma));
  EXPECT_TRUE(bitwise_equal(last.infer(by_pixels).reshape({24}),
                            last.infer(by_pixels.reshape({12, 2})).reshape({24})));
}

TEST(BatchNormPrecision, IsThatOfFloat64WhereTheMeanIsLarge) {
  for (const bool reproducible : {false, true}) {
    const MirroredStrategy strategy(cpu_devices(2), {.reproducible = reproducible});
    const SyncBatchNorm norm = norm_in(strategy, {.dtype = DType::kFloat64});
    const auto moments = strategy.run([&](ReplicaContext& replica) {
      const double id = replica.replica_id_in_sync_group();
      return norm.forward(Tensor::from(std::vector<double>{1e8 + id, 1e12 - id, 1e8 - id, 1e12}, {2, 2}))
          .moments;
    });
    EXPECT_THAT(moments.components()[0].mean.span<double>(), ElementsAre(1e8, 1e12 - 0.25));
    EXPECT_THAT(moments.components()[0].variance.span<double>(), ElementsAre(0.5, 0.1875));
  }
}

TEST(BatchNormPrecision, OfHalfElementsIsThatOfTheirValues) {
  const SyncBatchNorm norm(2);
  const Tensor wide = rows_of(64).cast(DType::kFloat32);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const NormalizedBatch narrow = norm.forward(wide.cast(dtype));
    EXPECT_EQ(narrow.output.dtype(), dtype);
    const NormalizedBatch same = norm.forward(wide.cast(dtype).cast(DType::kFloat32));
    EXPECT_TRUE(bitwise_equal(narrow.output, same.output.cast(dtype)));
    EXPECT_TRUE(bitwise_equal(narrow.moments.variance, same.moments.variance));
  }
}

// Computed by PyTorch 1.13, whose SyncBatchNorm needs GPUs: BatchNorm2d(2, eps=1e-5, momentum=0.1) in
// float64, weight [1.5, -0.5], bias [0.25, 1], loss sum(output^3 / 3). Its running variance is that of a
// sample, times 12 / 11.
TEST_P(BatchNorm, HasThePyTorchValuesOfTheWholeBatch) {
  const Tensor input =
      Tensor::from(std::vector<double>{0.5, -1,  2,    0.25, 3,  -2, 1.5, 0, 1, 1.25, -0.75, 0.5,
                                       -1,  2.5, 0.75, 4,    -2, 0,  0.5, 3, 1, 1,    -3,    0.5},
                   {3, 2, 2, 2});
  const std::vector<double> output{
      0.323279571451, -1.43543014337, 2.08198928628,  0.0301612856469, 0.400517303867, 1.69669610632,
      0.789370944602, 1.17822458534,  0.909516143059, 1.20263442886,   -1.14231185757, 0.323279571451,
      1.43746034583,  0.530135184112, 0.983797764969, 0.141281543377,  -2.60790328659, -0.262957000157,
      0.323279571451, 3.25446242949,  0.918988824847, 0.918988824847,  1.95593186681,  1.04860670509};
  const std::vector<double> by_input{-2.64272133284,   0.944851968051,    1.02276460109,   -2.54847711844,
                                     -0.0458839309257, -0.040649337712,   0.0471491506227, 0.0617856290989,
                                     -2.22678815873,   -1.71661077023,    -0.156761584514, -2.64272133284,
                                     0.0279896130428,  -0.00616217006817, 0.0642669652448, -0.151459653665,
                                     7.36604485465,    -2.25275903641,    -2.64272133284,  7.49589924304,
                                     0.0607387104561,  0.0607387104561,   -0.144131223166, 0.0656175366148};
  const SyncBatchNorm norm =
      norm_in(strategy_, {.axis = 1, .momentum = 0.9, .epsilon = 1e-5, .dtype = DType::kFloat64});
  norm.gamma()->assign(Tensor::from({1.5, -0.5}));
  norm.beta()->assign(Tensor::from({0.25, 1.0}));
  strategy_.run([&](ReplicaContext& replica) {
    const std::int64_t id = replica.replica_id_in_sync_group();
    const Tensor own = input.rows(3 * id / replicas(), 3 * (id + 1) / replicas());
    const NormalizedBatch batch = norm.forward(own);
    const Tensor slope = batch.output.clone();
    for (double& y : slope.span<double>()) y *= y;
    const BatchNormGradients by = norm.backward(slope, own, batch.moments);
    EXPECT_THAT(numbers(replica.all_gather(batch.output, 0)), Pointwise(DoubleNear(1e-10), output));
    EXPECT_THAT(numbers(replica.all_gather(by.input, 0)), Pointwise(DoubleNear(1e-10), by_input));
    EXPECT_THAT(numbers(replica.all_reduce(ReduceOp::kSum, by.gamma)),
                ElementsAre(DoubleNear(11.298006315, 1e-9), DoubleNear(-12.6767509174, 1e-9)));
    EXPECT_THAT(numbers(replica.all_reduce(ReduceOp::kSum, by.beta)),
                ElementsAre(DoubleNear(27.7498350368, 1e-9), DoubleNear(14.9999919356, 1e-9)));
  });
  EXPECT_THAT(component(norm.moving_mean(), 0),
              ElementsAre(DoubleNear(0.04375, 1e-11), DoubleNear(0.06875, 1e-11)));
  EXPECT_THAT(component(norm.moving_variance(), 0),
              ElementsAre(DoubleNear(0.9 + 0.17855113636 * 11 / 12, 1e-10),
                          DoubleNear(0.9 + 0.40582386364 * 11 / 12, 1e-10)));
}

struct Layout {
  int workers;
  int devices;
};

class BatchNormOfWorkers : public ::testing::TestWithParam<Layout> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap& worker, int devices)) {
    for_each_worker(GetParam().workers, [&](Bootstrap& worker) { check(worker, GetParam().devices); });
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, BatchNormOfWorkers,
                         ::testing::Values(Layout{1, 1}, Layout{2, 1}, Layout{1, 2}, Layout{3, 1},
                                           Layout{1, 4}, Layout{2, 2}, Layout{5, 1}, Layout{2, 3}),
                         [](const auto& layout) {
                           return std::to_string(layout.param.workers) + "x" +
                                  std::to_string(layout.param.devices);
                         });

TEST_P(BatchNormOfWorkers, IsThatOfAllRows) { on_every_worker(check_batch_norm_of_all_rows); }
TEST_P(BatchNormOfWorkers, HasTheSameBitsInEveryLayout) { on_every_worker(check_bits_of_batch_norm); }
TEST_P(BatchNormOfWorkers, NamesReplicasThatDiffer) { on_every_worker(check_batch_norms_that_differ); }

}  // namespace
}  // namespace cohort::testing
