// What the other processes of a node make of registered memory: they read and write it in place.
#include <cohort/device/memory_registration.h>

#include <cohort/collective/communicator.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/device/dlpack.h>

#include "device/node_heap.h"
#include "rank_values.h"
#include "stopping_page.h"

namespace cohort {
namespace {

using testing::MappedPages;
using testing::page_bytes;
using testing::session;

Tensor over(std::span<float> values) {
  return Tensor::wrap(values, {static_cast<std::int64_t>(values.size())});
}

bool is_alone() { return session().size() == 1; }

/// The size from which `communicator` uses another protocol than `pieces`; a probe may have moved it.
double size_in_table(const Communicator& communicator, std::string_view figure) {
  for (const TuningFigure& each : communicator.tuning())
    if (each.name == figure) return each.value;
  ADD_FAILURE() << "no figure is called " << figure;
  return 0;
}

/// Which protocol the latest collective of `bytes` had: `late` from the size of `figure` on, `pieces` below.
/// Who is alone has no choice.
void expect_protocol(const Communicator& communicator, std::size_t bytes, std::string_view figure,
                     std::string_view late) {
  if (is_alone()) return;
  const bool is_late = static_cast<double>(bytes) >= size_in_table(communicator, figure);
  EXPECT_EQ(communicator.last_algorithm(), is_late ? late : "pieces");
}

/// That of a sum in place.
void expect_direct_sum(const Communicator& communicator, std::size_t bytes) {
  expect_protocol(communicator, bytes, "direct_reduction_bytes", "direct");
}
void expect_sum_of_private(const Communicator& communicator, std::size_t bytes) {
  expect_protocol(communicator, bytes, "single_copy_bytes", "single_copy");
}

/// By the built-in sizes, private tensors of 32 KiB go through cells, and those of 4 MiB by copies of the
/// kernel.
class RegisteredMemory : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, RegisteredMemory, ::testing::Values(32 << 10, 4 << 20));

TEST_P(RegisteredMemory, IsReducedInPlace) {
  const auto communicator = make_communicator();
  const MappedPages pages(GetParam() / page_bytes());
  const Tensor tensor = over(pages.as<float>());
  const auto sum = [&] {
    tensor.fill(session().rank() + 1);
    communicator->all_reduce(tensor, ReduceOp::kSum);
    EXPECT_TRUE(bitwise_equal(tensor, filled(static_cast<std::int64_t>(tensor.elements()), sum_of_ranks())));
  };
  sum();
  expect_sum_of_private(*communicator, GetParam());
  {
    const MemoryRegistration registration = register_memory(pages.bytes());
    ASSERT_TRUE(registration.in_node_heap()) << registration.why_private();
    sum();
    expect_direct_sum(*communicator, GetParam());
    meet();
  }
  EXPECT_EQ(pages.as<float>().back(), sum_of_ranks());
  sum();
  expect_sum_of_private(*communicator, GetParam());
}

TEST_P(RegisteredMemory, TakesTheResultsOfOthers) {
  if (is_alone()) GTEST_SKIP() << "nobody else";
  const auto communicator = make_communicator();
  const auto members = static_cast<std::size_t>(session().size());
  const MappedPages input(GetParam() / page_bytes());
  const MappedPages output(members * GetParam() / page_bytes());
  const MemoryRegistration of_input = register_memory(input.bytes());
  const MemoryRegistration of_output = register_memory(output.bytes());
  over(input.as<float>()).fill(session().rank() + 1);
  communicator->all_gather(over(input.as<float>()), over(output.as<float>()));
  expect_protocol(*communicator, GetParam(), "direct_move_bytes", "direct");
  for (std::size_t member = 0; member < members; ++member)
    EXPECT_EQ(output.as<float>()[(member + 1) * output.as<float>().size() / members - 1], member + 1);
}

TEST(RegisteredMemory, WorksTogetherWithPrivateMemoryOfOthers) {
  const auto communicator = make_communicator();
  const MappedPages pages((4 << 20) / page_bytes());
  std::optional<MemoryRegistration> registration;
  if (session().rank() == 0) registration = register_memory(pages.bytes());
  over(pages.as<float>()).fill(session().rank() + 1);
  communicator->all_reduce(over(pages.as<float>()), ReduceOp::kSum);
  EXPECT_EQ(pages.as<float>().back(), sum_of_ranks());
}

TEST(RegisteredMemory, IsLeftAloneBeyondItsEnd) {
  // The tensor begins in the range and ends beyond it: it must count as private.
  const auto communicator = make_communicator();
  const MappedPages pages((4 << 20) / page_bytes());
  const MemoryRegistration registration = register_memory(pages.bytes().first(pages.bytes().size() / 2));
  const Tensor tensor = over(pages.as<float>());
  tensor.fill(session().rank() + 1);
  communicator->all_reduce(tensor, ReduceOp::kSum);
  expect_sum_of_private(*communicator, 4 << 20);
  EXPECT_TRUE(bitwise_equal(tensor, filled(static_cast<std::int64_t>(tensor.elements()), sum_of_ranks())));
}

TEST(RegisteredMemory, IsRecognisedInImportsFromDlpack) {
  const auto communicator = make_communicator();
  const MappedPages pages((4 << 20) / page_bytes());
  const MemoryRegistration registration = register_memory(pages.bytes());
  const Tensor tensor = from_dlpack(to_dlpack(over(pages.as<float>())));
  tensor.fill(1);
  communicator->all_reduce(tensor, ReduceOp::kSum);
  expect_direct_sum(*communicator, 4 << 20);
  EXPECT_EQ(pages.as<float>().back(), static_cast<float>(session().size()));
}

TEST(RegisteredMemory, CarriesMessages) {
  if (is_alone()) GTEST_SKIP() << "nobody else";
  const auto communicator = make_communicator();
  const MappedPages pages((4 << 20) / page_bytes());
  const MemoryRegistration registration = register_memory(pages.bytes());
  const Tensor tensor = over(pages.as<float>());
  const int next = (session().rank() + 1) % session().size();
  const int previous = (session().rank() + session().size() - 1) % session().size();
  tensor.fill(session().rank());
  const Tensor received = Tensor::zeros(tensor.shape(), tensor.dtype());
  Work sending = communicator->send_async(tensor, next);
  communicator->receive(received, previous);
  sending.wait();
  EXPECT_EQ(received.span<float>().back(), static_cast<float>(previous));
}

TEST(RegisteredMemory, MayGoBackOnceItsWorksHaveEnded) {
  const auto communicator = make_communicator();
  const MappedPages pages((4 << 20) / page_bytes());
  const Tensor tensor = over(pages.as<float>());
  static_cast<void>(register_memory(pages.bytes()));
  meet();
  const NodeHeap::Statistics before = NodeHeap::of_this_process()->statistics();
  for (int i = 0; i < 100; ++i) {
    std::optional<MemoryRegistration> registration = register_memory(pages.bytes());
    tensor.fill(1);
    Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
    work.wait();
    registration.reset();  // while the Work is still held
    ASSERT_EQ(pages.as<float>().back(), static_cast<float>(session().size()));
  }
  EXPECT_EQ(NodeHeap::of_this_process()->statistics().used_bytes, before.used_bytes) << "blocks were kept";
}

TEST(RegisteredMemory, StaysInTheHeapWhileACallIsInFlight) {
  if (is_alone()) GTEST_SKIP() << "nobody to wait for";
  const auto communicator = make_communicator();
  const MappedPages pages((4 << 20) / page_bytes());
  const Tensor tensor = over(pages.as<float>());
  tensor.fill(session().rank() + 1);
  std::optional<MemoryRegistration> registration = register_memory(pages.bytes());
  if (session().rank() == 0) {
    // The others start when this member has given its memory up, too early.
    Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
    ::testing::internal::CaptureStderr();
    registration.reset();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("in flight"));
    meet();
    work.wait();
  } else {
    meet();
    communicator->all_reduce(tensor, ReduceOp::kSum);
  }
  EXPECT_EQ(pages.as<float>().front(), sum_of_ranks());
  EXPECT_EQ(pages.as<float>().back(), sum_of_ranks());
}

TEST(RegisteredMemory, MayBeOwnedByItsTensor) {
  const auto communicator = make_communicator();
  const MappedPages pages((4 << 20) / page_bytes());
  {
    const Tensor tensor =
        Tensor::wrap(pages.as<float>(), {static_cast<std::int64_t>(pages.as<float>().size())},
                     std::make_shared<MemoryRegistration>(register_memory(pages.bytes())));
    tensor.fill(1);
    communicator->all_reduce(tensor, ReduceOp::kSum);
    expect_direct_sum(*communicator, 4 << 20);
  }
  EXPECT_EQ(pages.as<float>().back(), static_cast<float>(session().size()));
}

}  // namespace
}  // namespace cohort
