// The contract that every Communicator fulfils, over processes that share their node's
// memory; and what only several processes can show.
#include <cohort/collective/communicator.h>

#include <chrono>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/device/node_heap.h>

#include "collective_contract.h"
#include "mpi_main.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::session;

std::unique_ptr<Communicator> make_communicator(double timeout_seconds = 20) {
  return session().make_communicator({.timeout_seconds = timeout_seconds});
}

/// All workers have come this far.
void meet() { static_cast<void>(session().exchange("")); }

Tensor filled(std::int64_t elements, float value) { return Tensor::full({elements}, DType::kFloat32, value); }

float sum_of_ranks() { return static_cast<float>(session().size() * (session().size() + 1)) / 2; }

Tensor own_values(std::int64_t elements) {
  return filled(elements, static_cast<float>(session().rank() + 1));
}

TEST(NodeCommunicator, KnowsItsMembers) {
  const auto communicator = make_communicator();
  EXPECT_EQ(communicator->name(), "node");
  EXPECT_EQ(communicator->rank(), session().rank());
  ASSERT_EQ(communicator->size(), session().size());
  for (int member = 0; member < communicator->size(); ++member) {
    const auto index = static_cast<std::size_t>(member);
    EXPECT_EQ(communicator->members()[index].worker, member);
    EXPECT_EQ(communicator->members()[index].host, session().workers()[index].host);
  }
}

TEST(NodeCommunicator, Reductions) { testing::check_reductions(*make_communicator()); }
TEST(NodeCommunicator, Arithmetic) { testing::check_arithmetic(*make_communicator()); }
TEST(NodeCommunicator, DataMovement) { testing::check_data_movement(*make_communicator()); }
TEST(NodeCommunicator, SizesAndMemory) { testing::check_sizes_and_memory(*make_communicator()); }
TEST(NodeCommunicator, Messages) { testing::check_messages(*make_communicator()); }
TEST(NodeCommunicator, Async) { testing::check_async(*make_communicator()); }
TEST(NodeCommunicator, Packed) { testing::check_packed(*make_communicator()); }
TEST(NodeCommunicator, Arguments) { testing::check_arguments(*make_communicator()); }
TEST(NodeCommunicator, Mismatch) { testing::check_mismatch(*make_communicator()); }

TEST(NodeCommunicator, Missing) {
  const auto communicator = make_communicator(0.5);
  testing::check_missing(*communicator);
  meet();
}

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
      EXPECT_THAT(error.what(),
                  HasSubstr("left the communicator without this call: member " + std::to_string(last)));
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "not at the deadline";
  meet();
}

TEST(NodeCommunicator, AMemberThatLeavesByAnExceptionEndsTheCallsOfTheOthers) {
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

TEST(NodeCommunicator, WaitsThatCrossBetweenCommunicatorsEnd) {
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

TEST(NodeCommunicator, ProgressesWhileNobodyWaits) {
  const auto communicator = make_communicator();
  const Tensor tensor = own_values(1'000'000);
  Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
  // The others' calls need this member's share, which nobody but the progress thread does.
  meet();
  work.wait();
  EXPECT_TRUE(bitwise_equal(tensor, filled(1'000'000, sum_of_ranks())));
}

TEST(NodeCommunicator, KeepsAThousandCallsInFlight) {
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

TEST(NodeCommunicator, WorksAndTensorsOutliveIt) {
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

TEST(NodeCommunicator, ADroppedWorkIsDoneWhenTheCommunicatorIsGone) {
  const Tensor tensor = own_values(100'000);
  {
    const auto communicator = make_communicator();
    static_cast<void>(communicator->all_reduce_async(tensor, ReduceOp::kSum));
  }
  EXPECT_TRUE(bitwise_equal(tensor, filled(100'000, sum_of_ranks())));
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

TEST(NodeCommunicator, ThreadsMayUseCommunicatorsOfTheirOwn) {
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
