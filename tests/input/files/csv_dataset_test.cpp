#include <cohort/input/files/csv.h>

#include <array>
#include <tuple>

#include <gmock/gmock.h>

#include "files.h"

namespace cohort::testing {

struct Range {
  float low = 0;
  float high = 0;
};
COHORT_FIELDS(Range, low, high)

struct House {
  std::string street;
  Range price;
  std::optional<int> year;
};
COHORT_FIELDS(House, street, price, year)

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class CsvDataset : public ::testing::Test {
 protected:
  template <class Row>
  [[nodiscard]] std::vector<Row> read(const std::string& text, const CsvOptions& options = {}) const {
    return all_of(csv_dataset<Row>({folder_.file("table.csv", text)}, options));
  }
  template <class Row>
  [[nodiscard]] auto reading(const std::string& text, const CsvOptions& options = {}) const {
    return [this, text, options] { return read<Row>(text, options); };
  }

  TemporaryFolder folder_;
};

TEST_F(CsvDataset, GivesTensors) {
  const auto rows = read<Tensor>("1,2\n3,4\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(describe(rows[0]), "float32[2]");
  EXPECT_THAT(rows[1].span<float>(), ElementsAre(3, 4));
  EXPECT_EQ(describe(read<Tensor>("1;2;3", {.dtype = DType::kInt8, .delimiter = ';'})[0]), "int8[3]");
}

TEST_F(CsvDataset, GivesTensorsThatKeepTheirValues) {
  std::string text;
  for (int row = 0; row < 10'000; ++row) text += std::to_string(row) + ",-1,0.5\n";
  int row = 0;
  for (const Tensor& element : read<Tensor>(text))
    ASSERT_THAT(element.span<float>(), ElementsAre(row++, -1, 0.5));
  EXPECT_EQ(row, 10'000);
}

TEST_F(CsvDataset, GivesNumbersAndText) {
  EXPECT_THAT(read<int>("1\n-2\n"), ElementsAre(1, -2));
  EXPECT_THAT(read<std::string>("one\n two \n"), ElementsAre("one", " two "));
  EXPECT_THAT((read<std::pair<std::string, double>>("a,0.5\n")), ElementsAre(std::pair("a", 0.5)));
  EXPECT_THAT((read<std::tuple<bool, std::int64_t, std::string>>("1,9007199254740993,x\n")),
              ElementsAre(std::tuple(true, 9007199254740993, "x")));
  EXPECT_THAT((read<std::array<std::uint8_t, 3>>("1,2,255\n")), ElementsAre(ElementsAre(1, 2, 255)));
}

TEST_F(CsvDataset, GivesAggregates) {
  const auto houses = read<House>("High Street,100,120.5,1911\nNew Road,80,90,\n");
  ASSERT_EQ(houses.size(), 2u);
  EXPECT_EQ(houses[0].street, "High Street");
  EXPECT_EQ(houses[0].price.high, 120.5F);
  EXPECT_EQ(houses[0].year, 1911);
  EXPECT_EQ(houses[1].year, std::nullopt);
}

TEST_F(CsvDataset, ChoosesColumnsByName) {
  const CsvOptions options{.has_header = true, .columns = {"name", "low", "high", "built"}};
  const auto houses = read<House>("id,built,name,high,low\n7,1911,High Street,120.5,100\n", options);
  ASSERT_EQ(houses.size(), 1u);
  EXPECT_EQ(houses[0].street, "High Street");
  EXPECT_EQ(houses[0].price.low, 100);
  EXPECT_EQ(houses[0].price.high, 120.5F);
  EXPECT_EQ(houses[0].year, 1911);
}

TEST_F(CsvDataset, MayHaveItsColumnsElsewhereInEachFile) {
  const std::string a = folder_.file("a.csv", "x,y\n1,2\n");
  const std::string b = folder_.file("b.csv", "y,z,x\n4,5,3\n");
  const CsvOptions options{.has_header = true, .columns = {"x", "y"}};
  EXPECT_THAT((all_of(csv_dataset<std::pair<int, int>>({a, b}, options))),
              ElementsAre(std::pair(1, 2), std::pair(3, 4)));
}

TEST_F(CsvDataset, TakesQuotedFields) {
  using Row = std::pair<std::string, std::string>;
  EXPECT_THAT(read<Row>("\"a,b\",c\n"), ElementsAre(Row("a,b", "c")));
  EXPECT_THAT(read<Row>("a,\"say \"\"b\"\"\"\n\"\",\"\"\"\"\n"),
              ElementsAre(Row("a", "say \"b\""), Row("", "\"")));
  EXPECT_THAT(read<Row>("\"two\nlines\",\"three\r\n\r\nlines\"\r\nc,d\n"),
              ElementsAre(Row("two\nlines", "three\r\n\r\nlines"), Row("c", "d")));
  EXPECT_THAT(read<Row>("\"# no comment\",b"), ElementsAre(Row("# no comment", "b")));
}

TEST_F(CsvDataset, TellsAMissingFieldFromAnEmptyOne) {
  using Row = std::pair<std::optional<std::string>, std::optional<int>>;
  const auto rows = read<Row>(",\n\"\",5\n");
  EXPECT_EQ(rows[0], Row(std::nullopt, std::nullopt));
  EXPECT_EQ(rows[1], Row("", 5));
  EXPECT_THAT(read<Row>("a,\"\"\n"), ElementsAre(Row("a", std::nullopt)));
  using Whole = std::pair<std::optional<std::string>, int>;
  EXPECT_THAT(reading<Whole>("a,\"\"\n"),
              ThrowsMessage<DataLoss>(HasSubstr("field 2 is '', which is not a number")));
}

TEST_F(CsvDataset, TakesCommentsAsItIsTold) {
  EXPECT_THAT(read<std::string>("#one\ntwo\n", {.comment = '#'}), ElementsAre("two"));
  EXPECT_THAT(read<std::string>("#one\ntwo\n"), ElementsAre("#one", "two"));
  EXPECT_THAT(read<int>("#n\n2\n", {.has_header = true, .columns = {"#n"}}), ElementsAre(2));
  EXPECT_THAT(read<std::string>("#one\n;two\n", {.comment = ';'}), ElementsAre("#one"));
}

TEST_F(CsvDataset, SaysThatALineLooksLikeAComment) {
  const auto advises = ThrowsMessage<DataLoss>(HasSubstr("set comment to '#'"));
  EXPECT_THAT(reading<int>("# a number\n2\n"), advises);
  EXPECT_THAT((reading<std::pair<int, int>>("1,2\n# two numbers\n")), advises);
  EXPECT_THAT(reading<Tensor>("# two numbers\n1,2\n"), advises);
}

TEST_F(CsvDataset, MayHaveNoRow) {
  EXPECT_THAT(read<int>("\n"), IsEmpty());
  EXPECT_THAT(read<int>("x\n", {.has_header = true}), IsEmpty());
  EXPECT_THAT(reading<int>("\n", {.has_header = true}),
              ThrowsMessage<DataLoss>(HasSubstr("no header in the file")));
  EXPECT_THAT(reading<int>(""), ThrowsMessage<DataLoss>(HasSubstr("the file is empty")));
}

TEST_F(CsvDataset, NamesTheLineOfWhatIsWrong) {
  using Row = std::pair<int, std::string>;
  EXPECT_THAT(
      reading<Row>("1,a\n2,\"two\nlines\"\nx,b\n"),
      ThrowsMessage<DataLoss>(AllOf(StartsWith(folder_.path("")), HasSubstr("table.csv:4: field 1 is 'x'"))))
      << "lines count, not rows";
  EXPECT_THAT(reading<Row>("1,a\n2\n"),
              ThrowsMessage<DataLoss>(HasSubstr(":2: 1 fields where the first row has 2")));
  EXPECT_THAT(reading<Row>("i,s\n1,a,b\n", {.has_header = true}),
              ThrowsMessage<DataLoss>(HasSubstr(":2: 3 fields where the header has 2")));
  EXPECT_THAT(reading<Row>("1,a\n2,\"b\n3,c\n"),
              ThrowsMessage<DataLoss>(HasSubstr(":2: a quote is opened, but not closed")));
  EXPECT_THAT(reading<Row>("1,a\"b\"\n"),
              ThrowsMessage<DataLoss>(HasSubstr(":1: field 2 has a quote in its middle")));
  EXPECT_THAT(reading<Row>("1,\"a\"b\n\""),
              ThrowsMessage<DataLoss>(HasSubstr(":1: field 2 has a quote in its middle")));
  EXPECT_THAT(reading<Row>(std::string(1000, '\x01') + ",a"),
              ThrowsMessage<DataLoss>(HasSubstr("\\x01...', which")));
}

TEST_F(CsvDataset, GoesOnAfterARowThatIsWrong) {
  const auto rows =
      csv_dataset<int>({folder_.file("table.csv", "1\ntwo\n3,3\n4\n")}).node()->iterate(detail::Pass(0));
  EXPECT_EQ(rows->next(), 1);
  EXPECT_THROW(static_cast<void>(rows->next()), DataLoss);
  EXPECT_THROW(static_cast<void>(rows->next()), DataLoss);
  EXPECT_EQ(rows->next(), 4);
}

TEST_F(CsvDataset, ComparesItsColumnsWithTheRow) {
  EXPECT_THAT(reading<int>("1,2\n"),
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("table.csv:1: the file has 2 columns, but a row of the program takes 1")));
  EXPECT_THAT(reading<House>("a,b\n", {.has_header = true}),
              ThrowsMessage<InvalidArgument>(HasSubstr("takes 4")));
  EXPECT_THAT(
      reading<int>("a,b\n1,2\n", {.has_header = true, .columns = {"c"}}),
      ThrowsMessage<InvalidArgument>(HasSubstr("table.csv:1: no column is called 'c'; the header has a, b")));
  EXPECT_THAT(reading<int>("a,a\n1,2\n", {.has_header = true, .columns = {"a"}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("several columns are called 'a'")));
}

TEST_F(CsvDataset, GoesOnAfterAFirstRowOfAnotherLength) {
  const auto rows =
      csv_dataset<int>({folder_.file("table.csv", "1,1\n2\n")}).node()->iterate(detail::Pass(0));
  EXPECT_THROW(static_cast<void>(rows->next()), InvalidArgument);
  EXPECT_EQ(rows->next(), 2);
}

TEST_F(CsvDataset, RefusesOptionsThatContradictEachOther) {
  const auto refused = [](const char* text) { return ThrowsMessage<InvalidArgument>(HasSubstr(text)); };
  EXPECT_THAT(reading<int>("", {.columns = {"a"}}), refused("set has_header"));
  EXPECT_THAT(reading<int>("", {.dtype = DType::kInt32}), refused("is for rows that are tensors"));
  EXPECT_THAT(reading<int>("", {.has_header = true, .columns = {"a", "b"}}),
              refused("2 columns are named (a, b), but a row takes 1"));
  for (const char delimiter : {'"', '\n', '\r', '#'})
    EXPECT_THAT(reading<Tensor>("", {.delimiter = delimiter, .comment = '#'}), refused("cannot delimit"));
}

TEST_F(CsvDataset, SkipsRowsUnread) {
  const auto rows =
      csv_dataset<int>({folder_.file("table.csv", "one\n2\n")}).node()->iterate(detail::Pass(0));
  EXPECT_EQ(rows->skip(1), 1);
  EXPECT_EQ(rows->next(), 2);
}

}  // namespace
}  // namespace cohort::testing
