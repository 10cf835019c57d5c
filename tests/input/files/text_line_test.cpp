#include <cohort/input/files/text_line.h>

#include <unistd.h>

#include <cstring>
#include <thread>

#include <gmock/gmock.h>

#include "files.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

std::vector<std::string> lines_of(const std::string& text) {
  const TemporaryFolder folder;
  return all_of(text_line_dataset({folder.file("text", text)}));
}

TEST(TextLine, EndsAtANewline) {
  EXPECT_THAT(lines_of("one\ntwo\n"), ElementsAre("one", "two"));
  EXPECT_THAT(lines_of("one\ntwo"), ElementsAre("one", "two"));
  EXPECT_THAT(lines_of("\n\none"), ElementsAre("", "", "one"));
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
}

TEST(TextLine, MayComeFromAnotherSystem) {
  EXPECT_THAT(lines_of("one\r\ntwo\r\n"), ElementsAre("one", "two"));
}

TEST(TextLine, KeepsItsBytes) {
  const std::string bytes("\0 \xff\t\r x", 7);
  EXPECT_THAT(lines_of(bytes + "\n" + bytes), ElementsAre(bytes, bytes));
}

TEST(TextLine, MayBeLongerThanAnyBuffer) {
  std::vector<std::string> lines;
  std::string text;
  for (const int length : {5, 300'000, 0, 262'143, 262'144, 262'145, 3'000'000, 7}) {
    lines.emplace_back(static_cast<std::size_t>(length), static_cast<char>('a' + lines.size()));
    text += lines.back() + "\n";
  }
  EXPECT_EQ(lines_of(text), lines);
}

TEST(TextLine, IsNotACompressedFile) {
  for (const std::string start : {"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "BZh91AY&SY", "\xfd\x37zXZ"})
    EXPECT_THAT([&] { return lines_of(start + "\nmore"); },
                ThrowsMessage<DataLoss>(HasSubstr("so unpack it")));
  EXPECT_THAT(lines_of("BZh is text\n"), ElementsAre("BZh is text"));
}

TEST(TextLine, ComesFromPipesToo) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "one\ntwo", 7), 7);
  ::close(ends[1]);
  EXPECT_THAT(all_of(text_line_dataset({"/proc/self/fd/" + std::to_string(ends[0])})),
              ElementsAre("one", "two"));
  ::close(ends[0]);
}

TEST(TextLine, WaitsForWhoeverWritesToAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::jthread writer([&] {
    for (const char* part : {"one\nt", "wo", "\nthree"}) {
      EXPECT_GT(::write(ends[1], part, std::strlen(part)), 0);
      std::this_thread::yield();
    }
    ::close(ends[1]);
  });
  EXPECT_THAT(all_of(text_line_dataset({"/proc/self/fd/" + std::to_string(ends[0])})),
              ElementsAre("one", "two", "three"));
  writer.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace cohort::testing
