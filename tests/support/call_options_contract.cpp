#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool is_last(const Communicator& communicator) { return communicator.rank() == communicator.size() - 1; }

/// Comes so late that the communicator's own time-out passes, and between nodes the time to answer as well.
void let_the_others_wait(const Communicator& communicator) {
  if (communicator.size() == 1 || !is_last(communicator)) return;
  std::this_thread::sleep_for(communicator.name() == "network" ? 350ms : 100ms);
}

}  // namespace

void check_shorter_deadline(Communicator& communicator) {
  const Tensor tensor = Tensor::zeros({3}, DType::kFloat32);
  communicator.all_reduce(tensor, ReduceOp::kSum, {.timeout_seconds = 20});
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { communicator.barrier({.timeout_seconds = -1}); }),
              HasSubstr("barrier: timeout_seconds is -1"));
  if (communicator.size() == 1 || is_last(communicator)) return;
  const auto start = std::chrono::steady_clock::now();
  const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
    communicator.all_reduce(tensor, ReduceOp::kSum, {.timeout_seconds = short_timeout(communicator.size())});
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s) << "not at the communicator's deadline";
  EXPECT_THAT(text, names_missing(communicator.size() - 1));
  EXPECT_THAT(text, HasSubstr("s (set for this call) passed"));
  EXPECT_THAT(text, HasSubstr("all_reduce #1"));
}

void check_longer_deadline(Communicator& communicator) {
  for (const double seconds : {0., 20.}) {
    // Time itself is what is tested.
    let_the_others_wait(communicator);
    EXPECT_NO_THROW(communicator.barrier({.timeout_seconds = seconds}));
    let_the_others_wait(communicator);
    EXPECT_NO_THROW(communicator.barrier_async({.timeout_seconds = seconds}).wait());
  }
}

void check_urgent_calls(Communicator& communicator, bool overtakes) {
  const int members = communicator.size();
  const auto filled = [](std::int64_t elements, int value) {
    return Tensor::full({elements}, DType::kFloat32, static_cast<double>(value));
  };
  const std::int64_t elements = 32'000'000 / members;
  const Tensor large = filled(elements, communicator.rank());
  // Where the calling thread loses its core for long, the large call ends before the small ones begin, or
  // before the thread looks: it is enough that one member has seen it once. With more members than cores
  // each of them loses it in most rounds, and nothing need be seen.
  const bool is_seen = overtakes && members <= static_cast<int>(std::thread::hardware_concurrency());
  constexpr int kMostRounds = 100;
  const Tensor seen = filled(1, 0);
  for (int round = 0; round < kMostRounds && seen.span<float>()[0] == 0; ++round) {
    const Tensor small[] = {filled(3, 1), filled(3'000, 1), filled(30'000, 1)};
    std::vector<Work> urgent;
    Work normal = communicator.all_reduce_async(large, ReduceOp::kMax);
    for (const Tensor& tensor : small)
      urgent.push_back(
          communicator.all_reduce_async(tensor, ReduceOp::kSum, {.priority = Priority::kUrgent}));
    urgent.back().wait();
    const bool overtook = !normal.done();
    for (Work& work : urgent) EXPECT_TRUE(work.done()) << "urgent calls keep their order";
    communicator.all_reduce(filled(1, 0), ReduceOp::kMax, {.priority = Priority::kUrgent});
    normal.wait();
    for (const Tensor& tensor : small) EXPECT_TRUE(bitwise_equal(tensor, filled(tensor.shape()[0], members)));
    EXPECT_TRUE(bitwise_equal(large, filled(elements, members - 1)));
    seen.copy_from(filled(1, overtook ? 1 : 0));
    communicator.all_reduce(seen, ReduceOp::kMax);
    if (members == 1 || !is_seen) return;  // alone in place there is nothing to do
  }
  EXPECT_EQ(seen.span<float>()[0], 1) << "no urgent call has ever overtaken a normal one";
}

void check_priority_mismatch(Communicator& communicator) {
  if (communicator.size() == 1) return;
  communicator.barrier();
  communicator.barrier({.priority = Priority::kUrgent});
  const auto start = std::chrono::steady_clock::now();
  const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
    communicator.all_reduce(Tensor::zeros({5}, DType::kFloat32), ReduceOp::kSum,
                            {.priority = is_last(communicator) ? Priority::kUrgent : Priority::kNormal});
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "not at the deadline";
  EXPECT_THAT(text, HasSubstr("all_reduce #2: members disagree"));
  EXPECT_THAT(text, HasSubstr("called all_reduce(float32[5], sum, urgent)"));
  EXPECT_THAT(text, HasSubstr("called all_reduce(float32[5], sum)"));
  if (communicator.size() > 2) {
    EXPECT_THAT(text, HasSubstr(fmt::format("member {} ", communicator.size() - 1)));
  }
}

void check_order_mismatch(Communicator& communicator) {
  if (communicator.size() == 1) return;
  const auto start = std::chrono::steady_clock::now();
  const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
    const Priority first = is_last(communicator) ? Priority::kUrgent : Priority::kNormal;
    const Priority second = is_last(communicator) ? Priority::kNormal : Priority::kUrgent;
    const Tensor tensors[] = {Tensor::zeros({5}, DType::kFloat32), Tensor::zeros({5}, DType::kFloat32)};
    Work works[] = {communicator.all_reduce_async(tensors[0], ReduceOp::kSum, {.priority = first}),
                    communicator.all_reduce_async(tensors[1], ReduceOp::kSum, {.priority = second})};
    for (Work& work : works) work.wait();
    communicator.barrier();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "not at the deadline";
  EXPECT_THAT(text, HasSubstr("members disagree"));
  // What is found out first: calls of different priority, or equal ones that are not the same by number.
  EXPECT_THAT(text, ::testing::AnyOf(HasSubstr("urgent"), HasSubstr("as call #1")));
}

void check_missing_in_urgent_call(Communicator& communicator) {
  if (communicator.size() == 1) return;
  const Tensor tensor = Tensor::zeros({8}, DType::kFloat32);
  Work normal = communicator.all_reduce_async(tensor, ReduceOp::kSum);
  normal.wait();
  if (is_last(communicator)) return;
  const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
    communicator.all_reduce(
        tensor, ReduceOp::kSum,
        {.timeout_seconds = short_timeout(communicator.size()), .priority = Priority::kUrgent});
  });
  EXPECT_THAT(text, names_missing(communicator.size() - 1));
  EXPECT_THAT(text, HasSubstr("all_reduce(float32[8], sum, urgent)"));
  EXPECT_EQ(message_of(ErrorCode::kDeadlineExceeded, [&] { communicator.barrier(); }), text);
}

namespace {

constexpr std::int64_t kLengths[] = {3, 4000, 300'000};

Tensor filled(std::int64_t elements, int value) { return Tensor::full({elements}, DType::kInt32, value); }

void expect_all(const Tensor& tensor, int value) {
  EXPECT_TRUE(bitwise_equal(tensor, Tensor::full(tensor.shape(), DType::kInt32, value)));
}

int sum_of_ranks(const Communicator& communicator) {
  return communicator.size() * (communicator.size() - 1) / 2;
}

/// Waits, and expects an error at member 0 only. The calls so far were `calls`.
void expect_report(Communicator& communicator, Work& work, int calls, const std::string& role) {
  if (communicator.rank() != 0) return work.wait();
  for (int time = 0; time < 2; ++time) {  // waiting twice says the same
    EXPECT_THAT(
        message_of(ErrorCode::kInvalidArgument, [&] { work.wait(); }),
        AllOf(HasSubstr(fmt::format("all_reduce #{}", calls)), HasSubstr("the " + role + " of member 0"),
              HasSubstr("worker"), HasSubstr("host"), HasSubstr("changed")));
  }
}

void change_in_place(Communicator& communicator, std::int64_t elements, int& calls) {
  const Tensor tensor = filled(elements, communicator.rank());
  Work work = communicator.all_reduce_async(tensor, ReduceOp::kSum);
  if (communicator.rank() == 0) tensor.span<std::int32_t>().back() = 77;
  expect_report(communicator, work, calls++, "input");
  if (communicator.rank() == 0)
    EXPECT_EQ(tensor.span<std::int32_t>().back(), 77) << "what the program wrote stays";
  else
    expect_all(tensor, sum_of_ranks(communicator));
}

void change_one_of_two(Communicator& communicator, std::int64_t elements, bool input_changes, int& calls) {
  const Tensor input = filled(elements, communicator.rank());
  const Tensor output = filled(elements, -1);
  Work work = communicator.all_reduce_async(input, output, ReduceOp::kSum);
  if (communicator.rank() == 0) (input_changes ? input : output).span<std::int32_t>().front() = 78;
  expect_report(communicator, work, calls++, input_changes ? "input" : "output");
  if (communicator.rank() != 0) expect_all(output, sum_of_ranks(communicator));
}

}  // namespace

void check_changed_tensors(Communicator& communicator) {
  int calls = 0;
  for (const std::int64_t elements : kLengths) {
    change_in_place(communicator, elements, calls);
    for (const bool input_changes : {true, false})
      change_one_of_two(communicator, elements, input_changes, calls);
    const Tensor tensor = filled(elements, communicator.rank());
    communicator.all_reduce(tensor, ReduceOp::kSum);
    ++calls;
    expect_all(tensor, sum_of_ranks(communicator));
  }
}

void check_dropped_works(std::unique_ptr<Communicator> communicator) {
  const Tensor tensor = filled(1000, communicator->rank());
  const Tensor copy = tensor.clone();
  const int sum = sum_of_ranks(*communicator);
  static_cast<void>(communicator->all_reduce_async(tensor, ReduceOp::kSum));
  static_cast<void>(communicator->all_reduce_async(copy, ReduceOp::kSum));
  communicator.reset();
  expect_all(tensor, sum);
  expect_all(copy, sum);
}

}  // namespace cohort::testing
