// Reductions among more members than there are cores: long ones go from member to member, short ones are
// made by one member for all.
#include <cohort/collective/communicator.h>
#include <cohort/collective/reduction.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rank_values.h"
#include "stopping_page.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::session;
using testing::StoppingPage;

/// Nine pieces, the last one short, and as many as fit the cells of seven members.
constexpr std::size_t kChained[] = {(std::size_t{256} << 10) + 24, std::size_t{7} * 128 << 10};
/// With a tail, and a full slot.
constexpr std::size_t kForOne[] = {1'368, std::size_t{8} << 10};

template <class T>
std::vector<T> values_of(int rank, std::size_t elements) {
  std::vector<T> values(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto number =
        static_cast<std::int32_t>((i * 2'654'435'761u + static_cast<std::size_t>(rank) * 40'503u) % 2'001);
    // Sums of such floats depend on their order, and products of many stay finite.
    values[i] =
        std::is_floating_point_v<T> ? static_cast<T>(number - 1'000) / T{777} : static_cast<T>(number);
  }
  return values;
}

template <class T>
void expect_order_of_ranks(std::span<const std::size_t> sizes, DType dtype, ReduceOp op, bool in_place) {
  const auto communicator = make_communicator();
  for (const std::size_t bytes : sizes) {
    const std::size_t elements = bytes / sizeof(T);
    std::vector<std::vector<T>> all;
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < session().size(); ++rank) {
      all.push_back(values_of<T>(rank, elements));
      sources.push_back(reinterpret_cast<const std::byte*>(all.back().data()));
    }
    std::vector<T> expected(elements);
    reduce_elements(dtype, op, sources, reinterpret_cast<std::byte*>(expected.data()), elements);
    std::vector<T>& own = all[static_cast<std::size_t>(session().rank())];
    std::vector<T> separate(elements);
    std::vector<T>& result = in_place ? own : separate;
    const auto shape = static_cast<std::int64_t>(elements);
    communicator->all_reduce(Tensor::wrap(std::span<T>(own), {shape}),
                             Tensor::wrap(std::span<T>(result), {shape}), op);
    EXPECT_EQ(std::memcmp(result.data(), expected.data(), elements * sizeof(T)), 0)
        << fmt::format("{} of {}, {} bytes, in place: {}", to_string(op), to_string(dtype), bytes, in_place);
  }
}

TEST(MemberChain, CombinesInTheOrderOfTheRanks) {
  for (const bool in_place : {false, true}) {
    for (const ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProd})
      expect_order_of_ranks<float>(kChained, DType::kFloat32, op, in_place);
    expect_order_of_ranks<double>(kChained, DType::kFloat64, ReduceOp::kSum, in_place);
    expect_order_of_ranks<double>(kChained, DType::kFloat64, ReduceOp::kMean, in_place);
    expect_order_of_ranks<std::int32_t>(kChained, DType::kInt32, ReduceOp::kSum, in_place);
  }
}

// It has announced the call, and stops at a page of its input. Those behind it wait, too.
TEST(MemberChain, NamesWhoDoesNotPassTheSumOn) {
  const auto communicator = make_communicator(1);
  const int stopped = session().size() / 2;
  const bool stops = session().rank() == stopped;
  StoppingPage input({.pages = 64, .page = 40});
  const Tensor tensor = Tensor::wrap(input.floats(), {static_cast<std::int64_t>(input.floats().size())});
  communicator->all_reduce(tensor, ReduceOp::kSum);
  if (stops) input.arm();
  std::jthread release([&] {
    if (!stops) return;
    input.wait_until_reached();
    meet();  // the others have given up
    input.let_go_on();
  });
  try {
    communicator->all_reduce(tensor, ReduceOp::kSum);
    ADD_FAILURE() << "no error";
  } catch (const DeadlineExceeded& error) {
    EXPECT_EQ(error.origin().member, stopped);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(fmt::format("missing: member {} ", stopped)),
                                    Not(HasSubstr(fmt::format("member {} ", stopped + 1)))));
  }
  if (!stops) meet();
}

bool one_reduces_for_all() {
  constexpr int kFewest = 12;
  return session().size() >= kFewest &&
         static_cast<unsigned>(session().size()) > std::thread::hardware_concurrency();
}

TEST(OneReducer, CombinesInTheOrderOfTheRanks) {
  for (const bool in_place : {false, true}) {
    for (const ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProd})
      expect_order_of_ranks<float>(kForOne, DType::kFloat32, op, in_place);
    expect_order_of_ranks<double>(kForOne, DType::kFloat64, ReduceOp::kMean, in_place);
    expect_order_of_ranks<std::int32_t>(kForOne, DType::kInt32, ReduceOp::kSum, in_place);
  }
}

TEST(OneReducer, RoundsSixteenBitSumsOnce) {
  const auto communicator = make_communicator();
  // 256 + 1 + 1 + ...: each single addition would be rounded away.
  const Tensor values = Tensor::zeros({4096}, DType::kBFloat16);
  values.fill(session().rank() == 0 ? 256 : 1);
  communicator->all_reduce(values, ReduceOp::kSum);
  const bfloat16 expected(256.0F + static_cast<float>(session().size() - 1));
  for (const bfloat16 value : values.span<bfloat16>()) ASSERT_EQ(value.bits(), expected.bits());
}

// Whoever comes last reduces, and calls without a second wait come in between: a result that is read too
// early or too late is another call's.
TEST(OneReducer, ServesOneCallAfterTheOther) {
  const auto communicator = make_communicator();
  constexpr std::int64_t kLong = 2048;
  constexpr std::int64_t kShort = 16;
  const int members = session().size();
  const Tensor output = Tensor::zeros({kLong}, DType::kFloat32);
  for (int call = 0; call < 1000; ++call) {
    const std::int64_t elements = call % 3 == 1 ? kShort : kLong;
    const int root = call % members;
    const Tensor input = Tensor::zeros({elements}, DType::kFloat32);
    input.fill(call + session().rank());
    const Tensor result = output.rows(0, elements);
    const bool to_root = call % 5 == 0;
    if (to_root)
      communicator->reduce(input, result, ReduceOp::kSum, root);
    else
      communicator->all_reduce(input, result, ReduceOp::kSum);
    if (one_reduces_for_all()) {
      EXPECT_EQ(communicator->last_algorithm(), elements == kLong ? "by_one" : "slot");
    }
    if (to_root && session().rank() != root) continue;
    const int sum = members * call + members * (members - 1) / 2;
    const auto expected = static_cast<float>(sum);
    for (const float value : result.span<float>()) ASSERT_EQ(value, expected) << "call " << call;
  }
}

}  // namespace
}  // namespace cohort
