#include "profile/profile.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.h"

namespace cohort::bench {
namespace {

using testing::HasSubstr;

Model parsed(const std::string& text) {
  std::istringstream stream(text);
  return parse_model(stream, "models/tiny.csv");
}

std::string complaint_about_model(const std::string& text) {
  try {
    (void)parsed(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Model, ListsItsGradientsLastTensorFirst) {
  const Model model = parsed("name,elements\nfirst,12\nsecond,3\n");
  EXPECT_EQ(model.name, "tiny");
  EXPECT_THAT(model.gradients, testing::ElementsAre(3, 12));
  EXPECT_EQ(model.elements(), 15u);
}

TEST(Model, MayHaveLineEndsOfOtherSystemsAndCommasInNames) {
  EXPECT_THAT(parsed("name,elements\r\na,1\r\n\"b,c\",2\r\n").gradients, testing::ElementsAre(2, 1));
}

TEST(Model, NamesTheLineThatIsWrong) {
  EXPECT_THAT(complaint_about_model(""), HasSubstr("instead of 'name,elements'"));
  EXPECT_THAT(complaint_about_model("a,1\n"), HasSubstr("'a,1' instead of"));
  EXPECT_THAT(complaint_about_model("name,elements\n"), HasSubstr("no tensors"));
  for (const char* line : {"a", "a,", "a,0", "a,-1", "a,1.5", "a,many", "a,99999999999999999999", ""}) {
    EXPECT_THAT(complaint_about_model(std::string("name,elements\nx,1\n") + line + "\n"),
                testing::AllOf(HasSubstr("models/tiny.csv, line 3"), testing::Not(HasSubstr("\n"))))
        << line;
  }
}

TEST(Model, ThatCannotBeReadIsNamed) {
  try {
    (void)read_model("no/such/model.csv");
    FAIL() << "a file that does not exist was read";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no/such/model.csv: cannot be read"));
  }
}

}  // namespace
}  // namespace cohort::bench
