// What communicators over ranks do alike, on one node and over several: the contract that
// every Communicator fulfils, and what only several processes can show.
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "rank_values.h"
#include "thrown.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
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
TEST(CommunicatorOverRanks, AgreementOnDifferentCalls) {
  testing::check_agreement_on_different_calls(*make_communicator());
  meet();
}
TEST(CommunicatorOverRanks, AgreementWithAMissingMember) {
  const auto communicator = make_communicator(testing::short_timeout(session().size()));
  testing::check_agreement_with_a_missing_member(*communicator);
  meet();
}
TEST(CommunicatorOverRanks, Missing) {
  const auto communicator = make_communicator(testing::short_timeout(session().size()));
  testing::check_missing(*communicator);
  meet();
}

TEST(CommunicatorOverRanks, SumsAreTheSameAtEverySizeOfMessage) {
  const auto communicator = make_communicator();
  // Around the limits between the ways that the data can take, and well beyond.
  for (const std::int64_t elements : {511, 512, 513, 16'383, 16'384, 100'003, 3'000'001}) {
    const Tensor in_place = own_values(elements);
    const Tensor input = in_place.clone();
    const Tensor output = Tensor::zeros({elements}, DType::kFloat32);
    communicator->all_reduce(input, output, ReduceOp::kSum);
    communicator->all_reduce(in_place, ReduceOp::kSum);
    const Tensor wanted = filled(elements, sum_of_ranks());
    EXPECT_TRUE(bitwise_equal(output, wanted)) << elements;
    EXPECT_TRUE(bitwise_equal(in_place, wanted)) << elements;
  }
}

TEST(CommunicatorOverRanks, GathersAtEverySizeOfMessage) {
  const auto communicator = make_communicator();
  const auto size = static_cast<std::int64_t>(communicator->size());
  for (const std::int64_t elements : {100, 500, 1000, 30'000}) {
    const Tensor output = Tensor::zeros({size * elements}, DType::kFloat32);
    communicator->all_gather(filled(elements, static_cast<float>(communicator->rank())), output);
    for (std::int64_t member = 0; member < size; ++member) {
      EXPECT_TRUE(bitwise_equal(output.rows(member * elements, (member + 1) * elements),
                                filled(elements, static_cast<float>(member))))
          << elements << " elements, member " << member;
    }
  }
}

TEST(CommunicatorOverRanks, LongMinAndMaxKeepNanAndTheSignOfZero) {
  const auto communicator = make_communicator();
  const bool is_last = communicator->rank() == communicator->size() - 1;
  constexpr std::int64_t kElements = 20'000;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      // Half of the elements have a NaN on the last member, the others zeros of both signs.
      const Tensor tensor = Tensor::full({kElements}, dtype, is_last ? -0.0 : 0.0);
      if (is_last) tensor.rows(0, kElements / 2).fill(std::numeric_limits<double>::quiet_NaN());
      communicator->all_reduce(tensor, op);
      const bool zero_is_negative = op == ReduceOp::kMin || communicator->size() == 1;
      for (const std::int64_t index : {std::int64_t{0}, kElements / 2 - 1}) {
        EXPECT_TRUE(std::isnan(tensor.row(index).item<double>()))
            << to_string(op) << " of " << to_string(dtype);
      }
      for (const std::int64_t index : {kElements / 2, kElements - 1}) {
        EXPECT_EQ(std::signbit(tensor.row(index).item<double>()), zero_is_negative)
            << to_string(op) << " of " << to_string(dtype);
      }
    }
  }
}

TEST(CommunicatorOverRanks, AWorkMayBeWaitedForOnAnotherThread) {
  const auto communicator = make_communicator();
  const Tensor a = own_values(50'000);
  const Tensor b = own_values(5);
  Work first = communicator->all_reduce_async(a, ReduceOp::kSum);
  Work second = communicator->all_reduce_async(b, ReduceOp::kSum);
  std::thread other([&] { first.wait(); });
  second.wait();
  other.join();
  EXPECT_TRUE(bitwise_equal(a, filled(50'000, sum_of_ranks())));
  EXPECT_TRUE(bitwise_equal(b, filled(5, sum_of_ranks())));
}

TEST(CommunicatorOverRanks, WhoWasAwayBeyondTheDeadlineGivesTheOthersAChance) {
  const auto communicator = make_communicator(0.2);
  const Tensor tensor = filled(10, 1);
  Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
  // All compute past the deadline and the time to answer that follows it; member 0 comes last.
  std::this_thread::sleep_for(communicator->rank() == 0 ? 950ms : 700ms);
  EXPECT_NO_THROW(work.wait()) << "all have started it in time";
  EXPECT_EQ(tensor.span<float>().front(), static_cast<float>(session().size()));
}

TEST(CommunicatorOverRanks, ALongMessageOfTheWrongSizeDoesNotStandInTheWay) {
  const auto communicator = make_communicator();
  if (communicator->size() == 1) GTEST_SKIP();
  if (communicator->rank() == 0) {
    communicator->send(filled(100'000, 1), 1);
    communicator->send(filled(70'000, 2), 1);
  } else if (communicator->rank() == 1) {
    const Tensor short_of_it = filled(60'000, 0);
    EXPECT_THROW(communicator->receive(short_of_it, 0), InvalidArgument);
    EXPECT_TRUE(bitwise_equal(short_of_it, filled(60'000, 0))) << "nothing is written";
    const Tensor fitting = filled(70'000, 0);
    communicator->receive(fitting, 0);
    EXPECT_TRUE(bitwise_equal(fitting, filled(70'000, 2)));
  }
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
  // Beside programs that compute, a member that yields its core gets it back milliseconds later, a thousand
  // times and more.
  const auto communicator = make_communicator(60);
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
