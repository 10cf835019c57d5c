// The contract that every Communicator fulfils, over processes of several nodes: this
// machine's, in groups (COHORT_WORKERS_PER_NODE); and what only several processes can show.
#include <cohort/collective/communicator.h>

#include <chrono>
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

TEST(NetworkCommunicator, KnowsItsMembers) {
  const auto communicator = make_communicator();
  EXPECT_EQ(communicator->name(), "network");
  EXPECT_EQ(communicator->rank(), session().rank());
  ASSERT_EQ(communicator->size(), session().size());
  for (int member = 0; member < communicator->size(); ++member) {
    const auto index = static_cast<std::size_t>(member);
    EXPECT_EQ(communicator->members()[index].worker, member);
    EXPECT_EQ(communicator->members()[index].host, session().workers()[index].host);
  }
}

TEST(NetworkCommunicator, Reductions) { testing::check_reductions(*make_communicator()); }
TEST(NetworkCommunicator, Arithmetic) { testing::check_arithmetic(*make_communicator()); }
TEST(NetworkCommunicator, DataMovement) { testing::check_data_movement(*make_communicator()); }
TEST(NetworkCommunicator, SizesAndMemory) { testing::check_sizes_and_memory(*make_communicator()); }
TEST(NetworkCommunicator, Messages) { testing::check_messages(*make_communicator()); }
TEST(NetworkCommunicator, Async) { testing::check_async(*make_communicator()); }
TEST(NetworkCommunicator, Packed) { testing::check_packed(*make_communicator()); }
TEST(NetworkCommunicator, Arguments) { testing::check_arguments(*make_communicator()); }
TEST(NetworkCommunicator, Mismatch) { testing::check_mismatch(*make_communicator()); }

TEST(NetworkCommunicator, Missing) {
  const auto communicator = make_communicator(0.5);
  testing::check_missing(*communicator);
  meet();
}

TEST(NetworkCommunicator, AMemberThatLeavesByAnExceptionEndsTheCallsOfTheOthers) {
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

TEST(NetworkCommunicator, WaitsThatCrossBetweenCommunicatorsEnd) {
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

TEST(NetworkCommunicator, ProgressesWhileNobodyWaits) {
  const auto communicator = make_communicator();
  const Tensor tensor = own_values(1'000'000);
  Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
  // The others' calls need this member's share, which nobody but the progress thread does.
  meet();
  work.wait();
  EXPECT_TRUE(bitwise_equal(tensor, filled(1'000'000, sum_of_ranks())));
}

TEST(NetworkCommunicator, KeepsAThousandCallsInFlight) {
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

TEST(NetworkCommunicator, WorksAndTensorsOutliveIt) {
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

TEST(NetworkCommunicator, ADroppedWorkIsDoneWhenTheCommunicatorIsGone) {
  const Tensor tensor = own_values(100'000);
  {
    const auto communicator = make_communicator();
    static_cast<void>(communicator->all_reduce_async(tensor, ReduceOp::kSum));
  }
  EXPECT_TRUE(bitwise_equal(tensor, filled(100'000, sum_of_ranks())));
}

TEST(NetworkCommunicator, AbortEndsTheCallsOfAllMembers) {
  const auto communicator = make_communicator();
  const int last = communicator->size() - 1;
  const Tensor tensor = filled(10, 1);
  const auto start = std::chrono::steady_clock::now();
  if (communicator->rank() == last) {
    communicator->abort(Aborted("the replica has had enough"));
    EXPECT_THROW(communicator->barrier(), Aborted);
  } else {
    try {
      communicator->all_reduce(tensor, ReduceOp::kSum);
      FAIL() << "no error";
    } catch (const Aborted& error) {
      EXPECT_STREQ(error.what(), "the replica has had enough");
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "told at once, not at the deadline";
  meet();
}

TEST(NetworkCommunicator, EveryMismatchIsExplainedAlikeAndSoon) {
  const Tensor floats = filled(100'000, 1);
  const Tensor doubles = Tensor::zeros({100'000}, DType::kFloat64);
  const auto odd_call = [&](int how, Communicator& communicator) {
    switch (how) {
      case 0: return communicator.all_reduce(floats.rows(0, 99'999), ReduceOp::kSum);
      case 1: return communicator.all_reduce(doubles, ReduceOp::kSum);
      case 2: return communicator.all_reduce(floats, ReduceOp::kMax);
      case 3: return communicator.broadcast(floats, 1);
      case 4: return communicator.barrier();
      default: return communicator.all_reduce(floats.rows(0, 1), ReduceOp::kSum);
    }
  };
  for (int how = 0; how < 6; ++how) {
    // The odd one is a leader, or not.
    const int odd = how % 2 == 0 ? session().size() - 1 : 0;
    const auto communicator = make_communicator();
    const auto start = std::chrono::steady_clock::now();
    std::string text = "no error";
    try {
      if (session().rank() == odd)
        odd_call(how, *communicator);
      else
        communicator->all_reduce(floats, ReduceOp::kSum);
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
    for (const std::string& other : session().exchange(text)) EXPECT_EQ(other, text);
    EXPECT_THAT(text, HasSubstr("members disagree"));
    if (session().size() > 2) {
      EXPECT_THAT(text, HasSubstr(describe(odd, communicator->members()[static_cast<std::size_t>(odd)])));
    }
    EXPECT_THROW(communicator->barrier(), InvalidArgument) << "the communicator stays unusable";
  }
}

TEST(NetworkCommunicator, EveryMemberReportsTheSameWhenOneIsMissing) {
  for (const int missing : {0, session().size() / 2}) {
    const auto communicator = make_communicator(0.3);
    std::string text = "missing";
    if (session().rank() != missing) {
      try {
        communicator->all_reduce(filled(100'000, 1), ReduceOp::kSum);
        text = "no error";
      } catch (const DeadlineExceeded& error) {
        text = error.what();
        EXPECT_EQ(error.origin().member, missing) << text;
      }
    }
    const std::vector<std::string> texts = session().exchange(text);
    for (int member = 0; member < session().size(); ++member) {
      if (member != missing && session().rank() != missing) {
        EXPECT_EQ(texts[static_cast<std::size_t>(member)], text);
      }
    }
    if (session().rank() == missing) {
      EXPECT_THROW(communicator->barrier(), DeadlineExceeded);
    }
    meet();
  }
}

TEST(NetworkCommunicator, SumsAreTheSameBitsOnEveryMember) {
  const auto communicator = make_communicator();
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t elements : {3, 3000, 40'000, 700'001}) {
      const Tensor tensor = Tensor::uninitialized({elements}, dtype);
      for (std::int64_t i = 0; i < elements; ++i)
        tensor.row(i).fill(1.0 / static_cast<double>(i % 977 + session().rank() * 31 + 3));
      communicator->all_reduce(tensor, ReduceOp::kMean);
      const Tensor all = Tensor::uninitialized({elements * session().size()}, dtype);
      communicator->all_gather(tensor, all);
      for (int member = 0; member < session().size(); ++member)
        ASSERT_TRUE(bitwise_equal(all.rows(elements * member, elements * (member + 1)), tensor))
            << to_string(dtype) << ", " << elements << " elements, member " << member;
    }
  }
}

TEST(NetworkCommunicator, LongMessagesKeepTheirOrder) {
  const auto communicator = make_communicator();
  constexpr int kMessages = 4;
  constexpr std::int64_t kElements = 600'000;
  const int last = session().size() - 1;
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < kMessages; ++i) {
    const bool sends = communicator->rank() == 0;
    tensors.push_back(filled(kElements, sends ? static_cast<float>(i) : -1));
    if (sends)
      works.push_back(communicator->send_async(tensors.back(), last));
    else if (communicator->rank() == last)
      works.push_back(communicator->receive_async(tensors.back(), 0));
  }
  for (std::size_t i = works.size(); i-- > 0;) works[i].wait();
  for (int i = 0; communicator->rank() == last && i < kMessages; ++i)
    EXPECT_TRUE(
        bitwise_equal(tensors[static_cast<std::size_t>(i)], filled(kElements, static_cast<float>(i))));
}

TEST(NetworkCommunicator, AMessageThatNobodySendsEndsAlone) {
  const auto communicator = make_communicator(0.3);
  if (session().rank() == 0) {
    const Tensor tensor = filled(10, 0);
    EXPECT_THROW(communicator->receive(tensor, session().size() - 1), DeadlineExceeded);
  }
  meet();
  communicator->barrier();
}

TEST(NetworkCommunicator, ThreadsMayUseCommunicatorsOfTheirOwn) {
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
