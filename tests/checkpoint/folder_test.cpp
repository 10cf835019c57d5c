// Files of checkpoints, and the folders that they are in.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>

#include "base/crc32c.h"
#include "checkpoint/format/file.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/safetensors.h"
#include "temporary_folder.h"
#include "thrown.h"

namespace cohort::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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

/// Publishes a checkpoint with one value.
void save(const std::string& folder, std::int64_t step) {
  UnfinishedFolder unfinished(folder, step);
  std::vector<NamedTensor> tensors{{"x", DType::kUInt8, {4}}};
  const std::string begin = begin_safetensors(tensors, {});
  const std::string data = "data";
  OutputFile file(unfinished_path(folder, step) + "/f.safetensors");
  file.write(std::as_bytes(std::span(begin)));
  file.write(std::as_bytes(std::span(data)));
  file.finish();
  Manifest manifest{.step = step};
  manifest.files["f.safetensors"] = {file.size(), file.checksum()};
  manifest.values["x"] = {
      DType::kUInt8, {4}, {{"f.safetensors", "x", 0, 4, detail::crc32c(std::as_bytes(std::span(data)))}}};
  unfinished.publish(manifest);
}

std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : list_checkpoints(folder)) steps.push_back(found.step);
  return steps;
}

TEST(CheckpointFolder, HasCheckpointsByStep) {
  const TemporaryFolder folder;
  const std::string path = folder.path("new/folder");
  EXPECT_THAT(list_checkpoints(path), IsEmpty());
  for (const std::int64_t step : {100, 7, 20}) save(path, step);
  std::filesystem::create_directory(path + "/step-8.unfinished");
  std::filesystem::create_directory(path + "/step-x");
  EXPECT_THAT(steps_in(path), ElementsAre(7, 20, 100));
  EXPECT_THAT(verify_checkpoint(checkpoint_path(path, 20)), IsEmpty());
}

TEST(CheckpointFolder, HasNothingOfWhatWasNotPublished) {
  const TemporaryFolder folder;
  save(folder.path().string(), 1);
  { const UnfinishedFolder given_up(folder.path().string(), 2); }
  EXPECT_THAT(steps_in(folder.path().string()), ElementsAre(1));
  EXPECT_FALSE(std::filesystem::exists(unfinished_path(folder.path().string(), 2)));
}

TEST(CheckpointFolder, IsFreedOfWhatAKilledWriterLeft) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("step-3.unfinished"));
  (void)folder.file("step-3.unfinished/f.safetensors", "half");
  save(folder.path().string(), 3);
  EXPECT_THAT(verify_checkpoint(folder.path("step-3")), IsEmpty());
}

TEST(CheckpointFolder, KeepsTheCheckpointOfAStep) {
  const TemporaryFolder folder;
  save(folder.path().string(), 3);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { save(folder.path().string(), 3); }),
              HasSubstr("step-3' already"));
  EXPECT_THAT(verify_checkpoint(folder.path("step-3")), IsEmpty());
}

TEST(CheckpointFolder, NoticesFilesThatAreNotHere) {
  const TemporaryFolder folder;
  UnfinishedFolder unfinished(folder.path().string(), 1);
  Manifest manifest;
  manifest.files["of-another-worker"] = {10, 0};
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { unfinished.publish(manifest); }),
              HasSubstr("of-another-worker"));
}

TEST(CheckpointFolder, IsVerifiedByteByByte) {
  const TemporaryFolder folder;
  save(folder.path().string(), 1);
  const std::string file = folder.path("step-1/f.safetensors");
  const std::string good = read_text(file, 1000);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    (void)folder.file("step-1/f.safetensors", bad);
    EXPECT_THAT(verify_checkpoint(folder.path("step-1")), ::testing::Not(IsEmpty())) << "byte " << i;
  }
  std::string damaged = good;
  damaged.back() ^= 1;
  (void)folder.file("step-1/f.safetensors", damaged);
  EXPECT_THAT(verify_checkpoint(folder.path("step-1")),
              ElementsAre(HasSubstr("f.safetensors' is damaged"), HasSubstr("value 'x' is damaged")));
  (void)folder.file("step-1/f.safetensors", good.substr(1));
  EXPECT_THAT(verify_checkpoint(folder.path("step-1")), ::testing::Contains(HasSubstr("bytes instead of")));
  std::filesystem::remove(file);
  EXPECT_THAT(verify_checkpoint(folder.path("step-1")), ElementsAre(HasSubstr("No such file")));
  std::filesystem::remove(folder.path("step-1/manifest.json"));
  EXPECT_THAT(verify_checkpoint(folder.path("step-1")), ElementsAre(HasSubstr("manifest.json")));
}

TEST(CheckpointFolder, HasOneWriter) {
  const TemporaryFolder folder;
  {
    const WriterLock lock(folder.path().string());
    const auto text =
        message_of(ErrorCode::kUnavailable, [&] { const WriterLock other(folder.path().string()); });
    EXPECT_THAT(text, AllOf(HasSubstr("process " + std::to_string(::getpid()) + " on host"),
                            HasSubstr("a folder of its own")));
  }
  const WriterLock next(folder.path().string());
}

TEST(CheckpointFolder, SaysThatItCannotBeWrittenTo) {
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "");
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { const WriterLock lock(file + "/below"); }),
              AllOf(HasSubstr(file), HasSubstr("File exists")));
}

TEST(CheckpointFolder, IsRemovedAsAWhole) {
  const TemporaryFolder folder;
  save(folder.path().string(), 1);
  remove_checkpoint(folder.path().string(), 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace cohort::checkpoint
