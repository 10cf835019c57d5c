#include "option_values.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.h"

namespace cohort::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string complaint_about_value(const std::string& text) {
  try {
    (void)parse_size_range(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SizeRange, GoesFromTheSmallestToTheLargestInStepsOfFour) {
  EXPECT_THAT(sizes_in(parse_size_range("4:1K")), ElementsAre(4, 16, 64, 256, 1024));
}

TEST(SizeRange, DefaultSweepEndsAt64M) {
  const auto sizes = sizes_in(parse_size_range("4:64M"));
  EXPECT_EQ(sizes.size(), 13u);
  EXPECT_EQ(sizes.back(), 64u << 20);
}

TEST(SizeRange, StopsBelowALargestSizeThatNoStepMeets) {
  EXPECT_THAT(sizes_in(parse_size_range("8:100")), ElementsAre(8, 32));
}

TEST(SizeRange, TakesASingleSize) { EXPECT_THAT(sizes_in(parse_size_range("3M")), ElementsAre(3u << 20)); }

TEST(SizeRange, TakesSuffixesInEitherCase) {
  EXPECT_EQ(parse_size_range("2k").first, 2048u);
  EXPECT_EQ(parse_size_range("1G").last, std::size_t{1} << 30);
}

TEST(SizeRange, EndsBeforeTheNextStepWouldOverflow) {
  EXPECT_THAT(sizes_in(parse_size_range("17179869183G")), testing::SizeIs(1));
}

TEST(SizeRange, SaysWhichPartIsNotASize) {
  EXPECT_THAT(complaint_about_value("4:abc"),
              testing::AllOf(HasSubstr("--sizes 4:abc"), HasSubstr("'abc'"), HasSubstr("4:64M")));
  for (const char* text :
       {"", ":", "4:", ":4", "4:5:6", "-4", "4 ", " 4", "4.5", "4KB", "4:8:", "0x10", "K"}) {
    EXPECT_THAT(complaint_about_value(text), HasSubstr("is not a size")) << text;
  }
}

TEST(SizeRange, RefusesSizesOfNothingAndBeyondTheAddressSpace) {
  EXPECT_THAT(complaint_about_value("0:4"), HasSubstr("at least 1 byte"));
  EXPECT_THAT(complaint_about_value("17179869184G"), HasSubstr("more than this machine can address"));
  EXPECT_THAT(complaint_about_value("99999999999999999999"), HasSubstr("more than this machine can address"));
}

TEST(SizeRange, OffersTheReversedRange) {
  EXPECT_THAT(complaint_about_value("1M:4"), HasSubstr("write 4:1M"));
}

TEST(FormatSize, IsWhatTheOptionTakes) {
  EXPECT_EQ(format_size(4), "4");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(64u << 20), "64M");
  EXPECT_EQ(format_size(1536), "1536");
  EXPECT_EQ(format_size(std::size_t{2048} << 30), "2048G");
}

}  // namespace
}  // namespace cohort::bench
