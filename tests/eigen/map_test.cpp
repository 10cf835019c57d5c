#include <cohort/eigen/map.h>

#include <memory>
#include <utility>

#include <gmock/gmock.h>

#include <cohort/eigen/tensor_map.h>

namespace cohort::eigen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor counted(const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(shape, DType::kFloat32);
  float next = 0;
  for (float& value : tensor.span<float>()) value = next++;
  return tensor;
}

template <class Tested>
concept TakesTemporaries = requires(Tested&& tensor) {
  as_matrix<float>(std::forward<Tested>(tensor));
};
static_assert(TakesTemporaries<const Tensor&> && !TakesTemporaries<Tensor>,
              "a map must not outlive its tensor");

TEST(AsMatrix, HasTheRowsOfTheTensor) {
  const Tensor tensor = counted({2, 3});
  const auto matrix = as_matrix<float>(tensor);
  ASSERT_EQ(matrix.rows(), 2);
  ASSERT_EQ(matrix.cols(), 3);
  EXPECT_EQ(matrix(1, 0), 3);
  EXPECT_EQ(matrix(0, 2), 2);
}

TEST(AsMatrix, WritesIntoTheTensor) {
  const Tensor tensor = counted({2, 2});
  as_matrix<float>(tensor) = 2 * as_matrix<const float>(tensor).transpose().eval();
  EXPECT_THAT(tensor.span<float>(), ElementsAre(0, 4, 2, 6));
}

TEST(AsMatrix, IsReadOnlyForConstElements) {
  const Tensor tensor = counted({1, 2});
  static_assert(std::is_same_v<decltype(as_matrix<const float>(tensor).data()), const float*>);
  EXPECT_EQ(as_matrix<const float>(tensor).sum(), 1);
}

TEST(AsMatrix, ViewsRowsAtTheirPlace) {
  const Tensor rows = counted({4, 2}).rows(1, 3);
  EXPECT_EQ(as_matrix<float>(rows).sum(), 2 + 3 + 4 + 5);
}

TEST(AsMatrix, TakesEmptyTensors) {
  const Tensor tensor = Tensor::zeros({0, 3}, DType::kFloat64);
  EXPECT_EQ(as_matrix<double>(tensor).rows(), 0);
  EXPECT_EQ(as_matrix<double>(tensor).cols(), 3);
}

TEST(AsMatrix, RefusesAnotherTypeOrAnotherNumberOfAxes) {
  const Tensor matrix = counted({2, 2});
  const Tensor vector = counted({4});
  EXPECT_THAT([&] { return as_matrix<double>(matrix).sum(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("float32")));
  EXPECT_THAT([&] { return as_matrix<float>(vector).sum(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("float32[4]: a matrix has two axes")));
}

TEST(AsMatrix, ReadsBothHalfTypes) {
  const Tensor halves = Tensor::full({2, 3}, DType::kFloat16, 1.5);
  const Tensor brains = Tensor::full({2, 3}, DType::kBFloat16, -0.75);
  EXPECT_EQ(static_cast<float>(as_matrix<Eigen::half>(halves)(1, 2)), 1.5f);
  EXPECT_EQ(static_cast<float>(as_matrix<Eigen::bfloat16>(brains)(1, 2)), -0.75f);
  EXPECT_THROW(static_cast<void>(as_matrix<Eigen::half>(brains)), InvalidArgument);
}

TEST(AsVector, HasAllElementsInOrder) {
  const Tensor tensor = counted({2, 1, 2});
  as_vector<float>(tensor) += Eigen::Vector4f(10, 20, 30, 40);
  EXPECT_THAT(tensor.span<float>(), ElementsAre(10, 21, 32, 43));
  EXPECT_EQ(as_vector<const float>(tensor).transpose().cols(), 4);
}

TEST(AsTensorMap, HasTheAxesOfTheTensor) {
  const Tensor tensor = counted({2, 3, 4});
  auto map = as_tensor_map<float, 3>(tensor);
  EXPECT_EQ(map(1, 2, 3), 23);
  EXPECT_EQ(map(1, 0, 2), 14);
  map(0, 1, 0) = -1;
  EXPECT_EQ(tensor.span<float>()[4], -1);
  const Eigen::Tensor<float, 0, Eigen::RowMajor, std::int64_t> sum =
      as_tensor_map<const float, 3>(tensor).sum();
  EXPECT_EQ(sum(), 23 * 24 / 2 - 5);
}

TEST(AsTensorMap, RefusesAnotherNumberOfAxes) {
  const Tensor tensor = counted({2, 3});
  EXPECT_THAT(([&] { return as_tensor_map<float, 3>(tensor).rank(); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("has not 3 axes")));
}

TEST(AsTensor, SharesTheElementsOfAMatrix) {
  RowMajorMatrix<float> matrix(2, 3);
  matrix << 0, 1, 2, 3, 4, 5;
  const Tensor tensor = as_tensor(matrix);
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.data(), reinterpret_cast<std::byte*>(matrix.data()));
  tensor.span<float>()[5] = 9;
  EXPECT_EQ(matrix(1, 2), 9);
}

TEST(AsTensor, OwnsAMatrixThatIsMovedIn) {
  RowMajorMatrix<float> matrix = RowMajorMatrix<float>::Constant(20, 30, 2);
  const float* const elements = matrix.data();
  const Tensor tensor = as_tensor(std::move(matrix)).row(19);
  EXPECT_EQ(tensor.data(), reinterpret_cast<const std::byte*>(elements + 19 * 30)) << "no element was copied";
  EXPECT_EQ(as_vector<float>(tensor).sum(), 60);
}

TEST(AsTensor, KeepsTheOwnerOfTheMemory) {
  auto matrix = std::make_shared<RowMajorMatrix<double>>(2, 2);
  const std::weak_ptr<RowMajorMatrix<double>> watch = matrix;
  Tensor tensor = as_tensor(*matrix, matrix);
  matrix.reset();
  EXPECT_FALSE(watch.expired());
  tensor = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(AsTensor, IsTheTransposeOfAColumnMajorMatrix) {
  Eigen::MatrixXf matrix(2, 3);
  matrix << 0, 1, 2, 3, 4, 5;
  const Tensor tensor = as_tensor(matrix.transpose());
  EXPECT_EQ(tensor.shape(), (Shape{3, 2}));
  EXPECT_THAT(tensor.span<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(AsTensor, HasOneAxisForVectorsAndTwoForArrays) {
  Eigen::VectorXi vector = Eigen::VectorXi::LinSpaced(4, 1, 4);
  Eigen::Array<double, 2, 2, Eigen::RowMajor> array;
  array << 1, 2, 3, 4;
  EXPECT_EQ(as_tensor(vector).shape(), (Shape{4}));
  EXPECT_THAT(as_tensor(vector.segment(1, 2)).span<int>(), ElementsAre(2, 3));
  EXPECT_EQ(as_tensor(array).shape(), (Shape{2, 2}));
  EXPECT_EQ(as_tensor(Eigen::Matrix<Eigen::half, 1, 3>()).dtype(), DType::kFloat16);
  EXPECT_EQ(as_tensor(Eigen::Matrix<Eigen::bfloat16, 1, 3>()).dtype(), DType::kBFloat16);
}

TEST(AsTensor, TakesWholeRowsOfAMatrix) {
  RowMajorMatrix<float> matrix = as_matrix<float>(std::as_const(*std::make_unique<Tensor>(counted({4, 2}))));
  EXPECT_THAT(as_tensor(matrix.middleRows(1, 2)).span<float>(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(as_tensor(matrix.row(3)).span<float>(), ElementsAre(6, 7));
  EXPECT_EQ(as_tensor(matrix.topRows(0)).shape(), (Shape{0, 2}));
}

TEST(AsTensor, RefusesPartsWithGaps) {
  RowMajorMatrix<float> matrix(4, 2);
  EXPECT_THAT([&] { return as_tensor(matrix.leftCols(1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("[4, 1], whose elements do not lie side by side")));
  EXPECT_THAT([&] { return as_tensor(matrix.col(1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("strides 1 and 2")));
}

}  // namespace
}  // namespace cohort::eigen
