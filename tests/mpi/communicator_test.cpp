// The contract that every Communicator fulfils, over MPI; and what only processes can
// show: large transfers, threads that share one communicator's group, works outliving it.
#include <cohort/collective/communicator.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective_contract.h"
#include "mpi_main.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::session;

std::unique_ptr<Communicator> make_communicator(double timeout_seconds = 10) {
  return session().make_communicator({.timeout_seconds = timeout_seconds});
}

Tensor filled(std::int64_t elements, float value) { return Tensor::full({elements}, DType::kFloat32, value); }

float sum_of_ranks(int size) {
  const int sum = size * (size + 1) / 2;
  return static_cast<float>(sum);
}

/// For tests in which one member is late: it comes when the others have told it that they gave up, however
/// busy the machine is. They tell it over another communicator, after the messages of the one under test, so
/// that all of these have arrived by then. Members make it together.
class Patience {
 public:
  void wait_for_others() {
    for (int member = 0; member < signals_->size(); ++member) {
      if (member != signals_->rank()) signals_->receive(filled(1, 0), member);
    }
  }
  void release(int member) { signals_->send(filled(1, 0), member); }

 private:
  std::unique_ptr<Communicator> signals_ = make_communicator(30);
};

TEST(MpiCommunicator, KnowsItsMembers) {
  const auto communicator = make_communicator();
  EXPECT_EQ(communicator->name(), "mpi");
  EXPECT_EQ(communicator->rank(), session().rank());
  ASSERT_EQ(communicator->size(), session().size());
  for (int member = 0; member < communicator->size(); ++member) {
    const auto index = static_cast<std::size_t>(member);
    EXPECT_EQ(communicator->members()[index].worker, member);
    EXPECT_EQ(communicator->members()[index].host, session().workers()[index].host);
  }
}

TEST(MpiCommunicator, Reductions) { testing::check_reductions(*make_communicator()); }
TEST(MpiCommunicator, Arithmetic) { testing::check_arithmetic(*make_communicator()); }
TEST(MpiCommunicator, DataMovement) { testing::check_data_movement(*make_communicator()); }
TEST(MpiCommunicator, SizesAndMemory) { testing::check_sizes_and_memory(*make_communicator()); }
TEST(MpiCommunicator, Messages) { testing::check_messages(*make_communicator()); }
TEST(MpiCommunicator, Async) { testing::check_async(*make_communicator()); }
TEST(MpiCommunicator, Packed) { testing::check_packed(*make_communicator()); }
TEST(MpiCommunicator, Arguments) { testing::check_arguments(*make_communicator()); }
TEST(MpiCommunicator, Mismatch) { testing::check_mismatch(*make_communicator()); }
TEST(MpiCommunicator, AgreementOnDifferentCalls) {
  testing::check_agreement_on_different_calls(*make_communicator());
}
TEST(MpiCommunicator, AgreementWithAMissingMember) {
  testing::check_agreement_with_a_missing_member(*make_communicator(0.5));
}
TEST(MpiCommunicator, Missing) { testing::check_missing(*make_communicator(0.5)); }

TEST(MpiCommunicator, SumsAreTheSameAtEverySizeOfMessage) {
  const auto communicator = make_communicator();
  // Around the limits between the ways that the data can take, and well beyond.
  for (const std::int64_t elements : {511, 512, 513, 16'383, 16'384, 100'003, 3'000'001}) {
    const Tensor in_place = filled(elements, static_cast<float>(communicator->rank() + 1));
    const Tensor input = in_place.clone();
    const Tensor output = Tensor::zeros({elements}, DType::kFloat32);
    communicator->all_reduce(input, output, ReduceOp::kSum);
    communicator->all_reduce(in_place, ReduceOp::kSum);
    const Tensor wanted = filled(elements, sum_of_ranks(communicator->size()));
    EXPECT_TRUE(bitwise_equal(output, wanted)) << elements;
    EXPECT_TRUE(bitwise_equal(in_place, wanted)) << elements;
  }
}

TEST(MpiCommunicator, GathersAtEverySizeOfMessage) {
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

TEST(MpiCommunicator, LongMinAndMaxKeepNanAndTheSignOfZero) {
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

TEST(MpiCommunicator, LongMessagesInFlightKeepTheirOrder) {
  const auto communicator = make_communicator();
  if (communicator->size() == 1) GTEST_SKIP();
  constexpr int kMessages = 4;
  constexpr std::int64_t kElements = 50'000;
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < kMessages; ++i) {
    const bool sends = communicator->rank() == 0;
    tensors.push_back(filled(kElements, sends ? static_cast<float>(i) : -1));
    if (sends)
      works.push_back(communicator->send_async(tensors.back(), 1));
    else if (communicator->rank() == 1)
      works.push_back(communicator->receive_async(tensors.back(), 0));
  }
  for (; !works.empty(); works.pop_back()) works.back().wait();
  for (int i = 0; communicator->rank() == 1 && i < kMessages; ++i) {
    EXPECT_TRUE(
        bitwise_equal(tensors[static_cast<std::size_t>(i)], filled(kElements, static_cast<float>(i))));
  }
}

TEST(MpiCommunicator, AWorkOutlivesItsCommunicatorAndTensors) {
  std::optional<Work> work;
  Tensor tensor = filled(100'000, static_cast<float>(session().rank() + 1));
  const Tensor view = tensor;
  {
    const auto communicator = make_communicator();
    work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
    tensor = Tensor();
  }
  work->wait();
  EXPECT_TRUE(bitwise_equal(view, filled(100'000, sum_of_ranks(session().size()))));
}

TEST(MpiCommunicator, ADroppedWorkIsStillDone) {
  const Tensor tensor = filled(100'000, static_cast<float>(session().rank() + 1));
  {
    const auto communicator = make_communicator();
    static_cast<void>(communicator->all_reduce_async(tensor, ReduceOp::kSum));
  }
  EXPECT_TRUE(bitwise_equal(tensor, filled(100'000, sum_of_ranks(session().size()))));
}

TEST(MpiCommunicator, ThreadsMayUseCommunicatorsOfTheirOwn) {
  const auto first = make_communicator();
  const auto second = make_communicator();
  const auto reduce_often = [](Communicator& communicator, std::int64_t elements) {
    for (int round = 0; round < 50; ++round) {
      const Tensor tensor = filled(elements, static_cast<float>(communicator.rank() + 1));
      communicator.all_reduce(tensor, ReduceOp::kSum);
      ASSERT_TRUE(bitwise_equal(tensor, filled(elements, sum_of_ranks(communicator.size()))));
    }
  };
  std::thread other([&] { reduce_often(*second, 20'000); });
  reduce_often(*first, 7);
  other.join();
}

TEST(MpiCommunicator, AWorkMayBeWaitedForOnAnotherThread) {
  const auto communicator = make_communicator();
  const Tensor a = filled(50'000, static_cast<float>(communicator->rank() + 1));
  const Tensor b = filled(5, static_cast<float>(communicator->rank() + 1));
  Work first = communicator->all_reduce_async(a, ReduceOp::kSum);
  Work second = communicator->all_reduce_async(b, ReduceOp::kSum);
  std::thread other([&] { first.wait(); });
  second.wait();
  other.join();
  EXPECT_TRUE(bitwise_equal(a, filled(50'000, sum_of_ranks(communicator->size()))));
  EXPECT_TRUE(bitwise_equal(b, filled(5, sum_of_ranks(communicator->size()))));
}

TEST(MpiCommunicator, AbortEndsTheCallsOfAllMembers) {
  const auto communicator = make_communicator();
  if (communicator->size() == 1) GTEST_SKIP();
  const int last = communicator->size() - 1;
  const Tensor tensor = filled(10, 1);
  const auto start = std::chrono::steady_clock::now();
  if (communicator->rank() == last) {
    communicator->abort(Aborted("the replica has had enough"));
    EXPECT_THROW(communicator->barrier(), Aborted);
    return;
  }
  try {
    communicator->all_reduce(tensor, ReduceOp::kSum);
    FAIL() << "no error";
  } catch (const Aborted& error) {
    EXPECT_STREQ(error.what(), "the replica has had enough");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "told at once, not at the deadline";
}

TEST(MpiCommunicator, HasOneMemberPerWorker) {
  try {
    static_cast<void>(session().make_communicators({}, 2));
    FAIL() << "no error";
  } catch (const Unimplemented& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("COHORT_COMMUNICATOR"),
                                    HasSubstr(fmt::format("mpirun -n {}", 2 * session().size()))));
  }
  EXPECT_NO_THROW(make_communicator()->barrier());
}

TEST(MpiCommunicator, AMemberThatComesTooLateGetsTheSameError) {
  const auto communicator = make_communicator(0.5);
  if (communicator->size() == 1) GTEST_SKIP();
  const int late = communicator->size() / 2;  // member 0 of nobody, member 1 of 2 and 3, ...
  const Tensor tensor = filled(10, 1);
  Patience patience;
  if (communicator->rank() == late) patience.wait_for_others();
  try {
    communicator->all_reduce(tensor, ReduceOp::kSum);
    FAIL() << "no error";
  } catch (const DeadlineExceeded& error) {
    EXPECT_THAT(error.what(),
                HasSubstr(describe(late, communicator->members()[static_cast<std::size_t>(late)])));
    EXPECT_EQ(error.origin().member, late);
  }
  if (communicator->rank() != late) patience.release(late);
  EXPECT_THROW(communicator->barrier(), DeadlineExceeded) << "the communicator stays unusable";
  EXPECT_NO_THROW(make_communicator()->barrier()) << "a new one works";
}

TEST(MpiCommunicator, NamesMemberZeroWhenItIsTheOneMissing) {
  const auto communicator = make_communicator(0.3);
  if (communicator->size() == 1) GTEST_SKIP();
  Patience patience;
  if (communicator->rank() == 0) {
    // The others' calls and their giving up have arrived; it must not take part in what is over.
    patience.wait_for_others();
    EXPECT_THROW(communicator->barrier(), DeadlineExceeded);
    return;
  }
  try {
    communicator->barrier();
    FAIL() << "no error";
  } catch (const DeadlineExceeded& error) {
    EXPECT_EQ(error.origin().member, 0);
  }
  patience.release(0);
}

TEST(MpiCommunicator, WhoWasAwayBeyondTheDeadlineGivesTheOthersAChance) {
  const auto communicator = make_communicator(0.1);
  const Tensor tensor = filled(10, 1);
  Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
  // All compute past the deadline, and then some; member 0 comes last.
  std::this_thread::sleep_for(communicator->rank() == 0 ? 1500ms : 1200ms);
  EXPECT_NO_THROW(work.wait()) << "all have started it in time";
  EXPECT_EQ(tensor.span<float>().front(), static_cast<float>(session().size()));
}

TEST(MpiCommunicator, ALongMessageOfTheWrongSizeDoesNotStandInTheWay) {
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

TEST(MpiCommunicator, AMemberThatLeavesByAnExceptionEndsTheCallsOfTheOthers) {
  if (session().size() == 1) GTEST_SKIP();
  const Tensor tensor = filled(2'000'000, 1);
  const int last = session().size() - 1;
  const auto start = std::chrono::steady_clock::now();
  try {
    const auto communicator = make_communicator();
    Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
    if (session().rank() == last) throw std::runtime_error("something else went wrong");
    work.wait();
    FAIL() << "no error";
  } catch (const Aborted& error) {
    EXPECT_THAT(error.what(), HasSubstr("member " + std::to_string(last) + " (worker"));
    EXPECT_THAT(error.what(), HasSubstr("left the communicator because of an error, with calls in flight"));
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(session().rank(), last) << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(MpiCommunicator, NamesWhoDoesNotDriveItsTransfer) {
  const auto communicator = make_communicator(1);
  if (communicator->size() == 1) GTEST_SKIP();
  // The last member agrees to the call and then looks after other things.
  const Tensor tensor = filled(4'000'000, 1);
  const int last = communicator->size() - 1;
  Patience patience;
  std::optional<Work> work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
  if (communicator->rank() == last) {
    patience.wait_for_others();
    EXPECT_THROW(work->wait(), DeadlineExceeded);
    return;
  }
  try {
    work->wait();
    FAIL() << "no error";
  } catch (const DeadlineExceeded& error) {
    EXPECT_EQ(error.origin().member, last) << error.what();
  }
  patience.release(last);
}

TEST(MpiCommunicator, RefusesMoreElementsThanMpiCanCount) {
  const auto communicator = make_communicator();
  std::uint8_t byte = 0;
  const std::size_t elements = (std::size_t{1} << 31);
  const auto buffer =
      std::make_shared<const Buffer>(reinterpret_cast<std::byte*>(&byte), elements, Device(), nullptr);
  const Tensor huge = Tensor::wrap(buffer, 0, {static_cast<std::int64_t>(elements)}, DType::kUInt8);
  EXPECT_THROW(communicator->broadcast(huge, 0), Unimplemented);
  EXPECT_NO_THROW(communicator->barrier()) << "nothing has happened, so the communicator is as before";
}

}  // namespace
}  // namespace cohort
