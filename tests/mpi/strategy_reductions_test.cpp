// The reductions of a strategy whose workers are ranks. What they do in detail is tested with
// workers that are threads, in tests/strategy; here, the values have to travel.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "rank_values.h"
#include "thrown.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::session;
using ::testing::SizeIs;

int workers() { return session().size(); }
double sum() { return sum_of_ranks(); }

MultiWorkerMirroredStrategy strategy(const CommunicationOptions& options = {.timeout_seconds = 20}) {
  return MultiWorkerMirroredStrategy(session(), options);
}

PerReplica<Tensor> counted(const Strategy& strategy) {
  return strategy.run([](ReplicaContext& replica) {
    return Tensor::from({replica.replica_id_in_sync_group() + 1.0, 10.0});
  });
}

/// As many rows as the rank, all of them row 0.
IndexedSlices rows_of(int rank) {
  return {Tensor::full({rank, 2}, DType::kFloat32, rank), Tensor::zeros({rank}, DType::kInt64), {7, 2}};
}

TEST(ReductionsOverRanks, Case068_Dense) {
  for (const auto implementation : {CommunicationImplementation::kAuto, CommunicationImplementation::kRing}) {
    const auto all = strategy({.timeout_seconds = 20, .implementation = implementation});
    EXPECT_THAT(all.reduce("sum", counted(all)).span<double>(), ElementsAre(sum(), 10 * workers()));
    EXPECT_THAT(all.reduce("mean", counted(all)).span<double>(), ElementsAre(sum() / workers(), 10));
  }
}

TEST(ReductionsOverRanks, Case070_SparseOfAnyLength) {
  const auto all = strategy();
  const std::size_t rows = static_cast<std::size_t>(workers() * (workers() - 1) / 2);
  const auto check = [&](const IndexedSlices& sums) {
    EXPECT_THAT(sums.indices.span<std::int64_t>(), AllOf(SizeIs(rows), Each(0)));
    std::size_t row = 0;
    for (int rank = 0; rank < workers(); ++rank) {
      for (int i = 0; i < rank; ++i, ++row)
        EXPECT_EQ(sums.values.span<float>()[2 * row], static_cast<float>(rank));
    }
  };
  all.run([&](ReplicaContext& replica) {
    const std::vector<TensorOrSlices> mixed{rows_of(session().rank()), filled(5, 1),
                                            rows_of(session().rank())};
    const auto sums = replica.all_reduce("sum", mixed);
    check(std::get<IndexedSlices>(sums[0]));
    EXPECT_THAT(std::get<Tensor>(sums[1]).span<float>(), Each(workers()));
    check(std::get<IndexedSlices>(sums[2]));
  });
  check(all.reduce("sum", all.run([] { return rows_of(session().rank()); })));
}

TEST(ReductionsOverRanks, Case071_Batches) {
  const auto all = strategy();
  const std::vector<std::pair<PerReplica<Tensor>, Destinations>> pairs(20, {counted(all), "cpu:0"});
  for (const Mirrored<Tensor>& total : all.extended().batch_reduce_to("sum", pairs, {.bytes_per_pack = 40}))
    EXPECT_THAT(total[0].span<double>(), ElementsAre(sum(), 10 * workers()));
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

TEST(ReductionsOverRanks, NameTheWorkerWhoseSlicesDiffer) {
  if (workers() < 3) GTEST_SKIP() << "without a majority, all are named";
  const auto all = strategy();
  IndexedSlices mine = rows_of(1);
  if (session().rank() == 1) mine.dense_shape = {8, 2};
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { return all.reduce("sum", mine); }),
              AllOf(HasSubstr("member 1"), HasSubstr("float32[8, 2]")));
  meet();
}

TEST(ReductionsOverRanks, Case074_WaitAsLongAsTheCallSays) {
  if (workers() == 1) GTEST_SKIP();
  const auto all = strategy({.timeout_seconds = 3600});
  if (session().rank() == 0) {
    const auto value = counted(all);
    EXPECT_THAT(
        message_of(ErrorCode::kDeadlineExceeded,
                   [&] { return all.extended().reduce_to("sum", value, value, {.timeout_seconds = 0.3}); }),
        HasSubstr("member 1"));
  }
  meet();
}

}  // namespace
}  // namespace cohort
