#include "checkpoint/foreign/tensor_rules.h"

#include <numeric>

#include <cohort/base/error.h>

#include "thrown.h"

namespace cohort::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Optional;

TEST(Match, IsOfTheWholeName) {
  EXPECT_THAT(match("a", "a"), Optional(ElementsAre()));
  EXPECT_FALSE(match("a", "ab"));
  EXPECT_FALSE(match("b", "ab"));
  EXPECT_THAT(match("*", ""), Optional(ElementsAre("")));
  EXPECT_THAT(match("*", "a.b/c"), Optional(ElementsAre("a.b/c")));
  EXPECT_THAT(match("layers.*.fc.*", "layers.10.fc.weight"), Optional(ElementsAre("10", "weight")));
  EXPECT_FALSE(match("layers.*.fc.*", "layers.10.fd.weight"));
  EXPECT_THAT(match("*.weight", "a.weight.weight"), Optional(ElementsAre("a.weight")));
  EXPECT_THAT(match("*a*", "bab"), Optional(ElementsAre("b", "b")));
  EXPECT_FALSE(match("", "a"));
  EXPECT_FALSE(match("a[bc]", "ab"));
}

TEST(TensorRules, RenameByTheFirstThatMatches) {
  const std::vector<std::pair<std::string, std::string>> rename{
      {"fc.weight", "dense/kernel"}, {"*.*.weight", "*_*/kernel"}, {"model.*", "*"}};
  TensorRules rules(rename, {});
  EXPECT_EQ(rules.rename("fc.weight"), "dense/kernel");
  EXPECT_EQ(rules.rename("a.b.weight"), "a_b/kernel");
  EXPECT_EQ(rules.rename("model.bias"), "bias");
  EXPECT_EQ(rules.rename("other"), "other");
  rules.require_used("f");
}

TEST(TensorRules, ThatMatchNothingAreErrors) {
  const std::vector<std::pair<std::string, std::string>> rename{{"fd.weight", "dense/kernel"}};
  const std::vector<std::string> transpose{"*.kernel"};
  TensorRules rules(rename, transpose);
  EXPECT_EQ(rules.rename("fc.weight"), "fc.weight");
  EXPECT_FALSE(rules.is_transposed("fc.kernel", "fc.kernel", {3}));
  const std::string text =
      message_of(ErrorCode::kInvalidArgument, [&] { rules.require_used("m.safetensors"); });
  EXPECT_THAT(text, HasSubstr("'m.safetensors'"));
  EXPECT_THAT(text, HasSubstr("rename 'fd.weight', transpose '*.kernel'"));
}

TEST(TensorRules, ThatMakeNoSenseAreErrors) {
  using Rename = std::vector<std::pair<std::string, std::string>>;
  for (const Rename& rename :
       {Rename{{"a", ""}}, Rename{{"", "a"}}, Rename{{"a.*", "b"}}, Rename{{"a", "*"}}})
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { (void)TensorRules(rename, {}); }),
                HasSubstr("rename"));
}

TEST(TensorRules, TransposeMatricesByEitherName) {
  const std::vector<std::string> transpose{"old.weight", "*/kernel", "vector"};
  TensorRules rules({}, transpose);
  EXPECT_TRUE(rules.is_transposed("old.weight", "x", {2, 3}));
  EXPECT_TRUE(rules.is_transposed("x", "dense/kernel", {2, 3}));
  EXPECT_FALSE(rules.is_transposed("x", "norm/kernel", {3}));
  EXPECT_FALSE(rules.is_transposed("x", "y", {2, 3}));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { (void)rules.is_transposed("vector", "v", {3}); }),
              HasSubstr("'vector' cannot be transposed: it is [3]"));
}

TEST(Converted, IsTheTransposeOfEveryDTypeAndShape) {
  for (const Shape& shape : {Shape{1, 1}, {3, 5}, {33, 70}, {64, 32}, {0, 4}, {4, 0}}) {
    for (const DType dtype : kAllDTypes) {
      std::vector<std::int32_t> values(shape.elements());
      std::iota(values.begin(), values.end(), 0);
      for (std::int32_t& value : values) value %= 100;  // which each dtype holds
      const Tensor matrix = Tensor::from(values, shape).cast(dtype);
      const Tensor transpose = converted(matrix, dtype, true);
      ASSERT_EQ(transpose.shape(), transposed(shape));
      for (std::int64_t row = 0; row < shape[0]; ++row)
        for (std::int64_t column = 0; column < shape[1]; ++column)
          ASSERT_EQ(transpose.row(column).row(row).item<double>(),
                    matrix.row(row).row(column).item<double>());
    }
  }
}

TEST(Converted, IsRoundedToTheOtherDType) {
  const Tensor halves =
      Tensor::from(std::vector<float>{0.5F, -3.0F, 1.0F, 2.0F}, {2, 2}).cast(DType::kBFloat16);
  const Tensor wide = converted(halves, DType::kFloat32, true);
  EXPECT_THAT(wide.span<float>(), ElementsAre(0.5F, 1.0F, -3.0F, 2.0F));
}

TEST(ListNames, NamesTheFirst) {
  EXPECT_EQ(list_names(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(list_names(std::vector<std::string>{"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(list_names(std::vector<std::string>{"a", "b", "c", "d", "e", "f"}), "a, b, c, d, e and 1 other");
  EXPECT_EQ(list_names(std::vector<std::string>(105, "a")), "a, a, a, a, a and 100 others");
}

}  // namespace
}  // namespace cohort::checkpoint
