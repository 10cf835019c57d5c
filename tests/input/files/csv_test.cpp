#include <cohort/input/files/csv.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A file with the given text, as long as this object lives.
class CsvFile {
 public:
  explicit CsvFile(const std::string& text)
      : path_(::testing::TempDir() + "cohort_csv_test_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv") {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~CsvFile() { std::remove(path_.c_str()); }
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Tensor read(const std::string& text, const CsvOptions& options = {}) {
  const CsvFile file(text);
  return read_csv(file.path(), options);
}

auto reading(const std::string& text, const CsvOptions& options = {}) {
  return [text, options] { return read(text, options); };
}

TEST(Csv, IsReadAsAMatrix) {
  const Tensor matrix = read("1,2,3\n4.5,-5,6e2\n");
  EXPECT_EQ(describe(matrix), "float32[2, 3]");
  EXPECT_THAT(matrix.span<float>(), ElementsAre(1, 2, 3, 4.5, -5, 600));
}

TEST(Csv, MayBeginWithAByteOrderMarkAndHaveBlankLines) {
  EXPECT_EQ(describe(read("\xef\xbb\xbf"
                          "1,2\n  \t\n3,4\n \n")),
            "float32[2, 2]");
}

TEST(Csv, MayEndWithoutANewline) {
  EXPECT_THAT(read("1,2\n3,4").span<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(read("7").shape(), (Shape{1, 1}));
}

TEST(Csv, MayComeFromAnotherSystem) {
  EXPECT_THAT(read("1,2\r\n3,4\r\n").span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(Csv, SkipsCommentsAndEmptyLines) {
  EXPECT_THAT(read("# from a sensor\n\n1,2\n\r\n#3,4\n5,6\n\n", {.comment = '#'}).span<float>(),
              ElementsAre(1, 2, 5, 6));
}

TEST(Csv, SkipsTheHeaderWhenThereIsOne) {
  EXPECT_THAT(read("# made by hand\nx,y\n1,2\n", {.has_header = true, .comment = '#'}).span<float>(),
              ElementsAre(1, 2));
  EXPECT_THROW(reading("x,y\n1,2\n")(), DataLoss);
}

TEST(Csv, TakesAnotherDelimiterAndSpacesAroundFields) {
  EXPECT_THAT(read(" 1 ;2; 3 \n", {.delimiter = ';'}).span<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(read("1\t2\n", {.delimiter = '\t'}).span<float>(), ElementsAre(1, 2));
}

TEST(Csv, BecomesAnyDtype) {
  for (const DType dtype : kAllDTypes) {
    const Tensor matrix = read("0,1\n", {.dtype = dtype});
    EXPECT_EQ(matrix.dtype(), dtype);
    EXPECT_EQ(matrix.row(0).row(0).item<double>(), 0) << to_string(dtype);
    EXPECT_EQ(matrix.row(0).row(1).item<double>(), 1) << to_string(dtype);
  }
}

TEST(Csv, ReadsIntegersExactly) {
  const Tensor longest =
      read("9223372036854775807,-9223372036854775808,9007199254740993\n", {.dtype = DType::kInt64});
  EXPECT_THAT(longest.span<std::int64_t>(),
              ElementsAre(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
                          9007199254740993));
  EXPECT_EQ(read("18446744073709551615", {.dtype = DType::kUInt64}).item<std::uint64_t>(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_THAT(read("-128,127", {.dtype = DType::kInt8}).span<std::int8_t>(), ElementsAre(-128, 127));
}

TEST(Csv, ReadsIntegersInOtherNotations) {
  EXPECT_THAT(read("3.0,1e3,-2.50e1", {.dtype = DType::kInt32}).span<std::int32_t>(),
              ElementsAre(3, 1000, -25));
}

TEST(Csv, ReadsNumbersWithASign) {
  EXPECT_THAT(read("+1.5,-2,+3e+1").span<float>(), ElementsAre(1.5, -2, 30));
  EXPECT_THAT(read("+7,-8", {.dtype = DType::kInt64}).span<std::int64_t>(), ElementsAre(7, -8));
}

TEST(Csv, TakesWhatIsTooSmallForTheNearestNumber) {
  const std::string tiny = "1e-400,-1e-400,+0.00001e-999999999999999999999,123e-5000,0e-5000";
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Tensor row = read(tiny, {.dtype = dtype}).cast(DType::kFloat64);
    EXPECT_THAT(row.span<double>(), Each(0)) << to_string(dtype);
  }
  EXPECT_EQ(read("4.9e-324", {.dtype = DType::kFloat64}).item<double>(),
            std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(read("1.4e-45").item<float>(), std::numeric_limits<float>::denorm_min());
  for (const char* large : {"1e400", "-1e400", "123456789e99999999999999999999", "0.1e400"})
    EXPECT_THAT(reading(large, {.dtype = DType::kFloat64}),
                ThrowsMessage<DataLoss>(HasSubstr("cannot hold")));
  EXPECT_THAT(reading("1e-400", {.dtype = DType::kInt32}), ThrowsMessage<DataLoss>(HasSubstr("cannot hold")));
}

TEST(Csv, NamesFileLineAndFieldOfWhatIsNoNumber) {
  const CsvFile file("# comment\n1,2\n\n3,four\n");
  EXPECT_THAT([&] { return read_csv(file.path(), {.comment = '#'}); },
              ThrowsMessage<DataLoss>(file.path() + ":4: field 2 is 'four', which is not a number"));
}

TEST(Csv, RefusesFieldsThatAreNotNumbersThroughout) {
  for (const char* field : {"", " ", "1x", "x1", "1 2", "0x10", "--1", "+-1", "++1", "+", "\"1 2\"", "1e"}) {
    EXPECT_THAT(reading(std::string("0,") + field + "\n"),
                ThrowsMessage<DataLoss>(AllOf(HasSubstr(":1: field 2 is '"), HasSubstr("not a number"))))
        << field;
  }
  EXPECT_THROW(reading("1,2,\n")(), DataLoss) << "a delimiter at the end opens an empty field";
}

TEST(Csv, ReadsNumbersInQuotes) {
  EXPECT_THAT(read("\"1\",2\n3,\" 4\"\n").span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(Csv, SaysThatALineLooksLikeAHeader) {
  EXPECT_THAT(reading("x,y\n1,2\n"), ThrowsMessage<DataLoss>(HasSubstr("names the columns, set has_header")));
}

TEST(Csv, ReadsTheColumnsThatAreNamed) {
  EXPECT_THAT(read("a,b,c\n1,2,3\n4,5,6\n", {.has_header = true, .columns = {"c", "a"}}).span<float>(),
              ElementsAre(3, 1, 6, 4));
  EXPECT_NO_THROW(read("a,b\n1,two\n", {.has_header = true, .columns = {"a"}}))
      << "the others need not be numbers";
  EXPECT_THAT(reading("a,b\n1,two\n", {.has_header = true}),
              ThrowsMessage<DataLoss>(HasSubstr(":2: field 2 (b) is 'two', which is not a number")));
}

TEST(Csv, NamesWhatItsDtypeCannotHold) {
  const std::pair<DType, const char*> cases[] = {
      {DType::kInt8, "128"},
      {DType::kInt8, "-129"},
      {DType::kUInt8, "256"},
      {DType::kUInt16, "-1"},
      {DType::kInt32, "2147483648"},
      {DType::kInt32, "1.5"},
      {DType::kInt32, "nan"},
      {DType::kInt32, "inf"},
      {DType::kInt64, "9223372036854775808"},
      {DType::kInt64, "-9223372036854775809"},
      {DType::kUInt64, "18446744073709551616"},
      {DType::kBool, "2"},
      {DType::kFloat16, "65520"},
      {DType::kBFloat16, "3.4e38"},
      {DType::kFloat32, "1e39"},
      {DType::kFloat64, "1e400"},
  };
  for (const auto& [dtype, field] : cases) {
    EXPECT_THAT(reading(std::string("0\n") + field + "\n", {.dtype = dtype}),
                ThrowsMessage<DataLoss>(HasSubstr(std::string(":2: field 1 is '") + field + "', which " +
                                                  std::string(to_string(dtype)) + " cannot hold")))
        << to_string(dtype);
  }
}

TEST(Csv, TakesWhatIsNotFiniteAsItIs) {
  const Tensor row = read("inf,-inf,nan\n", {.dtype = DType::kFloat16});
  EXPECT_EQ(row.row(0).row(0).item<float>(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(row.row(0).row(1).item<float>(), -std::numeric_limits<float>::infinity());
  EXPECT_NE(row.row(0).row(2).item<float>(), row.row(0).row(2).item<float>());
}

TEST(Csv, NamesARowOfAnotherLength) {
  EXPECT_THAT(reading("1,2\n3,4\n5,6,7\n"),
              ThrowsMessage<DataLoss>(HasSubstr(":3: 3 fields where the first row has 2")));
  EXPECT_THAT(reading("1,2\n3\n"), ThrowsMessage<DataLoss>(HasSubstr(":2: 1 fields")));
}

TEST(Csv, WithoutARowIsAnError) {
  EXPECT_THAT(reading(""), ThrowsMessage<DataLoss>(HasSubstr("the file is empty")));
  for (const char* text : {"\n\n", "# nothing\n"}) {
    EXPECT_THAT(reading(text, {.comment = '#'}), ThrowsMessage<DataLoss>(HasSubstr("no rows of numbers")));
  }
  EXPECT_THROW(reading("x,y\n", {.has_header = true})(), DataLoss);
}

TEST(Csv, NamesAFileThatCannotBeOpened) {
  EXPECT_THAT(
      [] { return read_csv("/does/not/exist.csv"); },
      ThrowsMessage<Unavailable>("cannot open CSV file '/does/not/exist.csv': No such file or directory"));
}

TEST(Csv, IsNotAFolder) {
  EXPECT_THAT([] { return read_csv(::testing::TempDir()); },
              ThrowsMessage<Error>(HasSubstr(::testing::TempDir())));
}

}  // namespace
}  // namespace cohort
