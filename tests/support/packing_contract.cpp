#include "communicator_contracts.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/collective/communication_scope.h>
#include <cohort/collective/gradient_buckets.h>

#include "collective/packing/tensor_lists.h"
#include "device/node_heap.h"
#include "reduction_inputs.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

/// Of packs and buckets: chosen by cost, one byte, a few tensors, everything in one.
constexpr std::size_t kLimits[] = {0, 1, 100, std::size_t{1} << 30};

/// Small and large ones, mixed dtypes, empty ones and scalars.
const std::vector<TensorSpec>& mixed_specs() {
  static const std::vector<TensorSpec> specs{{{3, 5}, DType::kFloat32, "first"},
                                             {{7}, DType::kFloat16},
                                             {{0, 4}, DType::kFloat32},
                                             {{2}, DType::kFloat64},
                                             {{}, DType::kFloat32},
                                             {{40'000}, DType::kFloat32, "large"},
                                             {{0}, DType::kBFloat16},
                                             {{16}, DType::kFloat32},
                                             {{9, 9}, DType::kBFloat16},
                                             {{30'001}, DType::kFloat64},
                                             {{1}, DType::kFloat32, "last"}};
  return specs;
}

/// What a member puts into tensor `index`, where its tensors are; other values in every step.
Tensor own_part(const Communicator& communicator, const TensorSpec& spec, ReduceOp op, int step = 0) {
  return exact_inputs(communicator.rank() + step, spec.dtype, op, spec.elements())
      .reshape(spec.shape)
      .to(communicator.device());
}

std::vector<Tensor> own_parts(Communicator& communicator, std::span<const TensorSpec> specs, ReduceOp op) {
  std::vector<Tensor> parts;
  for (const TensorSpec& spec : specs) parts.push_back(own_part(communicator, spec, op));
  return parts;
}

/// One all-reduce per tensor: packed reductions must give the same bits.
std::vector<Tensor> reduced_one_by_one(Communicator& communicator, std::span<const TensorSpec> specs,
                                       ReduceOp op, int step = 0) {
  std::vector<Tensor> results;
  for (const TensorSpec& spec : specs) {
    results.push_back(own_part(communicator, spec, op, step));
    communicator.all_reduce(results.back(), op);
  }
  return results;
}

void expect_all_same(std::span<const Tensor> got, std::span<const Tensor> wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(bitwise_equal(got[i].on_host(), wanted[i].on_host()))
        << what << ", tensor " << i << ": got " << got[i] << ", wanted " << wanted[i];
}

std::vector<Tensor> results_of(const GradientBuckets& buckets) {
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < buckets.size(); ++i) results.push_back(buckets.result(i));
  return results;
}

/// Announces in a random order; about every second gradient lies in its bucket, the others elsewhere.
void run_step(GradientBuckets& buckets, const Communicator& communicator, std::span<const TensorSpec> specs,
              ReduceOp op, int step, std::mt19937& random) {
  std::vector<std::size_t> order(buckets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t index : order) {
    const Tensor part = own_part(communicator, specs[index], op, step);
    if (random() % 2 == 0) {
      buckets.tensor(index).copy_from(part);
      buckets.ready(index);
    } else {
      buckets.ready(index, part);
    }
  }
  buckets.wait();
}

/// Every member's numbers, by rank.
std::vector<double> gathered(Communicator& communicator, std::initializer_list<double> own) {
  const Tensor input = Tensor::from(own);
  const Tensor output =
      Tensor::zeros({static_cast<std::int64_t>(own.size()) * communicator.size()}, DType::kFloat64);
  communicator.all_gather(input, output);
  return {output.span<double>().begin(), output.span<double>().end()};
}

std::vector<double> numbers_of(const CommunicationCost& cost) {
  return {cost.latency_seconds, cost.bytes_per_second, cost.copied_bytes_per_second};
}

void expect_agreed(Communicator& communicator, const CommunicationCost& cost) {
  const std::vector<double> all =
      gathered(communicator, {cost.latency_seconds, cost.bytes_per_second, cost.copied_bytes_per_second});
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_GT(all[i], 0);
    EXPECT_EQ(all[i], all[i % 3]) << "number " << i % 3 << " of member " << i / 3;
  }
}

}  // namespace

void check_cost(Communicator& communicator) {
  expect_agreed(communicator, measured_cost(communicator));
  const std::vector<double> first = numbers_of(communicator.cost());
  expect_agreed(communicator, communicator.cost());
  // Otherwise it would wait for the others here.
  if (communicator.rank() == 0) {
    EXPECT_EQ(numbers_of(communicator.cost()), first);
  }
  if (communicator.device().kind() == DeviceKind::kCpu) {
    EXPECT_EQ(first, numbers_of(CommunicationCost{}));
  }
  communicator.barrier();
}

void check_batches(Communicator& communicator) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    const std::vector<Tensor> wanted = reduced_one_by_one(communicator, mixed_specs(), op);
    for (const std::size_t bytes_per_pack : kLimits) {
      const std::string what = fmt::format("{} in packs of {} bytes", to_string(op), bytes_per_pack);
      BatchReducer reducer;
      const CommunicationScope scope(communicator, {.bytes_per_pack = bytes_per_pack});
      for (int step = 0; step < 3; ++step) {
        const std::vector<Tensor> in_place = own_parts(communicator, mixed_specs(), op);
        reducer.all_reduce(communicator, in_place, op);
        expect_all_same(in_place, wanted, what + ", in place");
      }
      const std::vector<Tensor> inputs = own_parts(communicator, mixed_specs(), op);
      expect_all_same(reducer.all_reduced(communicator, inputs, op), wanted, what + ", new");
      expect_all_same(inputs, own_parts(communicator, mixed_specs(), op), what + ", inputs");
    }
  }
  BatchReducer reducer;
  reducer.all_reduce(communicator, {}, ReduceOp::kSum);
  EXPECT_TRUE(reducer.all_reduced(communicator, {}, ReduceOp::kSum).empty());

  const Tensor wrong[] = {Tensor::zeros({3}, DType::kFloat32), Tensor::zeros({3}, DType::kInt32)};
  EXPECT_THROW(reducer.all_reduce(communicator, wrong, ReduceOp::kMean), InvalidArgument);
  communicator.barrier();  // nothing was sent
}

void check_batches_on_several_devices(Communicator& communicator, std::span<const Device> devices) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < devices.size(); ++i)
    parts.push_back(Tensor::full({10}, DType::kFloat32, static_cast<double>(i + 1), devices[i]));
  BatchReducer().all_reduce(communicator, parts, ReduceOp::kSum);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor sum = parts[i].on_host();
    EXPECT_THAT(sum.span<float>(), Each(static_cast<float>(i + 1) * static_cast<float>(communicator.size())))
        << "on " << to_string(devices[i]);
  }
}

void check_batch_mismatch(Communicator& communicator) {
  if (communicator.size() == 1) return;
  const bool odd = communicator.rank() == communicator.size() - 1;
  const Tensor pair[] = {Tensor::zeros({odd ? 2 : 3}, DType::kFloat32),
                         Tensor::zeros({odd ? 3 : 2}, DType::kFloat32)};
  BatchReducer reducer;
  const std::string text = message_of(ErrorCode::kInvalidArgument,
                                      [&] { reducer.all_reduce(communicator, pair, ReduceOp::kSum); });
  EXPECT_THAT(text, HasSubstr("layout"));
}

void check_buckets(Communicator& communicator) {
  constexpr int kSteps = 8;
  std::mt19937 random(static_cast<unsigned>(communicator.rank()));
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    std::vector<std::vector<Tensor>> wanted;
    wanted.reserve(kSteps);
    for (int step = 0; step < kSteps; ++step)
      wanted.push_back(reduced_one_by_one(communicator, mixed_specs(), op, step));
    for (const std::size_t bytes_per_bucket : kLimits) {
      GradientBuckets buckets(communicator, mixed_specs(), {.bytes_per_bucket = bytes_per_bucket, .op = op});
      for (int step = 0; step < kSteps; ++step) {
        run_step(buckets, communicator, mixed_specs(), op, step, random);
        expect_all_same(
            results_of(buckets), wanted[static_cast<std::size_t>(step)],
            fmt::format("{} in buckets of {} bytes, step {}", to_string(op), bytes_per_bucket, step));
      }
    }
  }
  GradientBuckets none(communicator, {});
  none.wait();
}

void check_huge_tensors(Communicator& communicator) {
  const auto elements = static_cast<std::int64_t>(kLargestCallBytes / sizeof(double)) + 3;
  const std::vector<TensorSpec> specs{{{5}, DType::kFloat64}, {{elements}, DType::kFloat64}};
  const std::vector<Tensor> inputs = own_parts(communicator, specs, ReduceOp::kSum);
  std::vector<Tensor> wanted;
  wanted.reserve(specs.size());
  for (const TensorSpec& spec : specs)
    wanted.push_back(exact_result(communicator.size(), spec.dtype, ReduceOp::kSum, spec.elements()));

  BatchReducer reducer;
  expect_all_same(reducer.all_reduced(communicator, inputs, ReduceOp::kSum), wanted, "batch");
  GradientBuckets buckets(communicator, specs);
  for (std::size_t i = 0; i < specs.size(); ++i) buckets.ready(i, inputs[i]);
  buckets.wait();
  expect_all_same(results_of(buckets), wanted, "buckets");
  EXPECT_EQ(buckets.result(1).data(), inputs[1].data()) << "large gradients are reduced where they are";
}

void check_memory_stays(Communicator& communicator) {
  constexpr ReduceOp kOp = ReduceOp::kSum;
  const std::vector<Tensor> gradients = own_parts(communicator, mixed_specs(), kOp);
  BatchReducer reducer;
  GradientBuckets buckets(communicator, mixed_specs());
  const auto run_steps = [&] {
    for (int step = 0; step < 10; ++step) {
      reducer.all_reduce(communicator, gradients, kOp);
      const std::vector<Tensor> results = reducer.all_reduced(communicator, gradients, kOp);
      for (std::size_t i = 0; i < buckets.size(); ++i) buckets.ready(i, gradients[i]);
      buckets.wait();
      communicator.barrier();  // members in one process hold their results at the same time
    }
  };
  run_steps();
  communicator.barrier();
  const NodeHeap::Statistics before = NodeHeap::of_this_process()->statistics();
  communicator.barrier();
  run_steps();
  communicator.barrier();
  EXPECT_EQ(NodeHeap::of_this_process()->statistics().growths, before.growths);
  EXPECT_EQ(NodeHeap::of_this_process()->statistics().backed_bytes, before.backed_bytes);
}

void check_bucket_arguments(Communicator& communicator) {
  const std::vector<TensorSpec> specs{{{3}, DType::kFloat32, "bias"}, {{2, 2}, DType::kFloat32}};
  GradientBuckets buckets(communicator, specs);
  const auto refused = [&](auto function) { return message_of(ErrorCode::kInvalidArgument, function); };

  EXPECT_THAT(refused([&] { buckets.ready(2); }),
              AllOf(HasSubstr("no gradient 2"), HasSubstr("2 gradients")));
  EXPECT_THAT(refused([&] { static_cast<void>(buckets.tensor(7)); }), HasSubstr("no gradient 7"));
  EXPECT_THAT(refused([&] { buckets.ready(0, Tensor::zeros({4}, DType::kFloat32)); }),
              AllOf(HasSubstr("gradient 0 (float32[3] 'bias')"), HasSubstr("float32[4]")));
  EXPECT_THAT(refused([&] {
                buckets.ready(1, Tensor::zeros({2, 2}, DType::kFloat64));
              }),
              AllOf(HasSubstr("gradient 1 (float32[2, 2])"), HasSubstr("float64[2, 2]")));
  buckets.tensor(0).fill(1);
  buckets.ready(0);
  EXPECT_THAT(refused([&] { buckets.ready(0); }), AllOf(HasSubstr("'bias'"), HasSubstr("twice")));
  EXPECT_THAT(refused([&] { buckets.wait(); }), HasSubstr("missing: gradient 1 (float32[2, 2])."));
  EXPECT_THAT(refused([&] {
                const TensorSpec integers{{3}, DType::kInt32};
                const GradientBuckets mean(communicator, {&integers, 1}, {.op = ReduceOp::kMean});
              }),
              HasSubstr("int32"));

  buckets.ready(1, Tensor::full({2, 2}, DType::kFloat32, 2));
  buckets.wait();
  const double members = communicator.size();
  EXPECT_TRUE(bitwise_equal(buckets.result(0).on_host(), Tensor::full({3}, DType::kFloat32, members)));
  EXPECT_TRUE(bitwise_equal(buckets.result(1).on_host(), Tensor::full({2, 2}, DType::kFloat32, 2 * members)));
}

void check_bucket_mismatch(Communicator& communicator) {
  if (communicator.size() == 1) return;
  const bool odd = communicator.rank() == communicator.size() - 1;
  const std::vector<TensorSpec> specs{{{odd ? 2 : 3}, DType::kFloat32}, {{odd ? 3 : 2}, DType::kFloat32}};
  GradientBuckets buckets(communicator, specs);
  const auto step = [&] {
    buckets.ready(0);
    buckets.ready(1);
    buckets.wait();
  };
  const std::string text = message_of(ErrorCode::kInvalidArgument, step);
  EXPECT_THAT(text, HasSubstr("layout"));
  if (communicator.size() > 2) {
    EXPECT_THAT(text, HasSubstr(fmt::format("members disagree: member {} ", communicator.size() - 1)));
  }
  EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { buckets.wait(); }), text);
  EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { buckets.ready(0); }), text);
}

}  // namespace cohort::testing
