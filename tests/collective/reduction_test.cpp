#include <cohort/collective/reduction.h>

#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include <cohort/collective/collective_call.h>
#include <cohort/device/tensor.h>

namespace cohort {
namespace {

Tensor reduce(ReduceOp op, const std::vector<Tensor>& inputs) {
  Tensor result = Tensor::uninitialized(inputs.front().shape(), inputs.front().dtype());
  std::vector<const std::byte*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(input.data());
  reduce_elements(result.dtype(), op, pointers, result.data(), result.elements());
  return result;
}

TEST(Reduction, CombinesAllInputsInOnePass) {
  const Tensor sum =
      reduce(ReduceOp::kSum, {Tensor::from({1.0, 2.0}), Tensor::from({3.0, 4.0}), Tensor::from({5.0, 7.0})});
  EXPECT_THAT(sum.span<double>(), ::testing::ElementsAre(9.0, 13.0));
}

TEST(Reduction, WrapsIntegersInsteadOfOverflowing) {
  const auto largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(
      reduce(ReduceOp::kSum, {Tensor::from({largest}), Tensor::from<std::int64_t>({1})}).item<std::int64_t>(),
      std::numeric_limits<std::int64_t>::min());
  const Tensor shorts = Tensor::from<std::uint16_t>({65535});
  EXPECT_EQ(reduce(ReduceOp::kProd, {shorts, shorts}).item<int>(), 1);
}

TEST(Reduction, RoundsSixteenBitMeansOnce) {
  const std::vector<Tensor> inputs(3, Tensor::from({float16(1.0f)}));
  EXPECT_EQ(static_cast<float>(reduce(ReduceOp::kMean, inputs).span<float16>()[0]), 1.0f);
}

TEST(ReduceOps, AreReadInAnyCase) {
  EXPECT_EQ(parse_reduce_op("SUM"), ReduceOp::kSum);
  EXPECT_EQ(parse_reduce_op("Mean"), ReduceOp::kMean);
  EXPECT_THROW(static_cast<void>(parse_reduce_op("avg")), InvalidArgument);
}

TEST(Mismatch, IsDecidedByMajority) {
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.dtype = DType::kFloat32;
  call.elements = 1000;
  std::vector<MemberCall> calls;
  for (int member = 0; member < 8; ++member) calls.push_back({member, signature(call, 4183)});
  std::vector<MemberInfo> members(8, MemberInfo{2, "n1"});
  int odd = -1;
  EXPECT_FALSE(explain_mismatch(calls, members, odd));
  call.elements = 1024;
  calls[5].signature = signature(call, 4183);
  const auto text = explain_mismatch(calls, members, odd);
  ASSERT_TRUE(text);
  EXPECT_EQ(odd, 5);
  EXPECT_THAT(*text,
              ::testing::HasSubstr("all_reduce #4183: members disagree: member 5 (worker 2, host n1) called "
                                   "all_reduce(float32[1024], sum); the other 7 called"));
}

}  // namespace
}  // namespace cohort
