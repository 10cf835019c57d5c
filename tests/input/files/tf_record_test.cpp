#include <cohort/input/files/tf_record.h>

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "files.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void write_records(const std::string& path, const std::vector<std::string>& records) {
  TfRecordWriter writer(path);
  for (const std::string& record : records) writer.write(std::as_bytes(std::span(record)));
  writer.close();
}

class TfRecord : public ::testing::Test {
 protected:
  [[nodiscard]] std::string write(const std::vector<std::string>& records) const {
    std::string path = folder_.path("records");
    write_records(path, records);
    return path;
  }
  /// Reads a file of these bytes.
  [[nodiscard]] auto reading(const std::string& bytes) const {
    return [this, bytes] { return texts_of(tf_record_dataset({folder_.file("changed", bytes)})); };
  }

  TemporaryFolder folder_;
};

TEST_F(TfRecord, ComesBackAsItWasWritten) {
  const std::vector<std::string> records{"first", "", std::string("\0\xff", 2), std::string(100'000, 'x')};
  const auto elements = all_of(tf_record_dataset({write(records)}));
  ASSERT_EQ(elements.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(elements[i].dtype(), DType::kUInt8);
    EXPECT_EQ(elements[i].shape(), (Shape{static_cast<std::int64_t>(records[i].size())}));
    EXPECT_EQ(text_of(elements[i]), records[i]);
  }
}

// Checksums computed bit by bit, elsewhere: the format is TensorFlow's, and not what this library takes it
// for.
TEST_F(TfRecord, IsTheFormatOfOthers) {
  using namespace std::string_literals;
  const std::string abc =
      "\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
      "abc"
      "\x6e\x57\xf1\x21"s;
  EXPECT_THAT(texts_of(tf_record_dataset({folder_.file("abc", abc)})), ElementsAre("abc"));
  EXPECT_EQ(bytes_of(write({"abc"})), abc);
}

TEST_F(TfRecord, LiesInTheMappedFile) {
  const auto elements = all_of(tf_record_dataset({write({"one", "two"})}));
  EXPECT_EQ(elements[0].buffer(), elements[1].buffer());
  elements[0].span<std::uint8_t>()[0] = 'O';
  EXPECT_EQ(text_of(elements[0]), "One") << "a tensor may be written to";
  EXPECT_THAT(texts_of(tf_record_dataset({folder_.path("records")})), ElementsAre("one", "two"))
      << "but the file stays as it is";
}

TEST_F(TfRecord, MayBeLongerThanAnyWindow) {
  std::vector<std::string> records;
  records.reserve(40);
  for (int i = 0; i < 40; ++i) {
    records.emplace_back(static_cast<std::size_t>(i) * 9973 * 20 % 3'000'000,
                         static_cast<char>('a' + i % 26));
  }
  EXPECT_EQ(texts_of(tf_record_dataset({write(records)})), records);
}

TEST_F(TfRecord, FileHasARecord) {
  EXPECT_THAT([&] { return texts_of(tf_record_dataset({write({})})); },
              ThrowsMessage<DataLoss>(HasSubstr("the file is empty; write it again, or leave it out")));
}

TEST_F(TfRecord, NamesWhereItIsTruncated) {
  const std::string bytes = bytes_of(write({"first", "second"}));
  constexpr std::size_t kSecond = 12 + 5 + 4;
  for (std::size_t length = 1; length < bytes.size(); ++length) {
    if (length == kSecond) continue;  // a whole record is a whole file
    EXPECT_THAT(reading(bytes.substr(0, length)),
                ThrowsMessage<DataLoss>(AllOf(HasSubstr("changed: "),
                                              HasSubstr(length < kSecond ? "at byte 0" : "at byte 21"),
                                              EndsWith("truncated"))))
        << length;
  }
}

TEST_F(TfRecord, NoticesEveryByteThatIsNotAsItWas) {
  const std::string bytes = bytes_of(write({"first", "second"}));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_THAT(reading(changed), ThrowsMessage<DataLoss>(HasSubstr("not match its checksum"))) << at;
  }
}

TEST_F(TfRecord, BelievesNoLengthBeyondTheFile) {
  // A length that lies, with a checksum that does not.
  const std::string record = bytes_of(write({std::string(70'000, 'x')}));
  EXPECT_THAT(
      reading(record.substr(0, 100)),
      ThrowsMessage<DataLoss>(HasSubstr("has 70000 bytes, but the file ends 100 bytes after it begins")));
  using namespace std::string_literals;
  const std::string largest = "\xff\xff\xff\xff\xff\xff\xff\xff\xa6\x7b\x11\x3a"s + std::string(8, '\0');
  EXPECT_THAT(reading(largest), ThrowsMessage<DataLoss>(HasSubstr("truncated")));
}

TEST_F(TfRecord, GoesOnAfterADamagedRecord) {
  std::string bytes = bytes_of(write({"first", "second", "third"}));
  bytes[12] = 'F';
  const auto elements = tf_record_dataset({folder_.file("changed", bytes)}).node()->iterate(detail::Pass(0));
  EXPECT_THROW(static_cast<void>(elements->next()), DataLoss);
  EXPECT_EQ(text_of(elements->next().value()), "second");
}

TEST_F(TfRecord, EndsWhereALengthIsDamaged) {
  std::string bytes = bytes_of(write({"first", "second"}));
  bytes[0] = '\x06';
  const auto elements = tf_record_dataset({folder_.file("changed", bytes), folder_.path("records")})
                            .node()
                            ->iterate(detail::Pass(0));
  EXPECT_THROW(static_cast<void>(elements->next()), DataLoss);
  EXPECT_EQ(text_of(elements->next().value()), "first") << "of the next file";
}

TEST_F(TfRecord, DoesNotReadWhatItSkips) {
  std::string bytes = bytes_of(write({"first", "second"}));
  bytes[12] = 'F';
  const auto elements = tf_record_dataset({folder_.file("changed", bytes)}).node()->iterate(detail::Pass(0));
  EXPECT_EQ(elements->skip(1), 1);
  EXPECT_EQ(text_of(elements->next().value()), "second");
}

TEST_F(TfRecord, SaysThatAFileIsCompressed) {
  EXPECT_THAT(reading("\x1f\x8b\x08" + std::string(30, 'x')),
              ThrowsMessage<DataLoss>(HasSubstr("compressed with gzip, so unpack it")));
}

TEST_F(TfRecord, WritesToNoPipe) {
  const std::string pipe = folder_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT([&] { TfRecordWriter writer(pipe); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'" + pipe + "'"), HasSubstr("a pipe"))));
}

TEST_F(TfRecord, NamesAFileThatCannotBeWritten) {
  EXPECT_THAT([] { TfRecordWriter writer("/does/not/exist"); },
              ThrowsMessage<Unavailable>(HasSubstr("cannot write '/does/not/exist': No such file")));
  EXPECT_THAT(
      [] {
        TfRecordWriter writer("/dev/full");
        writer.write(Tensor::zeros({100'000}, DType::kUInt8));
        writer.close();
      },
      ThrowsMessage<Unavailable>(HasSubstr("cannot write '/dev/full'")));
}

}  // namespace
}  // namespace cohort::testing
