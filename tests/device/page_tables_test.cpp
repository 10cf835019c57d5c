#include "device/node_heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

using testing::HasSubstr;

constexpr std::size_t kGiB = std::size_t{1} << 30;

TEST(PageTables, AreWarnedOfWhereManyProcessesMapMuch) {
  const auto warning = page_table_warning(kGiB, 128);
  ASSERT_TRUE(warning.has_value());
  EXPECT_THAT(*warning, HasSubstr("128 processes of this node may need 32.0 GiB of page tables"));
  EXPECT_THAT(*warning, HasSubstr("heaps of 128.0 GiB"));
  EXPECT_THAT(*warning, HasSubstr("COHORT_HUGE_PAGES"));
}

TEST(PageTables, AreNothingToSpeakOfForFewProcessesOrLittleMemory) {
  EXPECT_FALSE(page_table_warning(64 * kGiB, 5).has_value()) << "below a hundredth";
  EXPECT_TRUE(page_table_warning(64 * kGiB, 6).has_value());
  EXPECT_FALSE(page_table_warning(kGiB / 1024, 128).has_value()) << "32 MiB";
  EXPECT_FALSE(page_table_warning(0, 128).has_value());
}

}  // namespace
}  // namespace cohort
