#include <cohort/input/files/fixed_length_record.h>

#include <gmock/gmock.h>

#include "files.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class FixedLengthRecord : public ::testing::Test {
 protected:
  [[nodiscard]] Dataset<Tensor> records(const std::string& bytes,
                                        const FixedLengthRecordOptions& options) const {
    return fixed_length_record_dataset({folder_.file("records", bytes)}, options);
  }

  TemporaryFolder folder_;
};

TEST_F(FixedLengthRecord, IsSoManyBytes) {
  EXPECT_THAT(texts_of(records("aabbcc", {.record_bytes = 2})), ElementsAre("aa", "bb", "cc"));
  EXPECT_THAT(texts_of(records("aabbcc", {.record_bytes = 6})), ElementsAre("aabbcc"));
  EXPECT_THAT(texts_of(records("H", {.record_bytes = 6, .header_bytes = 1})), IsEmpty());
  EXPECT_THAT([&] { return texts_of(records("", {.record_bytes = 6})); },
              ThrowsMessage<DataLoss>(HasSubstr("records: the file is empty")));
}

TEST_F(FixedLengthRecord, LiesBetweenHeaderAndFooter) {
  const FixedLengthRecordOptions options{.record_bytes = 2, .header_bytes = 3, .footer_bytes = 1};
  EXPECT_THAT(texts_of(records("HHHaabbF", options)), ElementsAre("aa", "bb"));
  EXPECT_THAT(texts_of(records("HHHF", options)), IsEmpty());
  EXPECT_EQ(records("HHHaabbF", options).cardinality(), Cardinality::of(2));
}

TEST_F(FixedLengthRecord, LiesInTheMappedFile) {
  const auto elements = all_of(records("aabb", {.record_bytes = 2}));
  EXPECT_EQ(elements[0].data() + 2, elements[1].data());
  elements[0].span<std::uint8_t>()[0] = 'A';
  EXPECT_EQ(bytes_of(folder_.path("records")), "aabb") << "which writing to a tensor does not change";
}

TEST_F(FixedLengthRecord, MayBeOnTheEdgeOfAWindow) {
  constexpr std::int64_t kRecord = 100'003;
  std::string bytes;
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    expected.emplace_back(kRecord, static_cast<char>('0' + i));
    bytes += expected.back();
  }
  EXPECT_EQ(texts_of(records("header" + bytes, {.record_bytes = kRecord, .header_bytes = 6})), expected);
}

TEST_F(FixedLengthRecord, FilesAreWholeNumbersOfRecords) {
  EXPECT_THAT([&] { return texts_of(records("aabbc", {.record_bytes = 2})); },
              ThrowsMessage<DataLoss>(AllOf(HasSubstr("records: 5 bytes"),
                                            HasSubstr("2 records of 2 bytes and 1 bytes more"),
                                            HasSubstr("truncated, or the options"))));
  EXPECT_THAT(
      [&] { return texts_of(records("abc", {.record_bytes = 2, .header_bytes = 2, .footer_bytes = 2})); },
      ThrowsMessage<DataLoss>(HasSubstr("fewer than the header of 2 and the footer of 2")));
}

TEST_F(FixedLengthRecord, NoticesAFileThatBecomesShorter) {
  const std::string path = folder_.file("records", std::string(8 << 20, 'x'));
  const auto elements =
      fixed_length_record_dataset({path}, {.record_bytes = 4 << 20}).node()->iterate(detail::Pass(0));
  ASSERT_TRUE(elements->next());
  std::filesystem::resize_file(path, 1 << 20);
  EXPECT_THAT([&] { return elements->next(); }, ThrowsMessage<DataLoss>(HasSubstr("has become shorter")));
}

// The rest of the page would be read as zeros.
TEST_F(FixedLengthRecord, NoticesAFileThatBecomesShorterWithinAPage) {
  const std::string path = folder_.file("records", std::string(1000, 'x'));
  const auto elements =
      fixed_length_record_dataset({path}, {.record_bytes = 100}).node()->iterate(detail::Pass(0));
  ASSERT_EQ(elements->skip(1), 1);
  std::filesystem::resize_file(path, 900);
  EXPECT_THAT([&] { return elements->next(); }, ThrowsMessage<DataLoss>(HasSubstr("has become shorter")));
}

TEST_F(FixedLengthRecord, RefusesOptionsOutOfRange) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const FixedLengthRecordOptions& options : {FixedLengthRecordOptions{},
                                                  {.record_bytes = -1},
                                                  {.record_bytes = 1, .header_bytes = -1},
                                                  {.record_bytes = 1, .footer_bytes = -1}}) {
    EXPECT_THROW(static_cast<void>(fixed_length_record_dataset({"file"}, options)), InvalidArgument);
  }
  EXPECT_THROW(
      texts_of(records("abc", {.record_bytes = kMost, .header_bytes = kMost, .footer_bytes = kMost})),
      DataLoss);
}

}  // namespace
}  // namespace cohort::testing
