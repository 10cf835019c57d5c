// Which tensors share a collective, and what packed collectives do over threads.
#include <cohort/collective/packing.h>

#include <algorithm>

#include <gmock/gmock.h>

#include "communicator_contracts.h"
#include "members.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Tensors of so many bytes each.
std::vector<TensorSpec> bytes(const std::vector<std::int64_t>& sizes, DType dtype = DType::kUInt8) {
  std::vector<TensorSpec> specs;
  specs.reserve(sizes.size());
  for (const std::int64_t size : sizes)
    specs.push_back({{size / static_cast<std::int64_t>(size_of(dtype))}, dtype});
  return specs;
}

TEST(MakePacks, FillsPacksFromTheLastTensorToTheFirst) {
  EXPECT_THAT(make_packs(bytes({60, 60, 60, 60, 60}), 100),
              ElementsAre(ElementsAre(4, 3), ElementsAre(2, 1), ElementsAre(0)));
}

TEST(MakePacks, LetsAPackGrowThatIsJustAsLargeAsTheLimit) {
  EXPECT_THAT(make_packs(bytes({1, 50, 50}), 100), ElementsAre(ElementsAre(2, 1, 0)));
  EXPECT_THAT(make_packs(bytes({1, 51, 50}), 100), ElementsAre(ElementsAre(2, 1), ElementsAre(0)));
}

TEST(MakePacks, AddsALargeTensorToThePackThatIsOpen) {
  EXPECT_THAT(make_packs(bytes({10, 5000, 10}), 100), ElementsAre(ElementsAre(2, 1), ElementsAre(0)));
  EXPECT_THAT(make_packs(bytes({10, 5000}), 100), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(MakePacks, NeverMixesDtypes) {
  std::vector<TensorSpec> specs = bytes({8, 8, 8, 8});
  specs[1].dtype = specs[3].dtype = DType::kInt8;
  for (const std::size_t limit : {std::size_t{0}, std::size_t{100}})
    EXPECT_THAT(make_packs(specs, limit), ElementsAre(ElementsAre(3, 1), ElementsAre(2, 0)));
}

TEST(MakePacks, TakesEmptyTensorsAlong) {
  EXPECT_THAT(make_packs(bytes({0, 4, 0}), 3), ElementsAre(ElementsAre(2, 1), ElementsAre(0)));
  EXPECT_THAT(make_packs(bytes({0, 0}), 0), ElementsAre(ElementsAre(1, 0)));
  EXPECT_THAT(make_packs({}, 0), IsEmpty());
}

// 10 us at 1 GB/s copy 10,000 bytes.
constexpr CommunicationCost kCost{
    .latency_seconds = 1e-5, .bytes_per_second = 1e9, .copied_bytes_per_second = 1e9};

TEST(MakePacks, LeavesAloneByItselfWhatIsDearerToCopyThanToSend) {
  EXPECT_THAT(make_packs(bytes({1, 10'000, 9'999, 1}), 0, kCost),
              ElementsAre(ElementsAre(3, 2, 0), ElementsAre(1)));
}

TEST(MakePacks, MakesNoneByCostThatIsLargerThanACall) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  constexpr CommunicationCost kSlowCalls{.latency_seconds = 1e-3, .copied_bytes_per_second = 1e12};
  const auto mib = [&](std::vector<std::int64_t> sizes) {
    for (std::int64_t& size : sizes) size *= kMiB;
    return make_packs(bytes(sizes), 0, kSlowCalls);
  };
  EXPECT_THAT(mib({10, 10, 10, 10}), ElementsAre(ElementsAre(3, 2, 1), ElementsAre(0)));
  EXPECT_THAT(mib({12, 10, 10}), ElementsAre(ElementsAre(2, 1, 0)));
  EXPECT_THAT(mib({1, 32, 31, 1}), ElementsAre(ElementsAre(3, 2), ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(mib({0, 31, 0, 31, 0}), ElementsAre(ElementsAre(4, 3, 2), ElementsAre(1, 0)));
}

TEST(MakeBuckets, FollowsTheOrderOfReadiness) {
  EXPECT_THAT(make_buckets(bytes({60, 60, 60, 60, 60}), 100),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_THAT(make_buckets(bytes({50, 50, 1}), 100), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(MakeBuckets, GivesALargeTensorItsOwnAndOrdersByTheLastOfEach) {
  EXPECT_THAT(make_buckets(bytes({60, 100, 60, 5000, 1}), 100),
              ElementsAre(ElementsAre(1), ElementsAre(0, 2), ElementsAre(3), ElementsAre(4)));
}

TEST(MakeBuckets, NeverMixesDtypes) {
  std::vector<TensorSpec> specs = bytes({8, 8, 8, 8});
  specs[0].dtype = specs[2].dtype = DType::kInt8;
  EXPECT_THAT(make_buckets(specs, 100), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(MakeBuckets, ChoosesTheSizeByCost) {
  // sqrt(40,000 bytes x 10 us x 1 GB/s) = 20,000 bytes; those of 10,000 go alone.
  EXPECT_THAT(make_buckets(bytes({7'000, 7'000, 10'000, 7'000, 9'000}), 0, kCost),
              ElementsAre(ElementsAre(2), ElementsAre(0, 1, 3), ElementsAre(4)));
  EXPECT_THAT(make_buckets(bytes({0, 0}), 0, kCost), ElementsAre(ElementsAre(0, 1)));
}

class Packing : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, Packing, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(Packing, AgreesOnTheCost) { for_each_member(GetParam(), check_cost); }
TEST_P(Packing, ReducesBatchesLikeTensorsOneByOne) { for_each_member(GetParam(), check_batches); }
TEST_P(Packing, TakesDevicesInTheOrderOfTheList) {
  for_each_member(GetParam(), [](Communicator& communicator) {
    std::vector<Device> devices{{DeviceKind::kCpu, 0}, {DeviceKind::kCpu, 1}};
    if (communicator.rank() % 2 == 1) std::ranges::reverse(devices);
    check_batches_on_several_devices(communicator, devices);
  });
}
TEST_P(Packing, NoticesBatchesThatDiffer) { for_each_member(GetParam(), check_batch_mismatch); }
TEST_P(Packing, ReducesBucketsLikeTensorsOneByOne) { for_each_member(GetParam(), check_buckets); }
TEST_P(Packing, RefusesWrongAnnouncements) { for_each_member(GetParam(), check_bucket_arguments); }
TEST_P(Packing, NamesWhoDescribesOtherGradients) { for_each_member(GetParam(), check_bucket_mismatch); }
TEST_P(Packing, TakesNoMemoryAfterTheFirstSteps) { for_each_member(GetParam(), check_memory_stays); }

TEST(PackingHuge, SplitsHugeTensors) {
  for (const int members : {1, 2, 3}) for_each_member(members, check_huge_tensors);
}

}  // namespace
}  // namespace cohort::testing
