// After the first step packing asks for no memory at all: every `new` of this program is
// counted, over a communicator that needs none itself.
#include <gmock/gmock.h>

#include <cohort/collective/gradient_buckets.h>

#include "../../benchmarks/dispatch/allocations.h"
#include "collective/communicator_base.h"
#include "collective/packing/tensor_lists.h"

namespace cohort::testing {
namespace {

/// A communicator of one member, whose sums are its inputs; every call has ended when `begin` returns.
class LoneCommunicator final : public CommunicatorBase {
 public:
  LoneCommunicator() : CommunicatorBase(0, {MemberInfo{}}) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "lone"; }
  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int>, int) override { return nullptr; }
  void abort(const Error&) override {}
  [[nodiscard]] std::optional<Error> failure() override { return std::nullopt; }

 private:
  class Ended final : public Work::State {
   public:
    void wait() override {}
    [[nodiscard]] bool done() noexcept override { return true; }
  };
  Work begin(const CollectiveCall&) override { return Work(ended_); }

  std::shared_ptr<Work::State> ended_ = std::make_shared<Ended>();
};

class PackingAllocations : public ::testing::Test {
 protected:
  template <class Step>
  static std::size_t after_first_step(Step step) {
    step();
    const std::size_t before = bench::allocations();
    for (int i = 0; i < 10; ++i) step();
    return bench::allocations() - before;
  }

  LoneCommunicator communicator_;
  const std::vector<TensorSpec> specs_{{{3, 5}, DType::kFloat32}, {{7}, DType::kFloat64},
                                       {{2, 1}, DType::kFloat32}, {{100'000}, DType::kFloat32},
                                       {{0}, DType::kFloat64},    {{4}, DType::kFloat64}};
};

TEST_F(PackingAllocations, NoneForABatchInPlace) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs_) tensors.push_back(Tensor::zeros(spec.shape, spec.dtype));
  BatchReducer reducer;
  EXPECT_EQ(after_first_step([&] { reducer.all_reduce(communicator_, tensors, ReduceOp::kSum); }), 0u);
}

TEST_F(PackingAllocations, NoneForGradientsInTheirBuckets) {
  GradientBuckets buckets(communicator_, specs_);
  EXPECT_EQ(after_first_step([&] {
              for (std::size_t i = 0; i < buckets.size(); ++i) {
                buckets.tensor(i).fill(1);
                buckets.ready(i);
              }
              buckets.wait();
            }),
            0u);
}

TEST_F(PackingAllocations, NoneForGradientsFromElsewhere) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs_) tensors.push_back(Tensor::zeros(spec.shape, spec.dtype));
  GradientBuckets buckets(communicator_, specs_);
  EXPECT_EQ(after_first_step([&] {
              for (std::size_t i = 0; i < buckets.size(); ++i) buckets.ready(i, tensors[i]);
              buckets.wait();
            }),
            0u);
}

}  // namespace
}  // namespace cohort::testing
