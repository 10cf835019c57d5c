#include <cohort/device/dtype.h>

#include <limits>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Known {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
  bool floating;
};

constexpr Known kKnown[] = {
    {DType::kInt8, "int8", 1, false},      {DType::kInt16, "int16", 2, false},
    {DType::kInt32, "int32", 4, false},    {DType::kInt64, "int64", 8, false},
    {DType::kUInt8, "uint8", 1, false},    {DType::kUInt16, "uint16", 2, false},
    {DType::kUInt32, "uint32", 4, false},  {DType::kUInt64, "uint64", 8, false},
    {DType::kFloat16, "float16", 2, true}, {DType::kBFloat16, "bfloat16", 2, true},
    {DType::kFloat32, "float32", 4, true}, {DType::kFloat64, "float64", 8, true},
    {DType::kBool, "bool", 1, false},
};

TEST(DTypes, HaveANameASizeAndAKind) {
  ASSERT_EQ(std::size(kKnown), kAllDTypes.size());
  for (const Known& known : kKnown) {
    EXPECT_EQ(to_string(known.dtype), known.name);
    EXPECT_EQ(size_of(known.dtype), known.bytes) << known.name;
    EXPECT_EQ(is_floating(known.dtype), known.floating) << known.name;
    EXPECT_EQ(is_half(known.dtype), known.floating && known.bytes == 2) << known.name;
  }
}

TEST(DTypes, AreFoundByName) {
  for (const Known& known : kKnown) EXPECT_EQ(parse_dtype(known.name), known.dtype);
}

TEST(DTypes, AreListedWhenANameIsUnknown) {
  EXPECT_THAT([] { return parse_dtype("float"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'float'"), HasSubstr("int8, int16"),
                                                   HasSubstr("bfloat16, float32, float64, bool"))));
  EXPECT_THROW(static_cast<void>(parse_dtype("")), InvalidArgument);
  EXPECT_THROW(static_cast<void>(parse_dtype("Float32")), InvalidArgument);
}

TEST(DTypes, AreVisitedAsTheirCppType) {
  for (const DType dtype : kAllDTypes) {
    const DType visited = visit_dtype(dtype, []<class T>(std::type_identity<T>) { return kDTypeOf<T>; });
    EXPECT_EQ(visited, dtype);
    const std::size_t bytes = visit_dtype(dtype, []<class T>(std::type_identity<T>) { return sizeof(T); });
    EXPECT_EQ(bytes, size_of(dtype));
  }
}

TEST(DTypes, ThatDoNotExistAreAnInternalError) {
  EXPECT_THAT([] { visit_dtype(static_cast<DType>(99), [](auto) {}); },
              ThrowsMessage<Internal>(HasSubstr("99")));
}

TEST(DTypes, OfConstElementsAreThoseOfTheElements) {
  static_assert(kDTypeOf<const float> == DType::kFloat32);
  static_assert(!Element<char*> && !Element<long double> && !Element<DType>);
}

TEST(ConvertElement, TakesSixteenBitFloatsThroughFloat32) {
  EXPECT_EQ(convert_element<float16>(0.1).bits(), float16(0.1f).bits());
  EXPECT_EQ(convert_element<bfloat16>(float16(1.5f)).bits(), bfloat16(1.5f).bits());
  EXPECT_EQ(convert_element<int>(float16(-3.0f)), -3);
  EXPECT_EQ(convert_element<double>(bfloat16(0.5f)), 0.5);
}

TEST(ConvertElement, ToBoolAsksWhetherItIsNotZero) {
  EXPECT_TRUE(convert_element<bool>(0.25));
  EXPECT_TRUE(convert_element<bool>(-1));
  EXPECT_TRUE(convert_element<bool>(float16(0.5f)));
  EXPECT_TRUE(convert_element<bool>(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_FALSE(convert_element<bool>(-0.0f));
  EXPECT_FALSE(convert_element<bool>(bfloat16(-0.0f)));
}

TEST(ConvertElement, FromBoolIsZeroOrOne) {
  EXPECT_EQ(convert_element<double>(true), 1.0);
  EXPECT_EQ(static_cast<float>(convert_element<float16>(true)), 1.0f);
  EXPECT_EQ(convert_element<std::int8_t>(false), 0);
}

}  // namespace
}  // namespace cohort
