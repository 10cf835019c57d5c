#include "worker_contracts.h"

#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/normalization/sync_batch_norm.h>

#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::int64_t kChannels = 3;

/// The rows of a global batch, and of the gradient by its output.
struct Batch {
  Tensor input;
  Tensor slopes;
};

/// `spread`: by how many powers of two magnitudes differ.
Batch batch_of(std::int64_t rows, DType dtype, int spread) {
  std::mt19937 random(static_cast<unsigned>(rows * 31 + spread));
  std::uniform_real_distribution<double> fraction(-1, 1);
  std::uniform_int_distribution<int> exponent(0, spread);
  const auto numbers = [&] {
    Tensor tensor = Tensor::uninitialized({rows, kChannels}, DType::kFloat64);
    for (double& number : tensor.span<double>()) number = std::ldexp(fraction(random), exponent(random)) + 3;
    return tensor.cast(dtype);
  };
  return {numbers(), numbers()};
}

/// How many rows come before those of a replica: uneven parts, of which some are empty.
std::int64_t rows_before(int replica, int replicas, std::int64_t rows) {
  if (replica == replicas) return rows;
  return rows * replica * replica / (replicas * replicas);
}

/// What became of the batch, with the rows of all replicas put together again.
struct Outcome {
  Tensor output;
  Tensor by_input;
  Tensor by_gamma;
  Tensor by_beta;
  Tensor moving_mean;
  Tensor moving_variance;
};

Outcome outcome_of(const Strategy& strategy, const Batch& batch, DType dtype) {
  const auto scope = strategy.scope();
  const SyncBatchNorm norm(kChannels, {.momentum = 0.5, .dtype = dtype, .name = "norm"});
  norm.gamma()->assign(Tensor::from({1.0, -2.0, 0.5}).cast(dtype));
  norm.beta()->assign(Tensor::from({0.0, 1.0, -1.0}).cast(dtype));
  const auto outcomes = strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const int replicas = replica.num_replicas_in_sync();
    const std::int64_t rows = batch.input.shape()[0];
    const std::int64_t begin = rows_before(id, replicas, rows);
    const std::int64_t end = rows_before(id + 1, replicas, rows);
    const Tensor input = batch.input.rows(begin, end);
    const NormalizedBatch normalized = norm.forward(input);
    EXPECT_EQ(normalized.moments.rows, rows);
    const BatchNormGradients by = norm.backward(batch.slopes.rows(begin, end), input, normalized.moments);
    return Outcome{replica.all_gather(normalized.output, 0),
                   replica.all_gather(by.input, 0),
                   replica.all_reduce(ReduceOp::kSum, by.gamma),
                   replica.all_reduce(ReduceOp::kSum, by.beta),
                   norm.moving_mean().read().clone(),
                   norm.moving_variance().read().clone()};
  });
  for (const Outcome& other : outcomes.components()) {
    EXPECT_TRUE(bitwise_equal(other.moving_mean, outcomes.components()[0].moving_mean));
    EXPECT_TRUE(bitwise_equal(other.moving_variance, outcomes.components()[0].moving_variance));
  }
  return outcomes.components()[0];
}

Outcome outcome_of_one(const Batch& batch, DType dtype, bool reproducible) {
  return outcome_of(MirroredStrategy({Device::cpu(0)}, {.reproducible = reproducible}), batch, dtype);
}

template <class Compare>
void compare(const Outcome& got, const Outcome& wanted, Compare compare) {
  compare(got.output, wanted.output, "output");
  compare(got.by_input, wanted.by_input, "gradient by the input");
  compare(got.by_gamma, wanted.by_gamma, "gradient by gamma");
  compare(got.by_beta, wanted.by_beta, "gradient by beta");
  compare(got.moving_mean, wanted.moving_mean, "moving mean");
  compare(got.moving_variance, wanted.moving_variance, "moving variance");
}

void expect_near(const Tensor& got, const Tensor& wanted, const char* what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  for (std::size_t i = 0; i < got.elements(); ++i)
    EXPECT_NEAR(got.span<double>()[i], wanted.span<double>()[i],
                1e-12 * (1 + std::abs(wanted.span<double>()[i])))
        << what << " " << i;
}

void expect_equal(const Tensor& got, const Tensor& wanted, const char* what) {
  EXPECT_TRUE(bitwise_equal(got, wanted)) << what << ": " << got << ", alone " << wanted;
}

}  // namespace

void check_batch_norm_of_all_rows(Bootstrap& worker, int devices) {
  const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60}, cpu_devices(devices));
  for (const std::int64_t rows : {0, 1, 2, 5, 64}) {
    const Batch batch = batch_of(rows, DType::kFloat64, 2);
    compare(outcome_of(strategy, batch, DType::kFloat64), outcome_of_one(batch, DType::kFloat64, false),
            expect_near);
  }
}

void check_bits_of_batch_norm(Bootstrap& worker, int devices) {
  const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60, .reproducible = true},
                                             cpu_devices(devices));
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const DType variables = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    const int spread = dtype == DType::kFloat16 ? 8 : 40;
    for (const std::int64_t rows : {0, 1, 7, 61}) {
      const Batch batch = batch_of(rows, dtype, spread);
      compare(outcome_of(strategy, batch, variables), outcome_of_one(batch, variables, true), expect_equal);
    }
  }
}

void check_batch_norms_that_differ(Bootstrap& worker, int devices) {
  if (worker.size() * devices == 1) return;
  const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 20}, cpu_devices(devices));
  std::vector<SyncBatchNorm> norms;
  {
    const auto scope = strategy.scope();
    norms.emplace_back(kChannels, SyncBatchNormOptions{.name = "first"});
    norms.emplace_back(kChannels, SyncBatchNormOptions{.name = "second"});
  }
  const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
    strategy.run([&](ReplicaContext& replica) {
      const bool odd = replica.replica_id_in_sync_group() == replica.num_replicas_in_sync() - 1;
      static_cast<void>(norms[odd ? 1 : 0].forward(Tensor::zeros({2, kChannels}, DType::kFloat32)));
    });
  });
  EXPECT_THAT(text, HasSubstr("normalizes a batch for "));
  EXPECT_THAT(text, AnyOf(HasSubstr("first/moving_mean"), HasSubstr("second/moving_mean")));
}

}  // namespace cohort::testing
