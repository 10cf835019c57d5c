// Rooted calls of few bytes in which members that only send do not wait for the others.
#include <cohort/collective/communicator.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/deadline.h>

#include "members.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr CommunicationOptions kEager{.eager = true};
/// More than a member has lines.
constexpr int kManyCalls = 100;

std::int64_t& at(const Tensor& tensor, std::int64_t element) {
  return tensor.span<std::int64_t>()[static_cast<std::size_t>(element)];
}

Tensor numbers(std::int64_t elements, int first) {
  Tensor tensor = Tensor::zeros({elements}, DType::kInt64);
  for (std::int64_t i = 0; i < elements; ++i) at(tensor, i) = first + i;
  return tensor;
}

void expect_numbers(const Tensor& tensor, std::int64_t begin, std::int64_t elements, std::int64_t first,
                    std::int64_t step = 1) {
  for (std::int64_t i = 0; i < elements; ++i)
    ASSERT_EQ(at(tensor, begin + i), first + step * i) << "element " << begin + i;
}

// ---- results

void check_broadcast(Communicator& communicator, std::int64_t elements, int root, int n) {
  const Tensor tensor = numbers(elements, communicator.rank() == root ? n : -1);
  communicator.broadcast(tensor, root);
  expect_numbers(tensor, 0, elements, n);
}

void check_reduce(Communicator& communicator, std::int64_t elements, int root, int n) {
  const Tensor input = numbers(elements, n + communicator.rank());
  const Tensor sum = numbers(elements, 0);
  communicator.reduce(input, sum, ReduceOp::kSum, root);
  const std::int64_t members = communicator.size();
  if (communicator.rank() == root)
    expect_numbers(sum, 0, elements, members * n + members * (members - 1) / 2, members);
}

void check_gather(Communicator& communicator, std::int64_t elements, int root, int n) {
  const Tensor all = numbers(elements * communicator.size(), 0);
  communicator.gather(numbers(elements, n + communicator.rank()), all, root);
  for (int member = 0; communicator.rank() == root && member < communicator.size(); ++member)
    expect_numbers(all, member * elements, elements, n + member);
}

void check_scatter(Communicator& communicator, std::int64_t elements, int root, int n) {
  const Tensor own = numbers(elements, 0);
  communicator.scatter(numbers(elements * communicator.size(), communicator.rank() == root ? n : -1), own,
                       root);
  expect_numbers(own, 0, elements, n + elements * communicator.rank());
}

void check_all_reduce(Communicator& communicator, int n) {
  const Tensor tensor = numbers(3, n);
  communicator.all_reduce(tensor, ReduceOp::kSum);
  expect_numbers(tensor, 0, 3, std::int64_t{n} * communicator.size(), communicator.size());
}

class EagerCalls : public ::testing::TestWithParam<int> {};

TEST_P(EagerCalls, GiveTheResultsOfAllOthers) {
  for_each_member(
      GetParam(),
      [](Communicator& communicator) {
        // In the line, beside it, and too long for either.
        for (const std::int64_t elements : {1, 7, 25, 128, 200}) {
          const auto checks = {&check_broadcast, &check_reduce, &check_gather, &check_scatter};
          for (const auto check : checks) {
            for (int n = 0; n < kManyCalls; ++n) check(communicator, elements, 0, n);
          }
          for (int n = 0; n < kManyCalls; ++n) {
            for (const auto check : checks) check(communicator, elements, n % communicator.size(), n);
            if (n % 7 == 0) check_all_reduce(communicator, n);
          }
        }
      },
      kEager);
}

TEST_P(EagerCalls, MayBeStartedByAMemberThatGoesOn) {
  for_each_member(
      GetParam(),
      [](Communicator& communicator) {
        std::vector<Tensor> tensors;
        std::vector<Work> works;
        for (int n = 0; n < kManyCalls; ++n) {
          const int root = n % communicator.size();
          tensors.push_back(numbers(2, communicator.rank() == root ? n : -1));
          works.push_back(communicator.broadcast_async(tensors.back(), root));
        }
        for (Work& work : works) work.wait();
        for (int n = 0; n < kManyCalls; ++n) expect_numbers(tensors[static_cast<std::size_t>(n)], 0, 2, n);
      },
      kEager);
}

TEST_P(EagerCalls, EndForThoseThatOnlySendBeforeTheOthersCome) {
  constexpr int kAhead = 60;
  std::atomic<int> have_sent{0};
  for_each_member(
      GetParam(),
      [&](Communicator& communicator) {
        if (communicator.rank() == 0) {
          const Deadline deadline = Deadline::after(std::chrono::seconds(20));
          while (have_sent < communicator.size() - 1 && !deadline.expired()) std::this_thread::yield();
          EXPECT_EQ(have_sent, communicator.size() - 1);
        }
        for (int n = 0; n < kAhead; ++n) check_reduce(communicator, 4, 0, n);
        if (communicator.rank() != 0) ++have_sent;
      },
      kEager);
}

INSTANTIATE_TEST_SUITE_P(Members, EagerCalls, ::testing::Values(2, 3, 5));

// ---- errors

TEST(EagerCallErrors, NameTheCallOfAMemberThatHasGoneOn) {
  for_each_member(
      2,
      [](Communicator& communicator) {
        const std::int64_t elements = communicator.rank() == 0 ? 3 : 2;
        const auto call = [&] {
          communicator.reduce(numbers(elements, 0), numbers(elements, 0), ReduceOp::kSum, 0);
          communicator.barrier();  // where the one that sends finds out
        };
        EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, call),
                    AllOf(HasSubstr("members disagree"), HasSubstr("int64[2]"), HasSubstr("int64[3]"),
                          HasSubstr("member 1")));
      },
      kEager);
}

// The odd one only sends, and those that receive do so from others.
TEST(EagerCallErrors, NameAMemberWhoseAnnouncementNobodyHasLookedAt) {
  for_each_member(
      3,
      [](Communicator& communicator) {
        const Tensor tensor = numbers(2, 0);
        check_broadcast(communicator, 2, 1, 5);
        communicator.broadcast(tensor, communicator.rank() == 0 ? 0 : 1);
        // Member 0 sends on. Only the barrier has all look at all.
        const auto calls = [&] {
          for (int n = 0; n < kManyCalls / 4; ++n) check_reduce(communicator, 2, 2, n);
          communicator.barrier();
        };
        EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, calls),
                    AllOf(HasSubstr("broadcast #1: members disagree"), HasSubstr("member 0"),
                          HasSubstr("the other 2")));
      },
      kEager);
}

TEST(EagerCallErrors, NameTheMemberThatDoesNotCome) {
  std::atomic<bool> has_failed{false};
  for_each_member(2,
                  [&](Communicator& communicator) {
                    if (communicator.rank() == 0) {
                      const Deadline deadline = Deadline::after(std::chrono::seconds(20));
                      while (!has_failed && !deadline.expired()) std::this_thread::yield();
                      return;
                    }
                    const auto send_on = [&] {
                      for (int n = 0; n < kManyCalls; ++n) check_reduce(communicator, 1, 0, n);
                    };
                    EXPECT_THAT(message_of(ErrorCode::kDeadlineExceeded, send_on), names_missing(0));
                    has_failed = true;
                  },
                  {.timeout_seconds = 0.2, .eager = true});
}

}  // namespace
}  // namespace cohort::testing
