#include "device/memory_limits.h"

#include <sstream>

#include <gtest/gtest.h>

namespace cohort {
namespace {

TEST(AvailableMemory, IsOneOfTheLinesOfTheSystem) {
  std::istringstream meminfo(
      "MemTotal:       24000000 kB\nMemFree:         1000 kB\nMemAvailable:    2000 kB\n");
  EXPECT_EQ(parse_available_memory(meminfo), 2000u * 1024);
}

TEST(AvailableMemory, IsUnknownWhereTheSystemDoesNotTell) {
  std::istringstream old("MemTotal:       24000000 kB\nMemFree:         1000 kB\n");
  EXPECT_EQ(parse_available_memory(old), std::nullopt);
  std::istringstream nothing("");
  EXPECT_EQ(parse_available_memory(nothing), std::nullopt);
}

}  // namespace
}  // namespace cohort
