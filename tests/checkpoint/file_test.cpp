#include "checkpoint/format/file.h"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "largest_file.h"
#include "temporary_folder.h"
#include "thrown.h"

namespace cohort::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LargestFile;
using testing::message_of;
using testing::TemporaryFolder;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(CheckpointFile, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  OutputFile out(folder.path("file"));
  out.write(bytes_of("1234"));
  out.write(bytes_of("56789"));
  out.finish();
  EXPECT_EQ(out.size(), 9);
  EXPECT_EQ(out.checksum(), 0xe3069283);  // the check value of CRC-32C
  EXPECT_EQ(read_text(folder.path("file"), 9), "123456789");
  EXPECT_EQ(checksum_of(InputFile(folder.path("file"))), 0xe3069283);
}

TEST(CheckpointFile, IsNotWrittenOverAnother) {
  const TemporaryFolder folder;
  const auto text = message_of(ErrorCode::kUnavailable, [&] { OutputFile(folder.file("file", "x")); });
  EXPECT_THAT(text, AllOf(HasSubstr(folder.path("file")), HasSubstr("File exists")));
}

TEST(CheckpointFile, SaysWhatCouldNotBeWritten) {
  const TemporaryFolder folder;
  const LargestFile limit(3 << 20);
  OutputFile out(folder.path("file"));
  const std::vector<std::byte> data(4 << 20);
  const auto text = message_of(ErrorCode::kUnavailable, [&] { out.write(data); });
  EXPECT_THAT(text, AllOf(HasSubstr(folder.path("file")), HasSubstr("after 3145728 bytes"),
                          HasSubstr("File too large")));
}

TEST(CheckpointFile, IsNotReadBeyondItsEnd) {
  const TemporaryFolder folder;
  const InputFile file(folder.file("file", "1234"));
  std::array<std::byte, 3> bytes{};
  const auto text = message_of(ErrorCode::kDataLoss, [&] { file.read(2, bytes); });
  EXPECT_THAT(text, AllOf(HasSubstr(file.path()), HasSubstr("has 4 bytes")));
  EXPECT_THAT(message_of(ErrorCode::kDataLoss, [&] { file.read(~std::uint64_t{0}, bytes); }),
              HasSubstr("has 4 bytes"));
}

TEST(CheckpointFile, HasALimitWhereItIsReadAsAWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.file("file", "1234");
  EXPECT_THAT(message_of(ErrorCode::kDataLoss, [&] { (void)read_text(path, 3); }),
              HasSubstr("more than the 3"));
}

}  // namespace
}  // namespace cohort::checkpoint
