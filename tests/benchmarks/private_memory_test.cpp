#include "private_memory.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

#include <gtest/gtest.h>

namespace cohort::bench {
namespace {

TEST(PrivateMemory, IsZeroAndBeginsAtAHugePage) {
  for (const bool huge_pages : {true, false}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, (std::size_t{2} << 20) + 1}) {
      const PrivateMemory memory(bytes, huge_pages);
      EXPECT_EQ(memory.bytes().size(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % (std::size_t{2} << 20), 0u);
      EXPECT_TRUE(std::all_of(memory.bytes().begin(), memory.bytes().end(),
                              [](std::byte byte) { return byte == std::byte{0}; }));
      memory.bytes().back() = std::byte{1};
    }
  }
}

TEST(PrivateMemory, MayBeEmpty) { EXPECT_TRUE(PrivateMemory(0, true).bytes().empty()); }

TEST(PrivateMemory, BeyondTheAddressSpaceIsRefused) {
  EXPECT_THROW(PrivateMemory(std::numeric_limits<std::size_t>::max(), true), std::bad_alloc);
  EXPECT_THROW(PrivateMemory(std::size_t{1} << 62, true), std::bad_alloc);
}

}  // namespace
}  // namespace cohort::bench
