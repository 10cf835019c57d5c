// The node heap: blocks, their reuse, and what another mapping of the file sees.
#include "device/node_heap.h"

#include <sys/mman.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>

namespace cohort {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

NodeHeap& heap() { return *NodeHeap::of_this_process(); }

TEST(NodeHeap, IsWhereTensorsLive) {
  const Tensor tensor = Tensor::zeros({100}, DType::kFloat32);
  EXPECT_TRUE(heap().offset_of(tensor.data(), tensor.bytes()).has_value());
  float elsewhere = 0;
  EXPECT_FALSE(heap().offset_of(reinterpret_cast<std::byte*>(&elsewhere), sizeof elsewhere).has_value());
}

TEST(NodeHeap, IsNotWherePrivateTensorsLive) {
  const std::size_t before = heap().statistics().used_bytes;
  for (const std::size_t elements : {std::size_t{0}, std::size_t{100}, kHugePage}) {
    const Tensor tensor = Tensor::wrap(allocate_private(elements * sizeof(float), Device()), 0,
                                       {static_cast<std::int64_t>(elements)}, DType::kFloat32);
    tensor.fill(1);
    EXPECT_FALSE(heap().offset_of(tensor.data(), tensor.bytes()).has_value()) << elements;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % kAlignment, 0u);
  }
  EXPECT_EQ(heap().statistics().used_bytes, before);
  EXPECT_THROW(static_cast<void>(allocate_private(8, Device(DeviceKind::kCuda, 0))), Unavailable);
}

TEST(NodeHeap, IsSeenThroughAnotherMappingOfItsFile) {
  void* mapped = mmap(nullptr, heap().bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      heap().descriptor(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const Tensor tensor = Tensor::from({1.0f, 2.0f});
  float seen[2];
  std::memcpy(seen, static_cast<std::byte*>(mapped) + heap().offset_of(tensor.data(), tensor.bytes()).value(),
              sizeof seen);
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 2));
  munmap(mapped, heap().bytes());
}

TEST(NodeHeap, HandsOutBlocksThatDoNotOverlap) {
  std::mt19937 random(7);
  struct Block {
    std::byte* data;
    std::size_t bytes;
    int mark;
  };
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (!blocks.empty() && random() % 3 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Block block = blocks.back();
      blocks.pop_back();
      for (const std::size_t at : {std::size_t{0}, block.bytes - 1})
        ASSERT_EQ(block.data[at], static_cast<std::byte>(block.mark)) << block.bytes << " bytes";
      heap().release(block.data, block.bytes);
    } else {
      const std::size_t bytes = 1 + random() % (std::size_t{1} << (random() % 20));
      std::byte* data = heap().allocate(bytes);
      ASSERT_NE(data, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
      std::memset(data, i, bytes);
      blocks.push_back({data, bytes, i});
    }
  }
  for (const Block& block : blocks) heap().release(block.data, block.bytes);
}

TEST(NodeHeap, DoesNotGrowInASteadyLoop) {
  const auto step = [] {
    for (const std::int64_t elements : {1, 1000, 70'000, 3'000'000})
      static_cast<void>(Tensor::zeros({elements}, DType::kFloat32));
  };
  step();
  const NodeHeap::Statistics before = heap().statistics();
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(heap().statistics().growths, before.growths);
  EXPECT_EQ(heap().statistics().used_bytes, before.used_bytes);
}

TEST(NodeHeap, BeginsLargeBlocksAtAHugePage) {
  for (const std::size_t bytes : {kHugePage, kHugePage + 1, 5 * kHugePage}) {
    std::byte* block = heap().allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(heap().offset_of(block, bytes).value() % kHugePage, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % kHugePage, 0u);
    heap().release(block, bytes);
  }
}

TEST(NodeHeap, ServesManyThreads) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (int i = 0; i < 500; ++i) {
        const Tensor tensor = Tensor::full({1 + i}, DType::kInt32, thread);
        ASSERT_EQ(tensor.span<std::int32_t>().back(), thread);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NodeHeap, RefusesWhatCannotFit) { EXPECT_EQ(heap().allocate(heap().bytes() + 1), nullptr); }

}  // namespace
}  // namespace cohort
