// Each algorithm that moves data along a lane, with threads as its members.
#include <numeric>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collective/network/cost_model.h"
#include "collective/network/lane.h"
#include "collective/network/lane_algorithms.h"
#include "collective/task/task_group.h"
#include "thread_transport.h"

namespace cohort::network {
namespace {

using testing::Switchboard;
using testing::ThreadTransport;

constexpr std::size_t kSizes[] = {0, 1, 2, 3, 7, 8, 63, 1000, 30'001};
constexpr Arithmetic kSum{DType::kInt32, ReduceOp::kSum};

void drive(Task<> task) {
  while (true) {
    task.resume();
    if (task.done()) return;
    while (!task.ready()) std::this_thread::yield();
  }
}

/// Runs `algorithm(lane)` on every member of a lane, each on a thread of its own.
template <class Algorithm>
void on_lane(int members, Algorithm algorithm) {
  const auto board = std::make_shared<Switchboard>(members);
  std::vector<int> ranks(static_cast<std::size_t>(members));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (int member = 0; member < members; ++member) {
    threads.emplace_back([&, member] {
      ThreadTransport transport(board, member);
      Wire wire(transport);
      algorithm(Lane(wire, ranks, member));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::int32_t mark(int member, std::size_t index) {
  return static_cast<std::int32_t>(index) * 31 + (member + 1) * 1'000'003;
}

std::vector<std::int32_t> marks(int member, std::size_t elements) {
  std::vector<std::int32_t> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = mark(member, i);
  return values;
}

std::vector<std::int32_t> sums(int members, std::size_t elements) {
  std::vector<std::int32_t> values(elements);
  for (int member = 0; member < members; ++member) {
    for (std::size_t i = 0; i < elements; ++i) values[i] += mark(member, i);
  }
  return values;
}

std::byte* bytes_of(std::vector<std::int32_t>& values) { return reinterpret_cast<std::byte*>(values.data()); }

class Algorithms : public ::testing::TestWithParam<int> {};

template <class AllReduce>
void check_all_reduce(std::string_view name, int members, AllReduce all_reduce) {
  for (const std::size_t elements : kSizes) {
    on_lane(members, [&](const Lane& lane) {
      std::vector<std::int32_t> input = marks(lane.index(), elements);
      std::vector<std::int32_t> output(elements);
      drive(all_reduce(lane, Part{bytes_of(input), bytes_of(output), elements, 1}, kSum));
      EXPECT_EQ(output, sums(members, elements)) << name << ", " << elements << " elements";
      EXPECT_EQ(input, marks(lane.index(), elements)) << name << " leaves the input alone";
      drive(all_reduce(lane, Part{bytes_of(input), bytes_of(input), elements, 1}, kSum));
      EXPECT_EQ(input, sums(members, elements)) << name << ", " << elements << " elements, in place";
    });
  }
}

TEST_P(Algorithms, EveryAllReduceSums) {
  for (const LaneAlgorithm* const algorithm : lane_algorithms()) {
    if (algorithm->kind != CollectiveKind::kAllReduce || algorithm->in_rank_order) continue;
    check_all_reduce(algorithm->name, GetParam(),
                     [algorithm](const Lane& lane, const Part& part, Arithmetic arithmetic) {
                       return algorithm->run({.lane = lane, .part = part, .arithmetic = arithmetic});
                     });
  }
}

TEST_P(Algorithms, EveryReduceGivesTheRootTheSum) {
  for (const LaneAlgorithm* const algorithm : lane_algorithms()) {
    if (algorithm->kind != CollectiveKind::kReduce) continue;
    for (const std::size_t elements : kSizes) {
      for (int root = 0; root < GetParam(); ++root) {
        on_lane(GetParam(), [&](const Lane& lane) {
          std::vector<std::int32_t> input = marks(lane.index(), elements);
          std::vector<std::int32_t> output(elements);
          const Part part{bytes_of(input), bytes_of(output), elements, 1};
          drive(algorithm->run({.lane = lane, .part = part, .arithmetic = kSum, .root = root}));
          EXPECT_EQ(input, marks(lane.index(), elements)) << algorithm->name << " leaves the input alone";
          if (lane.index() == root) {
            EXPECT_EQ(output, sums(GetParam(), elements))
                << algorithm->name << ", " << elements << " elements to " << root;
          }
        });
      }
    }
  }
}

template <class Broadcast>
void check_broadcast(std::string_view name, int members, Broadcast broadcast) {
  for (const std::size_t elements : kSizes) {
    for (int root = 0; root < members; ++root) {
      on_lane(members, [&](const Lane& lane) {
        std::vector<std::int32_t> data = marks(lane.index(), elements);
        drive(broadcast(lane, Part{nullptr, bytes_of(data), elements, 1}, root, sizeof(std::int32_t)));
        EXPECT_EQ(data, marks(root, elements)) << name << ", " << elements << " elements from " << root;
      });
    }
  }
}

TEST_P(Algorithms, EveryBroadcastGivesAllTheDataOfTheRoot) {
  for (const LaneAlgorithm* const algorithm : lane_algorithms()) {
    if (algorithm->kind != CollectiveKind::kBroadcast) continue;
    check_broadcast(algorithm->name, GetParam(),
                    [algorithm](const Lane& lane, const Part& part, int root, std::size_t) {
                      return algorithm->run(
                          {.lane = lane, .part = part, .arithmetic = {.dtype = DType::kInt32}, .root = root});
                    });
  }
}

TEST(LaneAlgorithms, HaveCompleteRecords) {
  std::set<std::string_view> names;
  for (const LaneAlgorithm* const algorithm : lane_algorithms()) {
    EXPECT_TRUE(algorithm->name.starts_with("two_level_")) << algorithm->name;
    EXPECT_TRUE(names.insert(algorithm->name).second) << algorithm->name << " is there twice";
    ASSERT_TRUE(algorithm->cost != nullptr && algorithm->part_bytes != nullptr && algorithm->run != nullptr)
        << algorithm->name;
    EXPECT_GE(algorithm->part_bytes(3, kMessageBytes), kMessageBytes) << algorithm->name;
    EXPECT_GT(algorithm->cost(LaneShape(3), 1e6).rounds, 0) << algorithm->name;
    EXPECT_GT(algorithm->cost(LaneShape(3), 1e6).bytes_sent, 0) << algorithm->name;
  }
}

TEST_P(Algorithms, PartsMayGoSideBySide) {
  constexpr std::size_t kParts = 5;
  constexpr std::size_t kElements = 100;
  on_lane(GetParam(), [&](const Lane& lane) {
    std::vector<std::int32_t> data = marks(lane.index(), kParts * kElements);
    TaskGroup tasks;
    for (std::size_t part = 0; part < kParts; ++part) {
      std::byte* const begin = bytes_of(data) + part * kElements * sizeof(std::int32_t);
      const int tag = static_cast<int>(part) + 1;
      tasks.add(part % 2 == 0 ? ring_all_reduce(lane, {begin, begin, kElements, tag}, kSum)
                              : recursive_doubling_all_reduce(lane, {begin, begin, kElements, tag}, kSum));
    }
    drive(tasks.wait_for_all());
    EXPECT_EQ(data, sums(GetParam(), kParts * kElements));
  });
}

INSTANTIATE_TEST_SUITE_P(Members, Algorithms, ::testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST(Streams, MoveBlocksOfAnyLength) {
  for (const std::size_t elements : {std::size_t{0}, std::size_t{1}, std::size_t{500'001}}) {
    const auto board = std::make_shared<Switchboard>(2);
    const std::size_t bytes = elements * sizeof(std::int32_t);
    std::thread sender([&] {
      ThreadTransport transport(board, 0);
      Wire wire(transport);
      std::vector<std::int32_t> data = marks(0, elements);
      drive(stream_to(wire, 1, 1, bytes_of(data), bytes));
    });
    ThreadTransport transport(board, 1);
    Wire wire(transport);
    std::vector<std::int32_t> data(elements);
    drive(stream_from(wire, 0, 1, bytes_of(data), bytes));
    sender.join();
    EXPECT_EQ(data, marks(0, elements));
  }
}

std::string_view chosen(CollectiveKind kind, std::size_t bytes, int members) {
  return choose_algorithm(kind, bytes, LaneShape(members), kBuiltInConstants).name;
}

TEST(CostModel, PrefersFewRoundsForShortAndFewBytesForLongParts) {
  for (const int members : {2, 4, 8, 64}) {
    EXPECT_EQ(chosen(CollectiveKind::kAllReduce, 1, members), "two_level_recursive_doubling") << members;
  }
  EXPECT_EQ(chosen(CollectiveKind::kAllReduce, std::size_t{1} << 15, 2), "two_level_recursive_doubling")
      << "with two members nothing moves fewer bytes";
  EXPECT_EQ(chosen(CollectiveKind::kAllReduce, std::size_t{1} << 26, 2), "two_level_ring")
      << "which moves as many and reduces half of them";
  EXPECT_NE(chosen(CollectiveKind::kAllReduce, std::size_t{1} << 26, 8), "two_level_recursive_doubling");
  EXPECT_EQ(chosen(CollectiveKind::kAllReduce, std::size_t{1} << 26, 7), "two_level_ring")
      << "folding costs all bytes twice more";
  EXPECT_EQ(chosen(CollectiveKind::kReduce, 1, 8), "two_level_binomial_reduce");
  EXPECT_EQ(chosen(CollectiveKind::kReduce, std::size_t{1} << 20, 64), "two_level_halving_reduce");
  EXPECT_EQ(chosen(CollectiveKind::kReduce, std::size_t{1} << 26, 7), "two_level_ring_reduce");
  EXPECT_EQ(chosen(CollectiveKind::kBroadcast, 1, 8), "two_level_binomial");
  EXPECT_EQ(chosen(CollectiveKind::kBroadcast, std::size_t{1} << 18, 64), "two_level_halving_broadcast");
  EXPECT_EQ(chosen(CollectiveKind::kBroadcast, std::size_t{1} << 26, 8), "two_level_scatter_all_gather");
}

TEST(CostModel, CountsTheRollCallOnce) {
  const CostConstants constants{.latency_seconds = 1, .seconds_per_byte = 1e-9, .reduce_seconds_per_byte = 0};
  const CallShape barrier{.kind = CollectiveKind::kBarrier, .members = 1024, .nodes = 256};
  EXPECT_DOUBLE_EQ(built_in_seconds(barrier, constants), 8) << "log2 of the nodes' number, and no more";
  EXPECT_DOUBLE_EQ(whole_call_seconds(barrier, constants), 8);
  const CallShape broadcast{
      .kind = CollectiveKind::kBroadcast, .elements = 65'536, .bytes = 65'536, .members = 1024, .nodes = 256};
  EXPECT_NEAR(built_in_seconds(broadcast, constants), 8, 0.1);
  EXPECT_NEAR(whole_call_seconds(broadcast, constants), 16, 0.1);
}

TEST(CostModel, CountsARoundTripMoreForMessagesBeyondTheEagerLimit) {
  const CostConstants constants{.latency_seconds = 1, .seconds_per_byte = 1e-9, .reduce_seconds_per_byte = 0};
  const CallShape broadcast{
      .kind = CollectiveKind::kBroadcast, .elements = 16'384, .bytes = 16'384, .members = 8, .nodes = 8};
  EXPECT_NEAR(whole_call_seconds(broadcast, constants, 16'384), 3 + 3, 0.1);
  EXPECT_NEAR(whole_call_seconds(broadcast, constants, 16'383), 3 + 3 * 3, 0.1);
}

TEST(CostModel, LetsSmallContributionsRide) {
  const CostConstants constants = kBuiltInConstants;
  EXPECT_TRUE(fits_roll_call(4, 2, 2, constants));
  EXPECT_TRUE(fits_roll_call(0, 1000, 100, constants));
  EXPECT_TRUE(fits_roll_call(std::size_t{32} << 10, 2, 2, constants));
  EXPECT_FALSE(fits_roll_call(std::size_t{32} << 10, 4, 2, constants)) << "more than a slot";
  EXPECT_FALSE(fits_roll_call(1024, 64, 64, constants)) << "all contributions are more than the rounds save";
}

}  // namespace
}  // namespace cohort::network
