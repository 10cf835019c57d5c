// The reductions of a strategy whose workers are ranks, beside the cases of tests/conformance/cases.
// What they do in detail is tested with workers that are threads, in tests/strategy; here, the
// values have to travel.
#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "rank_values.h"
#include "thrown.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::message_of;
using testing::session;
using ::testing::SizeIs;

int workers() { return session().size(); }
double sum() { return sum_of_ranks(); }

MultiWorkerMirroredStrategy strategy() {
  return MultiWorkerMirroredStrategy(session(), {.timeout_seconds = 20});
}

TEST(ReductionsOverRanks, CountPlainValuesOncePerWorker) {
  const auto all = strategy();
  EXPECT_EQ(all.reduce("sum", 5.0), 5 * workers());
  EXPECT_EQ(all.reduce("mean", 5.0), 5);
  EXPECT_THAT(all.gather(filled(2, 1), 0).span<float>(), AllOf(SizeIs(2 * workers()), Each(1)));
}

TEST(ReductionsOverRanks, TakeAMeanByTheSizesOfThePartsInOneCollective) {
  const auto all = strategy();
  const auto parts = all.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return Tensor::full({id + 1}, DType::kInt32, id);
  });
  double total = 0;
  for (int id = 0; id < workers(); ++id) total += id * (id + 1.0);
  EXPECT_EQ(all.reduce("mean", parts, 0).item<double>(), total / sum());
}

TEST(ReductionsOverRanks, ScatterWhatTheySumUpInPartsOfAnyLength) {
  strategy().run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const Tensor mine = Tensor::zeros({2, id}, DType::kFloat32);
    const Tensor all = replica.all_gather(mine, 1);
    all.fill(id + 1);
    const Tensor columns = replica.reduce_scatter("sum", all, mine, 1);
    EXPECT_EQ(columns.shape(), mine.shape());
    EXPECT_THAT(columns.span<float>(), Each(sum()));
  });
}

TEST(ReductionsOverRanks, UnwindWhileTheirLastCallEnds) {
  for (int i = 0; i < 300; ++i) {
    const Tensor square = Tensor::zeros({3, 3}, DType::kFloat32);
    const Tensor other = session().rank() == 1 ? Tensor::zeros({2, 1, 2}, DType::kFloat32) : square;
    const auto refused = [&] {
      const MultiWorkerMirroredStrategy all(session(), {}, cpu_devices(2));
      (void)all.reduce(ReduceOp::kSum, PerReplica<Tensor>({square, other}), Axes{1, -2});
    };
    if (workers() == 1)
      refused();
    else
      EXPECT_THROW(refused(), Error) << i;
  }
}

TEST(ReductionsOverRanks, NameTheWorkerWhoseSlicesDiffer) {
  if (workers() < 3) GTEST_SKIP() << "without a majority, all are named";
  const auto all = strategy();
  IndexedSlices mine{Tensor::zeros({1, 2}, DType::kFloat32), Tensor::from({0}), {7, 2}};
  if (session().rank() == 1) mine.dense_shape = {8, 2};
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { return all.reduce("sum", mine); }),
              AllOf(HasSubstr("member 1"), HasSubstr("float32[8, 2]")));
  meet();
}

}  // namespace
}  // namespace cohort
