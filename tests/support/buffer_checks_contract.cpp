#include "buffer_checks_contract.h"

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
