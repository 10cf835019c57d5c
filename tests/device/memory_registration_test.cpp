// What becomes of pages that are moved into the node heap and back; tests/mpi/registered_memory_test.cpp
// has what the other processes of the node make of them.
#include <cohort/device/memory_registration.h>

#include <fcntl.h>
#include <sys/mman.h>

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>

#include "device/node_heap.h"
#include "stopping_page.h"
#include "thrown.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::MappedPages;
using testing::message_of;
using testing::page_bytes;

NodeHeap& heap() { return *NodeHeap::of_this_process(); }

void fill(const MappedPages& pages, int first) {
  const std::span<int> numbers = pages.as<int>();
  std::iota(numbers.begin(), numbers.end(), first);
}

void expect_filled(const MappedPages& pages, int first) {
  for (const int number : pages.as<int>()) ASSERT_EQ(number, first++);
}

std::string refusal(std::span<std::byte> pages) {
  return message_of(ErrorCode::kInvalidArgument, [&] { static_cast<void>(register_memory(pages)); });
}

TEST(MemoryRegistration, KeepsTheContentOnBothWays) {
  for (const std::size_t size : {1u, 3u, 600u}) {
    const MappedPages pages(size);
    fill(pages, 7);
    {
      const MemoryRegistration registration = register_memory(pages.bytes());
      EXPECT_EQ(registration.why_private(), "");
      EXPECT_TRUE(registration.in_node_heap());
      expect_filled(pages, 7);
      fill(pages, 1000);
    }
    expect_filled(pages, 1000);
    EXPECT_FALSE(heap().offset_of(pages.bytes().data(), 1).has_value());
    fill(pages, 3);  // ordinary memory again
    expect_filled(pages, 3);
  }
}

TEST(MemoryRegistration, IsSeenThroughTheHeap) {
  const MappedPages pages(2);
  const MemoryRegistration registration = register_memory(pages.bytes());
  const std::span<std::byte> inner = pages.bytes().subspan(page_bytes() - 8, 16);
  const std::byte* const alias = heap().base() + heap().offset_of(inner.data(), inner.size()).value();
  inner.back() = std::byte{42};
  EXPECT_EQ(alias[15], std::byte{42});
}

TEST(MemoryRegistration, EndsWhereTheRangeEnds) {
  const MappedPages pages(3);
  const MemoryRegistration registration = register_memory(pages.bytes().subspan(page_bytes(), page_bytes()));
  const std::byte* const begin = pages.bytes().data() + page_bytes();
  EXPECT_TRUE(heap().offset_of(begin, page_bytes()).has_value());
  EXPECT_TRUE(heap().offset_of(begin + page_bytes() - 1, 1).has_value());
  EXPECT_FALSE(heap().offset_of(begin, page_bytes() + 1).has_value());
  EXPECT_FALSE(heap().offset_of(begin - 1, 1).has_value());
  EXPECT_FALSE(heap().offset_of(begin - 1, 2).has_value());
  EXPECT_FALSE(heap().offset_of(begin + page_bytes(), 1).has_value());
}

TEST(MemoryRegistration, TakesPartsOfAnAllocation) {
  std::vector<int> numbers(5 * page_bytes() / sizeof(int), 5);
  void* begin = numbers.data();
  std::size_t room = numbers.size() * sizeof(int);
  ASSERT_NE(std::align(page_bytes(), page_bytes(), begin, room), nullptr);
  {
    const MemoryRegistration registration =
        register_memory({static_cast<std::byte*>(begin), room / page_bytes() * page_bytes()});
    EXPECT_TRUE(registration.in_node_heap());
    std::ranges::fill(numbers, 6);
  }
  EXPECT_EQ(numbers, std::vector<int>(numbers.size(), 6));
}

TEST(MemoryRegistration, MovesWithItsHandle) {
  const MappedPages first(1);
  const MappedPages second(1);
  std::optional<MemoryRegistration> kept;
  {
    MemoryRegistration registration = register_memory(first.bytes());
    kept = std::move(registration);
  }
  EXPECT_TRUE(heap().offset_of(first.bytes().data(), 1).has_value());
  kept = register_memory(second.bytes());
  EXPECT_FALSE(heap().offset_of(first.bytes().data(), 1).has_value());
  EXPECT_TRUE(heap().offset_of(second.bytes().data(), 1).has_value());
}

TEST(MemoryRegistration, RefusesWhatIsNoRangeOfPages) {
  const MappedPages pages(2);
  EXPECT_THAT(refusal({}), HasSubstr("no pages"));
  EXPECT_THAT(refusal({pages.bytes().data(), std::size_t{0}}), HasSubstr("no pages"));
  EXPECT_THAT(refusal(pages.bytes().subspan(64, page_bytes())), HasSubstr("whole pages"));
  EXPECT_THAT(refusal(pages.bytes().first(100)), HasSubstr("whole pages"));
  EXPECT_THAT(refusal({pages.bytes().data(), std::size_t{0} - page_bytes()}), HasSubstr("beyond the end"));
}

TEST(MemoryRegistration, RefusesWhatOverlaps) {
  const MappedPages pages(4);
  const MemoryRegistration registration =
      register_memory(pages.bytes().subspan(page_bytes(), 2 * page_bytes()));
  EXPECT_THAT(refusal(pages.bytes()), HasSubstr("registered already"));
  EXPECT_THAT(refusal(pages.bytes().first(2 * page_bytes())), HasSubstr("registered already"));
  EXPECT_THAT(refusal(pages.bytes().last(2 * page_bytes())), HasSubstr("registered already"));
  EXPECT_THAT(refusal(pages.bytes().subspan(page_bytes(), page_bytes())), HasSubstr("registered already"));
  const MemoryRegistration neighbour = register_memory(pages.bytes().first(page_bytes()));
  EXPECT_TRUE(neighbour.in_node_heap());
}

TEST(MemoryRegistration, RefusesMemoryThatMayNotBeWrittenOrIsNotThere) {
  const MappedPages pages(3);
  const std::span<std::byte> middle = pages.bytes().subspan(page_bytes(), page_bytes());
  ASSERT_EQ(::mprotect(middle.data(), middle.size(), PROT_READ), 0);
  EXPECT_THAT(refusal(pages.bytes()), HasSubstr("both read and written"));
  ASSERT_EQ(::munmap(middle.data(), middle.size()), 0);
  EXPECT_THAT(refusal(pages.bytes()), HasSubstr("not mapped"));
  EXPECT_THAT(refusal(middle), HasSubstr("not mapped"));
  // A refusal leaves nothing behind.
  EXPECT_TRUE(register_memory(pages.bytes().first(page_bytes())).in_node_heap());
}

TEST(MemoryRegistration, RefusesTheHeapItself) {
  const std::size_t bytes = std::size_t{2} << 20;
  std::byte* block = heap().allocate(bytes);
  ASSERT_NE(block, nullptr);
  EXPECT_THAT(refusal({block, bytes}), HasSubstr("the node heap already"));
  heap().release(block, bytes);
}

TEST(MemoryRegistration, LeavesPrivateWhatCannotBeMoved) {
  const MappedPages shared(1, MAP_SHARED);
  const MemoryRegistration of_shared = register_memory(shared.bytes());
  EXPECT_FALSE(of_shared.in_node_heap());
  EXPECT_THAT(of_shared.why_private(), HasSubstr("shared mapping"));

  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  void* mapped = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  ::close(file);
  ASSERT_NE(mapped, MAP_FAILED);
  {
    const MemoryRegistration of_file = register_memory({static_cast<std::byte*>(mapped), page_bytes()});
    EXPECT_THAT(of_file.why_private(), HasSubstr("memory_registration_test"));
  }
  ::munmap(mapped, page_bytes());

  alignas(65536) std::byte local[65536];
  EXPECT_THAT(register_memory(local).why_private(), HasSubstr("stack"));
}

TEST(MemoryRegistration, LeavesPrivateWhatTheHeapHasNoRoomFor) {
  const std::size_t bytes = heap().bytes() + page_bytes();
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  {
    const MemoryRegistration registration = register_memory({static_cast<std::byte*>(memory), bytes});
    EXPECT_THAT(registration.why_private(), HasSubstr("no room"));
  }
  ::munmap(memory, bytes);
}

TEST(MemoryRegistration, TakesNoMemoryInALoop) {
  const MappedPages pages(5);
  fill(pages, 0);
  static_cast<void>(register_memory(pages.bytes()));
  const NodeHeap::Statistics before = heap().statistics();
  for (int i = 0; i < 1000; ++i) {
    const MemoryRegistration registration = register_memory(pages.bytes());
    ASSERT_TRUE(registration.in_node_heap());
    ++pages.as<int>().front();
  }
  EXPECT_EQ(pages.as<int>().front(), 1000);
  EXPECT_EQ(heap().statistics().used_bytes, before.used_bytes);
  EXPECT_EQ(heap().statistics().growths, before.growths);
}

TEST(MemoryRegistration, EndsBeforeUnmappingWithoutTheContent) {
  const std::size_t used_before = heap().statistics().used_bytes;
  {
    const MappedPages pages(600);
    MemoryRegistration registration = register_memory(pages.bytes());
    ASSERT_TRUE(registration.in_node_heap());
    // Whoever reads the content would end here.
    ASSERT_EQ(::mprotect(pages.bytes().data(), pages.bytes().size(), PROT_NONE), 0);
    registration.end_before_unmapping();
    EXPECT_FALSE(heap().offset_of(pages.bytes().data(), 1).has_value());
    registration.end_before_unmapping();
  }
  EXPECT_EQ(heap().statistics().used_bytes, used_before);
}

TEST(MemoryRegistration, LeavesWhatWasMappedInItsPlaceAlone) {
  const MappedPages pages(2);
  std::optional<MemoryRegistration> registration = register_memory(pages.bytes());
  // The program breaks its promise.
  ASSERT_NE(::mmap(pages.bytes().data(), pages.bytes().size(), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  fill(pages, 5);
  registration.reset();
  expect_filled(pages, 5);
}

}  // namespace
}  // namespace cohort
