// What only processes that share their node's memory can show; over_ranks_test.cpp has the rest.
#include <cohort/collective/communicator.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/node_heap.h"
#include "rank_values.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::session;

TEST(NodeCommunicator, IsWhatTheSessionMakes) { EXPECT_EQ(make_communicator()->name(), "node"); }

TEST(NodeCommunicator, NamesWhoLeftWithoutTheCall) {
  std::unique_ptr<Communicator> communicator = make_communicator();
  const int last = session().size() - 1;
  if (last == 0) GTEST_SKIP();
  communicator->barrier();
  const auto start = std::chrono::steady_clock::now();
  if (session().rank() == last) {
    communicator.reset();
  } else {
    try {
      communicator->barrier();
      FAIL() << "no error";
    } catch (const Aborted& error) {
      EXPECT_EQ(error.origin().member, last);
      EXPECT_THAT(error.what(), HasSubstr("left the communicator without making this call: member " +
                                          std::to_string(last)));
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "not at the deadline";
  meet();
}

// A reduction of private memory among several members ends with reading each other's cells, which the next
// call fills again: the roots of broadcasts are in a hurry to.
class ReductionsBeforeBroadcasts : public ::testing::TestWithParam<std::int64_t> {};
// One step in the first two of four cells, and eleven pieces, which go along members that share cores.
INSTANTIATE_TEST_SUITE_P(Elements, ReductionsBeforeBroadcasts, ::testing::Values(16'000, 90'000));

TEST_P(ReductionsBeforeBroadcasts, PiecesWaitForTheReaders) {
  const std::int64_t summed = GetParam();
  constexpr std::int64_t kSent = 20'000;  // three pieces, so that each call begins at another cell
  const auto communicator = make_communicator();
  const int members = communicator->size();
  std::vector<float> sum(static_cast<std::size_t>(summed));
  std::vector<float> sent(kSent);
  const Tensor sum_tensor = Tensor::wrap(std::span<float>(sum), {summed});
  const Tensor sent_tensor = Tensor::wrap(std::span<float>(sent), {kSent});
  int wrong = 0;
  // Each member is the root twice at least.
  const int rounds = std::max(600 / members, 2 * members);
  for (int round = 0; round < rounds; ++round) {
    const auto value = static_cast<float>(round + 1);
    std::ranges::fill(sum, value);
    std::ranges::fill(sent, -value);
    communicator->all_reduce(sum_tensor, ReduceOp::kSum);
    communicator->broadcast(sent_tensor, round % members);
    wrong += std::ranges::count(sum, value * static_cast<float>(members)) == summed ? 0 : 1;
    wrong += std::ranges::count(sent, -value) == kSent ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

/// Block `to` of what `from` sends, or `from`'s only block: no two elements of a call are alike.
void fill_block(std::span<std::int32_t> block, int from, int to) {
  const std::int32_t first = 1'000'003 * (from + 1) + 7'919 * to;
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = first + 31 * static_cast<std::int32_t>(i);
}

// Members put such blocks into each other's outputs past the caches.
TEST(NodeCommunicator, PutsBlocksThatNoCacheHoldsInPlace) {
  const auto communicator = make_communicator();
  const int members = communicator->size();
  const int own = communicator->rank();
  // The outputs of all have somewhat more than 32 MiB, and blocks end within a cache line.
  const std::int64_t elements = (std::int64_t{8} << 20) / (members * members) + 3;
  const Tensor input = Tensor::zeros({members * elements}, DType::kInt32);
  const Tensor output = Tensor::zeros({members * elements}, DType::kInt32);
  std::vector<std::int32_t> expected(static_cast<std::size_t>(members * elements));
  const auto block = [&](std::span<std::int32_t> all, int number) {
    return all.subspan(static_cast<std::size_t>(number * elements), static_cast<std::size_t>(elements));
  };
  const auto same = [&] { return std::ranges::equal(output.span<std::int32_t>(), expected); };

  const Tensor own_block = input.rows(0, elements);
  fill_block(own_block.span<std::int32_t>(), own, 0);
  for (int from = 0; from < members; ++from) fill_block(block(expected, from), from, 0);
  communicator->all_gather(own_block, output);
  EXPECT_TRUE(same()) << "all-gather";

  for (int member = 0; member < members; ++member) {
    fill_block(block(input.span<std::int32_t>(), member), own, member);
    fill_block(block(expected, member), member, own);
  }
  communicator->all_to_all(input, output);
  EXPECT_TRUE(same()) << "all-to-all";
}

TEST(NodeCommunicator, ManyMayBeMadeAndGoWithoutTakingMemory) {
  const auto use_and_drop = [] {
    const auto communicator = make_communicator();
    const Tensor tensor = own_values(10);
    communicator->all_reduce(tensor, ReduceOp::kSum);
    EXPECT_TRUE(bitwise_equal(tensor, filled(10, sum_of_ranks())));
  };
  for (int i = 0; i < 5; ++i) use_and_drop();
  meet();
  const NodeHeap::Statistics before = NodeHeap::of_this_process()->statistics();
  for (int i = 0; i < 50; ++i) use_and_drop();
  EXPECT_EQ(NodeHeap::of_this_process()->statistics().growths, before.growths);
}

}  // namespace
}  // namespace cohort
