#include <cohort/input/files/idx.h>

#include <gmock/gmock.h>

#include "files.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

std::string header(int type, const std::vector<std::uint32_t>& extents) {
  std::string bytes{0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) bytes += number_bytes(extent, true);
  return bytes;
}

class Idx : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<Tensor> read(const std::string& bytes) const {
    return all_of(idx_dataset({folder_.file("array", bytes)}));
  }
  [[nodiscard]] auto reading(const std::string& bytes) const {
    return [this, bytes] { return read(bytes); };
  }

  TemporaryFolder folder_;
};

TEST_F(Idx, GivesTheRowsOfBytes) {
  const auto images = read(header(0x08, {2, 2, 3}) + "abcdefABCDEF");
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(describe(images[0]), "uint8[2, 3]");
  EXPECT_EQ(text_of(images[0]), "abcdef");
  EXPECT_EQ(text_of(images[1]), "ABCDEF");
  EXPECT_EQ(images[0].data() + 6, images[1].data()) << "views of the file";
}

TEST_F(Idx, GivesScalarsOfOneAxis) {
  const auto labels = read(header(0x08, {3}) + "\x07\x02\x01");
  ASSERT_EQ(labels.size(), 3u);
  EXPECT_EQ(describe(labels[0]), "uint8[]");
  EXPECT_EQ(labels[1].item<int>(), 2);
}

TEST_F(Idx, TurnsLongerNumbersIntoThisMachinesOrder) {
  EXPECT_THAT(read(header(0x0b, {1, 2}) + number_bytes<std::int16_t>(-2, true) +
                   number_bytes<std::int16_t>(258, true))[0]
                  .span<std::int16_t>(),
              ElementsAre(-2, 258));
  EXPECT_EQ(read(header(0x0c, {1}) + number_bytes<std::int32_t>(-70'000, true))[0].item<int>(), -70'000);
  EXPECT_EQ(read(header(0x0d, {1}) + number_bytes(1.25F, true))[0].item<float>(), 1.25F);
  EXPECT_EQ(read(header(0x0e, {1}) + number_bytes(-0.1, true))[0].item<double>(), -0.1);
  EXPECT_EQ(read(header(0x09, {1}) + "\xff")[0].item<int>(), -1);
}

TEST_F(Idx, MayHaveNoRows) {
  EXPECT_THAT(read(header(0x08, {0})), IsEmpty());
  EXPECT_THAT(read(header(0x08, {0, 28, 28})), IsEmpty());
  EXPECT_EQ(idx_dataset({folder_.path("array")}).cardinality(), Cardinality::of(0));
}

TEST_F(Idx, NamesWhatIsNoIdxFile) {
  EXPECT_THAT(reading("a,b\n1,2\n"), ThrowsMessage<DataLoss>(AllOf(HasSubstr("array: not an IDX file"),
                                                                   HasSubstr("give another file"))));
  EXPECT_THAT(reading(""), ThrowsMessage<DataLoss>(HasSubstr("array: the file is empty")));
  EXPECT_THAT(reading("\x1f\x8b\x08\x08"), ThrowsMessage<DataLoss>(HasSubstr("compressed with gzip")));
  EXPECT_THAT(reading(header(0x0a, {1}) + "x"),
              ThrowsMessage<DataLoss>(HasSubstr("byte 2 is 0x0a, which is not an element type")));
}

TEST_F(Idx, NamesAHeaderThatLies) {
  const std::string two = header(0x08, {2, 3});
  EXPECT_THAT(reading(two + "abcde"),
              ThrowsMessage<DataLoss>(HasSubstr("promises uint8[2, 3], 6 bytes, but 5 bytes follow it")));
  EXPECT_THAT(reading(two + "abcdefg"), ThrowsMessage<DataLoss>(HasSubstr("but 7 bytes follow it")));
  EXPECT_THAT(reading(two.substr(0, 9)),
              ThrowsMessage<DataLoss>(HasSubstr("ends at byte 12, but the file at byte 9")));
  const std::uint32_t most = 0xffffffff;
  EXPECT_THAT(reading(header(0x0e, {most, most, most}) + "abc"),
              ThrowsMessage<DataLoss>(HasSubstr("2^63 or more bytes")));
  EXPECT_THAT(reading(header(0x0e, {1U << 31, 1U << 31, 1U << 2}) + "abc"),
              ThrowsMessage<DataLoss>(HasSubstr("2^63")));
  EXPECT_THAT(reading(header(0x08, {0, most, most, most})), ThrowsMessage<DataLoss>(HasSubstr("2^63")));
  EXPECT_THAT(reading(header(0x08, {most, 0})), ThrowsMessage<InvalidArgument>(HasSubstr("are empty")));
}

TEST_F(Idx, NeedsAxesThatATensorCanHave) {
  EXPECT_THAT(reading(header(0x08, {}) + "x"), ThrowsMessage<InvalidArgument>(HasSubstr("from 1 to 8 axes")));
  EXPECT_THAT(reading(header(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "x"),
              ThrowsMessage<InvalidArgument>(HasSubstr("from 1 to 8 axes")));
}

}  // namespace
}  // namespace cohort::testing
