// What only processes of several nodes can show: this machine's, in groups
// (COHORT_WORKERS_PER_NODE). over_ranks_test.cpp has the rest.
#include <cohort/collective/communicator.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/collective/communication_scope.h>

#include "rank_values.h"
#include "thrown.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::session;

/// One element that tells whether two tensors have the same bits.
Tensor digest_of(const Tensor& tensor) {
  const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()),
                               tensor.elements() * size_of(tensor.dtype()));
  Tensor digest = Tensor::uninitialized({1}, DType::kInt64);
  digest.span<std::int64_t>()[0] = static_cast<std::int64_t>(std::hash<std::string_view>()(bytes));
  return digest;
}

TEST(NetworkCommunicator, IsWhatTheSessionMakes) { EXPECT_EQ(make_communicator()->name(), "network"); }

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
    // Who decides needs the core in time, or another one decides as well.
    const auto communicator = make_communicator(0.3);
    std::string text = "missing";
    if (session().rank() != missing) {
      try {
        communicator->all_reduce(filled(100'000, 1), ReduceOp::kSum);
        text = "no error";
      } catch (const DeadlineExceeded& error) {
        text = error.what();
        EXPECT_THAT(text, testing::names_missing(missing));
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

TEST(NetworkCommunicator, TakesTheRingWhereItIsAskedFor) {
  const auto communicator = make_communicator();
  const Tensor tensor = filled(30'000, 1);
  for (const auto wish : {CommunicationImplementation::kRing, CommunicationImplementation::kNccl}) {
    const CommunicationScope scope(*communicator, {.implementation = wish});
    tensor.fill(1);
    communicator->all_reduce(tensor, ReduceOp::kSum);
    EXPECT_EQ(communicator->last_algorithm(), "two_level_ring");
    EXPECT_TRUE(bitwise_equal(tensor, filled(30'000, static_cast<float>(session().size()))));
  }
}

TEST(NetworkCommunicator, SumsAreTheSameBitsOnEveryMember) {
  const auto communicator = make_communicator();
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t elements : {3, 3000, 40'000, 700'001}) {
      const Tensor values = Tensor::uninitialized({elements}, DType::kFloat32);
      for (int i = 0; float& value : values.span<float>())
        value = 1.0F / static_cast<float>(i++ % 977 + session().rank() * 31 + 3);
      const Tensor tensor = values.cast(dtype);
      communicator->all_reduce(tensor, ReduceOp::kMean);
      // What many members have in sum would take long to gather.
      const Tensor digest = digest_of(tensor);
      const Tensor digests = Tensor::uninitialized({session().size()}, DType::kInt64);
      communicator->all_gather(digest, digests);
      ASSERT_THAT(digests.span<std::int64_t>(), Each(digest.span<std::int64_t>()[0]))
          << to_string(dtype) << ", " << elements << " elements";
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
  const auto communicator = make_communicator(testing::short_timeout(session().size()));
  if (session().rank() == 0) {
    const Tensor tensor = filled(10, 0);
    EXPECT_THROW(communicator->receive(tensor, session().size() - 1), DeadlineExceeded);
  }
  meet();
  communicator->barrier();
}

}  // namespace
}  // namespace cohort
