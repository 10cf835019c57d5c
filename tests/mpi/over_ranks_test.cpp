// What communicators over ranks do alike, on one node and over several: the contract that
// every Communicator fulfils, and what only several processes can show.
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective_contract.h"
#include "rank_values.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::session;

TEST(CommunicatorOverRanks, KnowsItsMembers) {
  const auto communicator = make_communicator();
  EXPECT_EQ(communicator->rank(), session().rank());
  ASSERT_EQ(communicator->size(), session().size());
  for (int member = 0; member < communicator->size(); ++member) {
    const auto index = static_cast<std::size_t>(member);
    EXPECT_EQ(communicator->members()[index].worker, member);
    EXPECT_EQ(communicator->members()[index].host, session().workers()[index].host);
  }
}

TEST(CommunicatorOverRanks, Reductions) { testing::check_reductions(*make_communicator()); }
TEST(CommunicatorOverRanks, Arithmetic) { testing::check_arithmetic(*make_communicator()); }
TEST(CommunicatorOverRanks, DataMovement) { testing::check_data_movement(*make_communicator()); }
TEST(CommunicatorOverRanks, SizesAndMemory) { testing::check_sizes_and_memory(*make_communicator()); }
TEST(CommunicatorOverRanks, Messages) { testing::check_messages(*make_communicator()); }
TEST(CommunicatorOverRanks, Async) { testing::check_async(*make_communicator()); }
TEST(CommunicatorOverRanks, Packed) { testing::check_packed(*make_communicator()); }
TEST(CommunicatorOverRanks, Arguments) { testing::check_arguments(*make_communicator()); }
TEST(CommunicatorOverRanks, Mismatch) { testing::check_mismatch(*make_communicator()); }
TEST(CommunicatorOverRanks, Missing) {
  const auto communicator = make_communicator(0.5);
  testing::check_missing(*communicator);
  meet();
}

TEST(CommunicatorOverRanks, AMemberThatLeavesByAnExceptionEndsTheCallsOfTheOthers) {
  const Tensor tensor = filled(2'000'000, 1);
  const int last = session().size() - 1;
  if (last == 0) GTEST_SKIP();
  try {
    const auto communicator = make_communicator();
    if (session().rank() == last) throw std::runtime_error("something else went wrong");
    communicator->all_reduce_async(tensor, ReduceOp::kSum).wait();
    FAIL() << "no error";
  } catch (const Aborted& error) {
    EXPECT_THAT(error.what(), HasSubstr("left the communicator"));
    EXPECT_EQ(error.origin().member, last);
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(session().rank(), last) << error.what();
  }
  meet();
}

TEST(CommunicatorOverRanks, WaitsThatCrossBetweenCommunicatorsEnd) {
  const auto first = make_communicator();
  const auto second = make_communicator();
  const Tensor a = own_values(100'000);
  const Tensor b = own_values(10);
  Work in_first = first->all_reduce_async(a, ReduceOp::kSum);
  Work in_second = second->all_reduce_async(b, ReduceOp::kSum);
  if (session().rank() % 2 == 0) {
    in_first.wait();
    in_second.wait();
  } else {
    in_second.wait();
    in_first.wait();
  }
  EXPECT_TRUE(bitwise_equal(a, filled(100'000, sum_of_ranks())));
  EXPECT_TRUE(bitwise_equal(b, filled(10, sum_of_ranks())));
}

TEST(CommunicatorOverRanks, ProgressesWhileNobodyWaits) {
  const auto communicator = make_communicator();
  const Tensor tensor = own_values(1'000'000);
  Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
  // The others' calls need this member's share, which only its progress thread does.
  meet();
  work.wait();
  EXPECT_TRUE(bitwise_equal(tensor, filled(1'000'000, sum_of_ranks())));
}

TEST(CommunicatorOverRanks, KeepsAThousandCallsInFlight) {
  const auto communicator = make_communicator();
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < 1000; ++i) {
    tensors.push_back(own_values(1 + i * 7 % 3000));
    works.push_back(communicator->all_reduce_async(tensors.back(), ReduceOp::kSum));
  }
  for (Work& work : works) work.wait();
  for (const Tensor& tensor : tensors)
    EXPECT_TRUE(bitwise_equal(tensor, filled(tensor.shape()[0], sum_of_ranks())));
}

TEST(CommunicatorOverRanks, WorksAndTensorsOutliveIt) {
  Tensor tensor = own_values(100'000);
  const Tensor view = tensor.reshape({-1});
  std::optional<Work> work;
  {
    const auto communicator = make_communicator();
    work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
    tensor = Tensor();
  }
  work->wait();
  EXPECT_TRUE(bitwise_equal(view, filled(100'000, sum_of_ranks())));
}

TEST(CommunicatorOverRanks, ADroppedWorkIsDoneWhenTheCommunicatorIsGone) {
  const Tensor tensor = own_values(100'000);
  {
    const auto communicator = make_communicator();
    static_cast<void>(communicator->all_reduce_async(tensor, ReduceOp::kSum));
  }
  EXPECT_TRUE(bitwise_equal(tensor, filled(100'000, sum_of_ranks())));
}

TEST(CommunicatorOverRanks, ThreadsMayUseCommunicatorsOfTheirOwn) {
  const auto first = make_communicator();
  const auto second = make_communicator();
  const auto sum_often = [](Communicator& communicator) {
    for (int i = 0; i < 200; ++i) {
      const Tensor tensor = own_values(1 + i * 100);
      communicator.all_reduce(tensor, ReduceOp::kSum);
      ASSERT_TRUE(bitwise_equal(tensor, filled(1 + i * 100, sum_of_ranks())));
    }
  };
  std::thread other([&] { sum_often(*second); });
  sum_often(*first);
  other.join();
}

}  // namespace
}  // namespace cohort
