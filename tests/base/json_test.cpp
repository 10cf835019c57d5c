// How JSON is read and written: what is refused, by which words, and what becomes of texts.
#include "base/json.h"

#include <limits>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "thrown.h"

namespace cohort {
namespace {

using Json = nlohmann::json;
using Kind = JsonValue::Kind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

std::string refusal(std::string_view text) {
  return message_of(ErrorCode::kDataLoss, [&] { const JsonDocument document(text, "'f'"); });
}

std::string quoted(std::string_view text, BadUtf8 bad = BadUtf8::kRefuse) {
  std::string out;
  append_quoted(out, text, bad);
  return out;
}

std::string number(double value) {
  std::string out;
  append_number(out, value);
  return out;
}

TEST(ParseJson, SaysWhereAPersonHasWrittenWhat) {
  const auto parsed = [](std::string_view text) {
    return message_of(ErrorCode::kInvalidArgument,
                      [&] { static_cast<void>(parse_json<Json>(text, "the list", "[1]")); });
  };
  EXPECT_EQ(parsed("[1"), "the list is not JSON at byte 3; write [1]");
  EXPECT_EQ(parsed("[1e999]"), "the list has a number that is too large; write [1]");
  EXPECT_EQ(parsed(nested(33)), "the list is nested more than 32 levels deep; write [1]");
  EXPECT_EQ(parse_json<Json>(nested(32), "the list", "[1]").size(), 1u);
  EXPECT_EQ(parse_json<Json>(R"(["[[[[[[[[[[[[[[[[[\"[[[[[[[[[[[[[[[[[["])", "the list", "[1]").size(), 1u);
}

TEST(ReadJson, HasOneErrorForAllThatIsWrong) {
  const auto read = [](std::string_view text) {
    return message_of(ErrorCode::kInvalidArgument, [&] {
      static_cast<void>(
          read_json<Json>(text, "no number", [](const Json& json) { return json.at("n").get<int>(); }));
    });
  };
  EXPECT_THAT(read("{"), AllOf(StartsWith("no number: "), HasSubstr("parse error")));
  EXPECT_THAT(read("{}"), AllOf(StartsWith("no number: "), HasSubstr("'n' not found")));
  EXPECT_THAT(read(R"({"n":"1"})"), StartsWith("no number: "));
  EXPECT_THAT(read(nested(33)), StartsWith("no number: it is nested"));
  EXPECT_EQ(
      read_json<Json>(R"({"n":1})", "no number", [](const Json& json) { return json.at("n").get<int>(); }),
      1);
}

TEST(JsonDocument, HasTheValuesWhereTheyStand) {
  const JsonDocument document(
      " {\"b\" : [1, -2.5e3, [ ], {}] ,\"a\\n\":\"\\u00e9\xC3\xA9\",\"\":{\"c\":null} }\n", "'f'");
  const JsonValue& root = document.root();
  std::vector<std::string_view> names;
  std::vector<std::string_view> values;
  for (const JsonValue& name : root) {
    names.push_back(name.text());
    values.push_back(name.value().text());
  }
  EXPECT_THAT(names, ElementsAre("b", "a\n", ""));
  EXPECT_THAT(values, ElementsAre("[1, -2.5e3, [ ], {}]", "\xC3\xA9\xC3\xA9", R"({"c":null})"));
  std::vector<std::string_view> elements;
  for (const JsonValue& element : *root.find("b")) elements.push_back(element.text());
  EXPECT_THAT(elements, ElementsAre("1", "-2.5e3", "[ ]", "{}"));
  EXPECT_TRUE(root.find("")->find("c")->is(Kind::kWord));
  EXPECT_EQ(root.find("c"), nullptr);
}

TEST(JsonDocument, HasNumbersThatFit) {
  const JsonDocument document("[7,-7,9223372036854775808,1.5,\"7\",1e2]", "'f'");
  std::vector<std::optional<std::int64_t>> numbers;
  for (const JsonValue& element : document.root()) numbers.push_back(element.number<std::int64_t>());
  EXPECT_THAT(numbers, ElementsAre(7, -7, std::nullopt, std::nullopt, std::nullopt, std::nullopt));
}

// As the library does, which read such files before.
TEST(JsonDocument, PassesOverAMarkOfTheOrderOfBytes) {
  EXPECT_EQ(JsonDocument("\xEF\xBB\xBF[1]", "'f'").root().text(), "[1]");
}

TEST(JsonDocument, FindsMembersOfObjectsAlone) {
  const JsonDocument document(R"(["a"])", "'f'");
  EXPECT_EQ(document.root().find("a"), nullptr);
  EXPECT_EQ((*document.root().begin()).find("a"), nullptr);
}

TEST(JsonDocument, CountsNothingByANegativeZero) {
  const JsonDocument document("-0", "'f'");
  EXPECT_EQ(document.root().number<std::int64_t>(), std::nullopt);
  EXPECT_EQ(document.root().number<double>(), -0.0);
}

TEST(JsonDocument, RefusesWhatMayBeDamaged) {
  EXPECT_EQ(refusal(R"({"a":1,"b":2,"a":3})"), "'f' has 'a' twice");
  EXPECT_EQ(refusal(R"([{"a":1,"\u0061":3}])"), "'f' has 'a' twice");
  EXPECT_EQ(refusal(nested(33)), "'f' is nested more than 32 levels deep");
  EXPECT_EQ(JsonDocument(nested(32), "'f'").root().text(), nested(32));
}

// The library says what JSON is, and what is wrong with other texts.
TEST(JsonDocument, TakesWhatTheLibraryTakes) {
  std::string wild = R"({"a":[1,-0,0.5e-3,true,null],"b\u0041\n":"é\"","c":{},"d":""} )";
  for (std::size_t place = 0; place < wild.size(); ++place) {
    for (const char character : std::string("\0\"\\[]{},:0e-. \xFFn", 16)) {
      std::string text = wild;
      text[place] = character;
      const bool is_json = Json::accept(text);
      try {
        const JsonDocument document(text, "'f'");
        EXPECT_TRUE(is_json) << text;
      } catch (const DataLoss& error) {
        if (is_json)
          EXPECT_THAT(error.what(), HasSubstr("twice")) << text;
        else
          EXPECT_THAT(error.what(), StartsWith("'f' is no JSON: [json.exception")) << text;
      }
    }
  }
  for (const std::string_view text : {"", " ", "01", "-", "1.", "1e999", "tru", "nullnull", "[1,]", "{\"a\"}",
                                      "{1:2}", "\"\\x\"", "\"a", "\"\\", "[1 2]", "[1]]"})
    EXPECT_THAT(refusal(text), StartsWith("'f' is no JSON: [json.exception")) << text;
}

TEST(Quoted, IsWhatTheLibraryWrites) {
  for (const std::string_view text :
       {"", "plain", "\"\\/\b\f\n\r\t\x01\x1F\x7F", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"})
    EXPECT_EQ(quoted(text), Json(text).dump());
}

TEST(Quoted, HasAnAnswerToBytesThatAreNoUtf8) {
  for (const std::string_view bad :
       {"\xFF", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { quoted(bad); }), "names of values must be UTF-8");
    EXPECT_TRUE(Json::accept(quoted(bad, BadUtf8::kReplace)));
    EXPECT_TRUE(Json::accept(quoted(bad, BadUtf8::kLatin1)));
  }
  EXPECT_EQ(quoted("a\xFFz", BadUtf8::kReplace), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(quoted("a\xFFz", BadUtf8::kLatin1), "\"a\\u00ffz\"");
}

TEST(Number, HasTheDigitsThatGiveItBack) {
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(1e300), "1e+300");
  EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "\"-Infinity\"");
}

}  // namespace
}  // namespace cohort
