// Tensors that share storage: rows, reshapes, and tensors over memory of others.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// 0, 1, 2, ... in the given shape.
Tensor counting(Shape shape) {
  Tensor tensor = Tensor::uninitialized(shape, DType::kInt32);
  std::int32_t next = 0;
  for (std::int32_t& value : tensor.span<std::int32_t>()) value = next++;
  return tensor;
}

TEST(Rows, AreAViewOfTheSameStorage) {
  const Tensor tensor = counting({4, 3});
  const Tensor middle = tensor.rows(1, 3);
  EXPECT_EQ(middle.shape(), (Shape{2, 3}));
  EXPECT_THAT(middle.span<std::int32_t>(), ElementsAre(3, 4, 5, 6, 7, 8));
  EXPECT_EQ(middle.data(), tensor.data() + 12);
  middle.fill(-1);
  EXPECT_THAT(tensor.span<std::int32_t>(), ElementsAre(0, 1, 2, -1, -1, -1, -1, -1, -1, 9, 10, 11));
}

TEST(Rows, OfRowsCountFromTheView) {
  EXPECT_THAT(counting({6}).rows(2, 6).rows(1, 3).span<std::int32_t>(), ElementsAre(3, 4));
}

TEST(Rows, MayBeNone) {
  const Tensor tensor = counting({4, 3});
  for (const std::int64_t at : {0, 2, 4}) {
    EXPECT_EQ(tensor.rows(at, at).shape(), (Shape{0, 3}));
    EXPECT_EQ(tensor.rows(at, at).dtype(), DType::kInt32);
  }
  EXPECT_EQ(Tensor().rows(0, 0).shape(), Shape{0});
}

TEST(Rows, ThatATensorDoesNotHaveAreNamed) {
  const Tensor tensor = counting({4, 3});
  EXPECT_THAT([&] { return tensor.rows(2, 5); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("rows 2 to 5"), HasSubstr("int32[4, 3]"))));
  EXPECT_THROW(static_cast<void>(tensor.rows(-1, 2)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(tensor.rows(3, 2)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(Tensor::scalar(1.0f).rows(0, 1)), InvalidArgument);
}

TEST(Row, LosesTheOutermostAxis) {
  const Tensor tensor = counting({4, 3});
  EXPECT_EQ(tensor.row(2).shape(), Shape{3});
  EXPECT_THAT(tensor.row(2).span<std::int32_t>(), ElementsAre(6, 7, 8));
  EXPECT_THAT(tensor.row(-1).span<std::int32_t>(), ElementsAre(9, 10, 11));
  EXPECT_EQ(counting({4}).row(3).item<int>(), 3);
  tensor.row(0).fill(5);
  EXPECT_THAT(tensor.rows(0, 1).span<std::int32_t>(), Each(5));
}

TEST(Row, OutOfRangeIsNamed) {
  const Tensor tensor = counting({4, 3});
  EXPECT_THAT([&] { return tensor.row(4); },
              ThrowsMessage<InvalidArgument>(HasSubstr("row 4 is out of range: int32[4, 3] has 4 rows")));
  EXPECT_THROW(static_cast<void>(tensor.row(-5)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(Tensor().row(0)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(Tensor::scalar(1.0f).row(0)), InvalidArgument);
}

TEST(Reshape, IsAViewOfTheSameStorage) {
  const Tensor tensor = counting({4, 3});
  const Tensor flat = tensor.reshape({12});
  EXPECT_EQ(flat.data(), tensor.data());
  flat.span<std::int32_t>()[11] = 99;
  EXPECT_EQ(tensor.row(3).row(2).item<int>(), 99);
  EXPECT_EQ(tensor.reshape(Shape{2, 6}).shape(), (Shape{2, 6}));
}

TEST(Reshape, ComputesOneExtent) {
  const Tensor tensor = counting({4, 3});
  EXPECT_EQ(tensor.reshape({-1}).shape(), Shape{12});
  EXPECT_EQ(tensor.reshape({2, -1}).shape(), (Shape{2, 6}));
  EXPECT_EQ(tensor.reshape({-1, 1, 12}).shape(), (Shape{1, 1, 12}));
  EXPECT_EQ(Tensor().reshape({3, -1}).shape(), (Shape{3, 0}));
  EXPECT_EQ(counting({1}).reshape({}).shape(), Shape());
}

TEST(Reshape, RefusesAnExtentThatCannotBeComputed) {
  const Tensor tensor = counting({4, 3});
  EXPECT_THAT(
      [&] {
        return tensor.reshape({5, -1});
      },
      ThrowsMessage<InvalidArgument>(
          "cannot reshape int32[4, 3] to [5, -1]: the extent -1 cannot be computed"));
  EXPECT_THROW(static_cast<void>(tensor.reshape({-1, -1})), InvalidArgument);
  EXPECT_THROW(static_cast<void>(Tensor().reshape({0, -1})), InvalidArgument) << "any extent would do";
}

TEST(Reshape, KeepsTheNumberOfElements) {
  const Tensor tensor = counting({4, 3});
  EXPECT_THAT(
      [&] {
        return tensor.reshape({4, 4});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("12 elements against 16")));
  EXPECT_THROW(static_cast<void>(tensor.reshape({0})), InvalidArgument);
  EXPECT_THROW(static_cast<void>(tensor.reshape({-2, 6})), InvalidArgument);
}

TEST(Views, CopyWithinOneStorageAsIfThroughAnother) {
  const Tensor tensor = counting({5});
  tensor.rows(1, 5).copy_from(tensor.rows(0, 4));
  EXPECT_THAT(tensor.span<std::int32_t>(), ElementsAre(0, 0, 1, 2, 3));
}

TEST(Views, KeepTheStorageAlive) {
  const Tensor view = counting({4, 3}).row(3);
  EXPECT_THAT(view.span<std::int32_t>(), ElementsAre(9, 10, 11));
}

TEST(WrappedMemory, IsNotCopied) {
  std::vector<float> values{1, 2, 3, 4};
  const Tensor tensor = Tensor::wrap(std::span<float>(values), {2, 2});
  EXPECT_EQ(tensor.data(), reinterpret_cast<std::byte*>(values.data()));
  tensor.fill(7);
  EXPECT_THAT(values, Each(7));
}

TEST(WrappedMemory, IsKeptByItsOwnerAsLongAsAnyView) {
  auto values = std::make_shared<std::vector<std::int64_t>>(6, 3);
  const std::weak_ptr<std::vector<std::int64_t>> watch = values;
  Tensor view = Tensor::wrap(std::span<std::int64_t>(*values), {2, 3}, values).row(1).reshape({3, 1});
  values.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_THAT(view.span<std::int64_t>(), Each(3));
  view = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(WrappedMemory, MustFillTheShape) {
  std::vector<float> values(4);
  EXPECT_THAT([&] { return Tensor::wrap(std::span<float>(values), {5}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("4 values do not fill shape [5]")));
}

TEST(WrappedBuffer, MustContainTheTensor) {
  const auto buffer = allocate(64, Device());
  EXPECT_EQ(Tensor::wrap(buffer, 32, {8}, DType::kFloat32).data(), buffer->data() + 32);
  EXPECT_EQ(Tensor::wrap(buffer, 64, {0}, DType::kFloat32).elements(), 0u);
  EXPECT_THAT([&] { return Tensor::wrap(buffer, 36, {8}, DType::kFloat32); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("float32[8] at byte 36"), HasSubstr("a buffer of 64 bytes"))));
  EXPECT_THROW(static_cast<void>(Tensor::wrap(buffer, 65, {0}, DType::kInt8)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(Tensor::wrap(nullptr, 0, {0}, DType::kInt8)), InvalidArgument);
}

TEST(WrappedBuffer, DoesNotContainATensorWhoseBytesOverflow) {
  constexpr std::int64_t kElements = std::int64_t{1} << 61;  // times 8 bytes is 0 in 64 bits
  EXPECT_THROW(static_cast<void>(Tensor::wrap(allocate(64, Device()), 0, {kElements}, DType::kFloat64)),
               InvalidArgument);
}

TEST(WrappedBuffer, MustBeAlignedForItsElements) {
  const auto buffer = allocate(64, Device());
  for (const DType dtype : kAllDTypes) {
    EXPECT_NO_THROW(static_cast<void>(Tensor::wrap(buffer, size_of(dtype), {3}, dtype)));
    if (size_of(dtype) == 1) continue;
    EXPECT_THAT([&] { return Tensor::wrap(buffer, 1, {3}, dtype); },
                ThrowsMessage<InvalidArgument>(AllOf(
                    HasSubstr("not aligned for " + std::string(to_string(dtype))), HasSubstr("copy it"))));
  }
}

}  // namespace
}  // namespace cohort
