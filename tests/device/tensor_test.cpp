#include <cohort/device/tensor.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Device kCuda(DeviceKind::kCuda, 0);

TEST(Tensor, IsAnEmptyListByDefault) {
  const Tensor tensor;
  EXPECT_EQ(tensor.shape(), Shape{0});
  EXPECT_EQ(tensor.dtype(), DType::kFloat32);
  EXPECT_EQ(tensor.elements(), 0u);
  EXPECT_EQ(tensor.bytes(), 0u);
  EXPECT_TRUE(tensor.span<float>().empty());
}

TEST(Tensor, IsMadeOfAListOfValues) {
  const Tensor tensor = Tensor::from<std::int32_t>({3, 1, 2});
  EXPECT_EQ(tensor.shape(), Shape{3});
  EXPECT_EQ(tensor.dtype(), DType::kInt32);
  EXPECT_EQ(tensor.bytes(), 12u);
  EXPECT_THAT(tensor.span<std::int32_t>(), ElementsAre(3, 1, 2));
}

TEST(Tensor, CopiesTheValuesItIsMadeFrom) {
  std::vector<double> values{1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::from(std::span<const double>(values), {2, 3});
  values[0] = 99;
  EXPECT_THAT(tensor.span<double>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(describe(tensor), "float64[2, 3]");
}

TEST(Tensor, IsMadeOfWhateverLiesInARow) {
  const std::vector<float> values{1, 2, 3, 4};
  EXPECT_THAT(Tensor::from(values).span<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Tensor::from(values, {2, 2}).shape(), (Shape{2, 2}));
  EXPECT_EQ(Tensor::from(std::vector<float>(), {0, 3}).shape(), (Shape{0, 3}));
  EXPECT_THAT(Tensor::from(std::array<bool, 2>{true, false}).span<bool>(), ElementsAre(true, false));
  const double numbers[] = {0.5, 1.5};
  EXPECT_THAT(Tensor::from(numbers).span<double>(), ElementsAre(0.5, 1.5));
  EXPECT_THAT(Tensor::from(std::span(values).first(2)).span<float>(), ElementsAre(1, 2));
  EXPECT_THAT(Tensor::from<float>(values, {4}).span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(Tensor, StoresEveryIntegerOf64BitsAsTheSameType) {
  const Tensor tensor = Tensor::from(std::vector<long long>{-5, 1LL << 40});
  EXPECT_EQ(tensor.dtype(), DType::kInt64);
  EXPECT_THAT(tensor.span<std::int64_t>(), ElementsAre(-5, std::int64_t{1} << 40));
  EXPECT_EQ(Tensor::scalar(7LL).item<long long>(), 7LL);
  EXPECT_EQ(Tensor::scalar(7L).item<long long>(), 7LL);
  EXPECT_EQ(Tensor::scalar(7ULL).dtype(), DType::kUInt64);
  EXPECT_EQ(Tensor::scalar(2.0F).item<unsigned long long>(), 2ULL);
}

/// A tensor that nobody else shares, and a look at whether its storage lives.
struct Watched {
  Tensor tensor = Tensor::from({1.0F, 2.0F});
  std::weak_ptr<const Buffer> storage = tensor.buffer();
};

TEST(Tensor, OfATemporaryGivesElementsThatLive) {
  Watched watched;
  {
    const auto elements = std::move(watched.tensor).span<float>();
    EXPECT_FALSE(watched.storage.expired());
    EXPECT_THAT(elements, ElementsAre(1, 2));
    EXPECT_EQ(elements.size(), 2U);
    EXPECT_EQ(elements.front() + elements[1], 3);
    EXPECT_EQ(elements.back(), *(elements.data() + 1));
    elements[0] = 5;
    EXPECT_FALSE(elements.empty());
  }
  EXPECT_TRUE(watched.storage.expired());

  float sum = 0;
  for (const float element : Tensor::from({1.0F, 2.0F}).span<float>()) sum += element;
  EXPECT_EQ(sum, 3);
  std::size_t bytes = 0;
  for ([[maybe_unused]] const std::byte byte : Tensor::from({1.0F, 2.0F}).raw()) ++bytes;
  EXPECT_EQ(bytes, 8U);
  EXPECT_THROW(static_cast<void>(Tensor::from({1.0F}).span<int>()), InvalidArgument);
}

TEST(Tensor, RefusesValuesThatDoNotFillItsShape) {
  const std::vector<float> values(5);
  EXPECT_THAT(
      [&] {
        return Tensor::from(std::span<const float>(values), {2, 3});
      },
      ThrowsMessage<InvalidArgument>("5 values do not fill shape [2, 3] of 6 elements"));
}

TEST(Tensor, OfEveryDtypeIsMadeZeroOrFilled) {
  for (const DType dtype : kAllDTypes) {
    const Tensor zeros = Tensor::zeros({2, 3}, dtype);
    const Tensor ones = Tensor::full({2, 3}, dtype, 1);
    EXPECT_EQ(zeros.bytes(), 6 * size_of(dtype));
    visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
      for (const T value : zeros.span<T>()) EXPECT_EQ(convert_element<double>(value), 0) << to_string(dtype);
      for (const T value : ones.span<T>()) EXPECT_EQ(convert_element<double>(value), 1) << to_string(dtype);
    });
  }
}

TEST(Tensor, LiesOnACacheLine) {
  for (const std::int64_t elements : {0, 1, 1000, 1 << 20}) {
    const Tensor tensor = Tensor::uninitialized({elements}, DType::kFloat32);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % kAlignment, 0u) << elements;
  }
}

TEST(Tensor, NeedsADeviceOfThisBuild) {
  EXPECT_THAT([] { return Tensor::zeros({2}, DType::kFloat32, kCuda); },
              ThrowsMessage<Unavailable>(AllOf(HasSubstr("cuda:0"), HasSubstr("no GPU support"))));
}

TEST(Tensor, RefusesMoreBytesThanAnAddressCanName) {
  constexpr std::int64_t kElements = std::int64_t{1} << 61;
  EXPECT_THAT([] { return Tensor::uninitialized({kElements}, DType::kFloat64); },
              ThrowsMessage<InvalidArgument>(HasSubstr("larger than the address space")));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end the process instead
TEST(Tensor, SaysHowMuchMemoryIsMissing) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 60;
  EXPECT_THAT([] { return Tensor::uninitialized({kBytes}, DType::kInt8); },
              ThrowsMessage<Unavailable>(HasSubstr("cannot allocate 1152921504606846976 bytes on cpu:0")));
}
#endif

TEST(Tensor, IsAHandle) {
  const Tensor tensor = Tensor::from({1.0f, 2.0f});
  const Tensor same = tensor;  // NOLINT(performance-unnecessary-copy-initialization): what is tested
  same.span<float>()[0] = 7;
  EXPECT_THAT(tensor.span<float>(), ElementsAre(7, 2));
}

TEST(Tensor, IsClonedIntoStorageOfItsOwn) {
  const Tensor tensor = Tensor::from({1.0f, 2.0f});
  const Tensor clone = tensor.clone();
  clone.span<float>()[0] = 7;
  EXPECT_THAT(tensor.span<float>(), ElementsAre(1, 2));
  EXPECT_THAT(clone.span<float>(), ElementsAre(7, 2));
}

TEST(Tensor, IsCopiedToAnotherDeviceOnly) {
  const Tensor tensor = Tensor::from({1.0f, 2.0f});
  EXPECT_EQ(tensor.to(Device::cpu(0)).data(), tensor.data());
  const Tensor moved = tensor.to(Device::cpu(1));
  EXPECT_EQ(moved.device(), Device::cpu(1));
  EXPECT_NE(moved.data(), tensor.data());
  EXPECT_TRUE(bitwise_equal(moved, tensor));
  EXPECT_THROW(static_cast<void>(tensor.to(kCuda)), Unavailable);
}

TEST(Tensor, GivesItsElementsOnlyAsTheirOwnType) {
  const Tensor tensor = Tensor::zeros({2}, DType::kInt32);
  EXPECT_THAT([&] { return tensor.span<std::uint32_t>(); },
              ThrowsMessage<InvalidArgument>("the elements of int32[2] are not uint32; "
                                             "use the right type or cast(uint32)"));
  EXPECT_THROW(static_cast<void>(tensor.span<float>()), InvalidArgument);
}

TEST(Tensor, OfOneElementGivesItAsAnyType) {
  EXPECT_EQ(Tensor::scalar(2.5f).item<double>(), 2.5);
  EXPECT_EQ(Tensor::scalar(std::int8_t{-3}).item<std::int64_t>(), -3);
  EXPECT_EQ(Tensor::scalar(bfloat16(1.5f)).item<float>(), 1.5f);
  EXPECT_TRUE(Tensor::scalar(0.5).item<bool>());
  EXPECT_EQ(Tensor::full({1, 1, 1}, DType::kFloat64, 4).item<int>(), 4) << "any shape of one element";
}

TEST(Tensor, OfMoreOrLessThanOneElementHasNoItem) {
  EXPECT_THAT(
      [] {
        return Tensor::from({1.0f, 2.0f}).item<float>();
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("float32[2] has 2")));
  EXPECT_THROW(static_cast<void>(Tensor().item<float>()), InvalidArgument);
}

TEST(Tensor, IsOverwrittenByOneOfTheSameShapeAndDtype) {
  const Tensor tensor = Tensor::zeros({2, 2}, DType::kInt16);
  tensor.copy_from(Tensor::full({2, 2}, DType::kInt16, 7));
  EXPECT_THAT(tensor.span<std::int16_t>(), Each(7));
  EXPECT_THAT([&] { tensor.copy_from(Tensor::zeros({4}, DType::kInt16)); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("int16[4]"), HasSubstr("int16[2, 2]"))));
  EXPECT_THROW(tensor.copy_from(Tensor::zeros({2, 2}, DType::kUInt16)), InvalidArgument);
  EXPECT_THAT(tensor.span<std::int16_t>(), Each(7));
}

TEST(Tensor, PrintsItsFirstElements) {
  std::ostringstream text;
  text << Tensor::from<std::int32_t>({1, 2, 3}) << " " << Tensor::zeros({9}, DType::kFloat16) << " "
       << Tensor();
  EXPECT_EQ(text.str(), "int32[3] {1, 2, 3} float16[9] {0, 0, 0, 0, 0, 0, 0, 0, ...} float32[0] {}");
}

TEST(Tensor, PrintsNumbersThatAreNoneWithoutASign) {
  std::ostringstream text;
  text << Tensor::from({std::copysign(std::nanf(""), -1.0f), -1.0f});
  EXPECT_EQ(text.str(), "float32[2] {nan, -1}");
}

TEST(BitwiseEqual, LooksAtShapeDtypeAndEveryBit) {
  const Tensor tensor = Tensor::from({0.0f, 1.0f});
  EXPECT_TRUE(bitwise_equal(tensor, tensor.clone()));
  EXPECT_FALSE(bitwise_equal(tensor, tensor.reshape({2, 1})));
  EXPECT_FALSE(bitwise_equal(tensor, Tensor::from({-0.0f, 1.0f})));
  EXPECT_FALSE(bitwise_equal(Tensor::zeros({2}, DType::kInt32), Tensor::zeros({2}, DType::kFloat32)));
  const Tensor nan = Tensor::scalar(std::nanf(""));
  EXPECT_TRUE(bitwise_equal(nan, nan.clone()));
  EXPECT_TRUE(bitwise_equal(Tensor(), Tensor()));
}

}  // namespace
}  // namespace cohort
