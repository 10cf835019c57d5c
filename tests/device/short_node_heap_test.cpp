// A node heap that has too little room: tensors are private then, which is said once.
#include <sys/resource.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>

#include "device/node_heap.h"

namespace cohort {
namespace {

constexpr std::size_t kFile = std::size_t{64} << 20;

// Before the heap is made: its file cannot become larger.
const bool kLimited = [] {
  const rlimit limit{kFile, kFile};
  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}();

TEST(ShortNodeHeap, GivesPrivateTensorsAndSaysSoOnce) {
  const NodeHeap* heap = NodeHeap::of_this_process();
  ASSERT_NE(heap, nullptr);
  ASSERT_EQ(heap->bytes(), kFile);
  ::testing::internal::CaptureStderr();
  std::vector<Tensor> tensors;
  for (int i = 0; i < 10; ++i) {
    tensors.push_back(Tensor::full({std::int64_t{10} << 20}, DType::kUInt8, i));
    EXPECT_EQ(heap->offset_of(tensors.back().data(), tensors.back().bytes()).has_value(), i < 6) << i;
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, ::testing::HasSubstr("cannot grow"));
  EXPECT_EQ(said.find("cannot grow"), said.rfind("cannot grow"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(tensors[static_cast<std::size_t>(i)].span<std::uint8_t>().back(), i);
}

}  // namespace
}  // namespace cohort
