// Sums that go from member to member: private memory of more members than there are cores.
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
constexpr std::size_t kSizes[] = {(std::size_t{256} << 10) + 24, std::size_t{7} * 128 << 10};

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
void expect_order_of_ranks(DType dtype, ReduceOp op, bool in_place) {
  const auto communicator = make_communicator();
  for (const std::size_t bytes : kSizes) {
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
      expect_order_of_ranks<float>(DType::kFloat32, op, in_place);
    expect_order_of_ranks<double>(DType::kFloat64, ReduceOp::kSum, in_place);
    expect_order_of_ranks<double>(DType::kFloat64, ReduceOp::kMean, in_place);
    expect_order_of_ranks<std::int32_t>(DType::kInt32, ReduceOp::kSum, in_place);
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

}  // namespace
}  // namespace cohort
