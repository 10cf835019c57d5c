// Rows of a tensor with their places: what fits together, and what they stand for.
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/value/indexed_slices.h>

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor matrix(const std::vector<float>& values, std::int64_t columns) {
  return Tensor::from(std::span<const float>(values),
                      Shape{static_cast<std::int64_t>(values.size()) / columns, columns});
}

template <class Index>
IndexedSlices slices(const std::vector<float>& values, const std::vector<Index>& rows, std::int64_t extent) {
  const auto count = static_cast<std::int64_t>(rows.size());
  return {matrix(values, count == 0 ? 1 : static_cast<std::int64_t>(values.size()) / count),
          Tensor::from(std::span<const Index>(rows), {count}),
          {extent, count == 0 ? 1 : static_cast<std::int64_t>(values.size()) / count}};
}

std::vector<float> elements(const Tensor& tensor) {
  const auto values = tensor.span<float>();
  return {values.begin(), values.end()};
}

TEST(IndexedSlices, StandForATensorThatIsZeroElsewhere) {
  const Tensor dense = densify(slices<std::int64_t>({1, 2, 3, 4}, {3, 0}, 4));
  EXPECT_EQ(dense.shape(), (Shape{4, 2}));
  EXPECT_THAT(elements(dense), ElementsAre(3, 4, 0, 0, 0, 0, 1, 2));
}

TEST(IndexedSlices, AddUpRowsThatAreNamedAgain) {
  EXPECT_THAT(elements(densify(slices<std::int32_t>({1, 2, 4}, {1, 1, 0}, 2))), ElementsAre(4, 3));
}

TEST(IndexedSlices, MayHaveNoRows) {
  EXPECT_THAT(elements(densify(slices<std::int32_t>({}, {}, 3))), ElementsAre(0, 0, 0));
}

TEST(IndexedSlices, AddUpInEveryDtypeThatHasASum) {
  for (const DType dtype : kAllDTypes) {
    const IndexedSlices twice{Tensor::full({2, 1}, dtype, 3), Tensor::from({1, 1}), {2, 1}};
    if (dtype == DType::kBool) {
      EXPECT_THROW(static_cast<void>(densify(twice)), InvalidArgument);
    } else {
      EXPECT_EQ(densify(twice).row(1).item<double>(), 6) << to_string(dtype);
    }
  }
}

TEST(IndexedSlices, AddUp16BitsInFloat32) {
  const Tensor values = Tensor::from({256.0F, 1.0F, 1.0F}).reshape({3, 1});  // 256 + 1 is 256 in bfloat16
  const IndexedSlices often{values.cast(DType::kBFloat16), Tensor::from({1, 1, 1}), {2, 1}};
  EXPECT_EQ(densify(often).dtype(), DType::kBFloat16);
  EXPECT_EQ(densify(often).row(1).item<double>(), 258);
}

TEST(IndexedSlices, MustFitTogether) {
  const auto refused = [](const IndexedSlices& wrong, const std::string& why) {
    EXPECT_THAT([&] { validate(wrong); }, ThrowsMessage<InvalidArgument>(HasSubstr(why)));
  };
  const Tensor values = matrix({1, 2}, 1);
  refused({values, Tensor::from({0.0f, 1.0f}), {3, 1}}, "must be int32 or int64");
  refused({values, Tensor::from({0, 1}).reshape({2, 1}), {3, 1}}, "must have one axis");
  refused({values, Tensor::from({0, 1}), {}}, "a scalar");
  refused({values, Tensor::from({0}), {3, 1}}, "1 rows of [3, 1] are [1, 1]");
  refused({values, Tensor::from({0, 1}), {3, 2}}, "2 rows of [3, 2] are [2, 2]");
  refused({values, Tensor::from({0, 3}), {3, 1}},
          "index 3 at position 1 is not a row of [3, 1]; rows are 0 to 2");
  refused({values, Tensor::from({-1, 0}), {3, 1}}, "index -1 at position 0");
  EXPECT_NO_THROW(validate({values, Tensor::from({2, 0}), {3, 1}}));
}

TEST(IndexedSlices, ConcatenateInOrderAndKeepDuplicates) {
  const std::vector parts{slices<std::int64_t>({1}, {0}, 3), slices<std::int64_t>({2, 3, 4}, {0, 1, 2}, 3)};
  const IndexedSlices all = concatenate(parts);
  EXPECT_THAT(elements(all.values), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(all.indices.span<std::int64_t>(), ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(all.dense_shape, (Shape{3, 1}));
}

TEST(IndexedSlices, ConcatenateOnlyWhatIsAlike) {
  const auto refused = [](const IndexedSlices& odd, const std::string& why) {
    const std::vector parts{slices<std::int64_t>({1}, {0}, 3), odd};
    EXPECT_THAT([&] { return concatenate(parts); }, ThrowsMessage<InvalidArgument>(HasSubstr(why)));
  };
  refused(slices<std::int32_t>({1}, {0}, 3), "number 1 is 1 rows of float32[3, 1] with int32 indices");
  refused(slices<std::int64_t>({1}, {0}, 4), "number 1 is 1 rows of float32[4, 1]");
  EXPECT_THROW(static_cast<void>(concatenate(std::vector<IndexedSlices>())), InvalidArgument);
}

TEST(IndexedSlices, Print) {
  std::ostringstream stream;
  stream << slices<std::int32_t>({1, 2}, {4, 0}, 5);
  EXPECT_EQ(stream.str(),
            "IndexedSlices(values=float32[2, 1] {1, 2}, indices=int32[2] {4, 0}, dense_shape=[5, 1])");
  EXPECT_EQ(describe(slices<std::int32_t>({1, 2}, {4, 0}, 5)), "2 rows of float32[5, 1]");
}

}  // namespace
}  // namespace cohort::testing
