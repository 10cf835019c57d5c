// How many cache lines calls of many members take, counted in the engine itself on machines that are only
// described: bounds as functions of the members and of the machine.
#include <barrier>

#include <gmock/gmock.h>

#include "members.h"

namespace cohort::testing {
namespace {

constexpr int kFlat = 4096;

enum class Call { kBarrier, kAllReduce, kAllGather, kBroadcast };

struct Counted {
  Spread spread;
  Call call = Call::kAllReduce;
  std::int64_t bytes = 4;
  int most_members_without_tree = 1;
  node::LineCosts costs = {.line = {1, 1, 1, 1}, .in_row = {}};
};

/// Of the third of three equal calls: what is set up once does not count.
node::LineCounts counts_of(const Counted& counted) {
  const auto counter = std::make_shared<node::LineCounter>(groups_of(counted.spread), counted.costs);
  std::barrier all_between_calls(counted.spread.members, [&]() noexcept { counter->restart(); });
  for_each_member(counted.spread,
                  [&](Communicator& communicator) {
                    const Tensor tensor = Tensor::zeros({counted.bytes / 4}, DType::kInt32);
                    const bool gathers = counted.call == Call::kAllGather;
                    const Tensor all =
                        Tensor::zeros({gathers ? counted.bytes / 4 * communicator.size() : 0}, DType::kInt32);
                    for (int call = 0; call < 3; ++call) {
                      all_between_calls.arrive_and_wait();
                      switch (counted.call) {
                        case Call::kBarrier: communicator.barrier(); break;
                        case Call::kAllReduce: communicator.all_reduce(tensor, ReduceOp::kSum); break;
                        case Call::kAllGather: communicator.all_gather(tensor, all); break;
                        case Call::kBroadcast: communicator.broadcast(tensor, 1); break;
                      }
                    }
                  },
                  {}, {.most_members_without_tree = counted.most_members_without_tree, .counter = counter});
  return counter->counts();
}

TEST(LineCounts, WithoutATreeAChainHasALineOfEachOther) {
  for (const int members : {2, 3, 8, 64, 128}) {
    const node::LineCounts counts =
        counts_of({.spread = {.members = members}, .most_members_without_tree = kFlat});
    EXPECT_EQ(counts.chain, members - 1);
    if (members % 2 == 0) {
      EXPECT_EQ(counts.chain_far, members / 2);
    }
    EXPECT_EQ(counts.most_read, 4U * static_cast<std::size_t>(members - 1));
  }
}

class ShortCalls : public ::testing::TestWithParam<std::tuple<Call, bool>> {};

TEST_P(ShortCalls, Of128MembersTakeAtMost24LinesOfWhich3AreFar) {
  const auto [call, round_robin] = GetParam();
  for (const std::int64_t bytes : {4, 56}) {
    const node::LineCounts counts =
        counts_of({.spread = {.members = 128, .round_robin = round_robin}, .call = call, .bytes = bytes});
    EXPECT_LE(counts.chain, 24) << bytes;
    EXPECT_GE(counts.chain, 14) << bytes;
    EXPECT_LE(counts.chain_far, 3) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ShortCalls,
                         ::testing::Combine(::testing::Values(Call::kBarrier, Call::kAllReduce,
                                                              Call::kAllGather, Call::kBroadcast),
                                            ::testing::Bool()));

TEST(LineCounts, ChainsGrowWithTheLogarithmOfTheMembers) {
  // At most 7 children per level on the way up, and one line per level on the way down.
  for (const int members : {2, 5, 9, 33, 64, 127}) {
    const int levels = 1 + (members > 8 ? 1 : 0) + (members > 64 ? 1 : 0);
    EXPECT_LE(counts_of({.spread = {.members = members, .machine = "pack:1 core:128 pu:1"}}).chain,
              8 * levels)
        << members;
  }
}

TEST(LineCounts, MembersReadAFewTimesWhatTheyContribute) {
  struct Read {
    std::int64_t bytes;
    double flat;
    double at_most_by_levels;
  };
  // Without a tree each reads all the others' contributions, and from 4 KiB on two shares of each.
  constexpr double kInShares = 2 * 63.0 / 64;
  for (const Read& read :
       {Read{512, 63, 9}, Read{2048, 63, 4}, Read{4096, kInShares, 4}, Read{8192, kInShares, 4}}) {
    const auto read_per_byte = [&](int most_members_without_tree) {
      const node::LineCounts counts = counts_of({.spread = {.members = 64},
                                                 .bytes = read.bytes,
                                                 .most_members_without_tree = most_members_without_tree});
      return static_cast<double>(counts.most_read) / static_cast<double>(read.bytes);
    };
    EXPECT_EQ(read_per_byte(kFlat), read.flat) << read.bytes;
    EXPECT_LE(read_per_byte(1), read.at_most_by_levels) << read.bytes;
  }
}

TEST(LineCounts, LongSumsCrossTheSocketsTwice) {
  constexpr std::int64_t kBytes = 512 << 10;
  const auto crossing = [](int most_members_without_tree) {
    return counts_of({.spread = {.members = 128},
                      .bytes = kBytes,
                      .most_members_without_tree = most_members_without_tree})
        .between_sockets;
  };
  EXPECT_GE(crossing(kFlat), 64U * kBytes);
  EXPECT_LE(crossing(1), 21U * kBytes / 10);
}

/// Nanoseconds between cores of two AMD EPYC 7R13, as cohort-bench lines takes them.
constexpr node::LineCosts kEpyc{.line = {23, 107, 107, 197}, .in_row = {2.3, 10.7, 10.7, 19.7}};

TEST(LineCounts, LongSumsTakeLessTimeAlongTheSockets) {
  for (const std::int64_t bytes : {256 << 10, 512 << 10, 1 << 20, 4 << 20}) {
    const auto time = [&](int most_members_without_tree) {
      return counts_of({.spread = {.members = 128},
                        .bytes = bytes,
                        .most_members_without_tree = most_members_without_tree,
                        .costs = kEpyc})
          .nanoseconds;
    };
    EXPECT_LT(time(1), 0.9 * time(kFlat)) << bytes;
  }
}

TEST(LineCounts, AreTheSameEachTime) {
  for (const Counted& counted : {Counted{.spread = {.members = 24, .round_robin = true}, .bytes = 2048},
                                 Counted{.spread = {.members = 24, .machine = "pack:3 core:8 pu:1"},
                                 .bytes = 512 << 10,
                                 .costs = kEpyc}}) {
    const node::LineCounts first = counts_of(counted);
    const node::LineCounts second = counts_of(counted);
    EXPECT_EQ(first.chain, second.chain);
    EXPECT_EQ(first.chain_far, second.chain_far);
    EXPECT_EQ(first.most_read, second.most_read);
    EXPECT_EQ(first.between_sockets, second.between_sockets);
    EXPECT_EQ(first.nanoseconds, second.nanoseconds);
  }
}

}  // namespace
}  // namespace cohort::testing
