#include <cohort/value/detail/bytes.h>

#include <gmock/gmock.h>

namespace cohort::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

enum class Colour : std::uint16_t { kRed = 7 };

struct Sample {
  Tensor image;
  std::array<double, 2> corner;
  std::optional<Colour> colour;
};
COHORT_FIELDS(Sample, image, corner, colour)

using Whole = std::tuple<Sample, std::map<std::string, bool>, std::vector<bool>, std::vector<std::string>,
                         std::pair<char, std::int64_t>, std::optional<float>, IndexedSlices>;

Whole whole() {
  return {{Tensor::from<float>({1, 2, 3}), {0.5, -0.5}, Colour::kRed},
          {{"on", true}, {"off", false}},
          {true, false},
          {"one", ""},
          {'c', -1},
          std::nullopt,
          {Tensor::from<float>({4, 5}), Tensor::from<std::int32_t>({1, 0}), {3}}};
}

std::vector<std::byte> bytes_of(const auto& value) {
  ByteWriter writer;
  write_value(writer, value);
  return writer.take();
}

template <class T>
T value_of(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "this");
  T result = read_value<T>(reader);
  if (!reader.rest().empty()) throw DataLoss("this has a rest");
  return result;
}

TEST(Bytes, HoldValuesOfAllKinds) {
  const std::vector<std::byte> bytes = bytes_of(whole());
  const auto read = value_of<Whole>(bytes);
  EXPECT_EQ(bytes_of(read), bytes);
  EXPECT_EQ(std::get<Sample>(read).image.span<float>()[2], 3);
  EXPECT_EQ(std::get<Sample>(read).colour, Colour::kRed);
  EXPECT_EQ((std::get<1>(read)), (std::get<1>(whole())));
  EXPECT_EQ((std::get<2>(read)), (std::get<2>(whole())));
  EXPECT_EQ((std::get<3>(read)), (std::get<3>(whole())));
  EXPECT_EQ(std::get<4>(read).second, -1);
  EXPECT_FALSE(std::get<5>(read));
  EXPECT_EQ(std::get<IndexedSlices>(read).dense_shape, (Shape{3}));
}

// Caches lie in files, which another version of the library reads.
TEST(Bytes, HaveALayoutThatStays) {
  using Layout = std::tuple<std::vector<std::uint8_t>, std::string, std::map<std::uint8_t, bool>,
                            std::optional<std::uint8_t>, Tensor, std::optional<bool>>;
  const Layout value{{1, 2}, "ab", {{5, true}}, 9, Tensor::from<std::uint8_t>({7, 8, 9}), std::nullopt};
  const std::vector<std::uint8_t> expected{
      2, 0, 0, 0, 0, 0, 0, 0, 1,   2,             // how many, and each
      2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b',           // how many characters, and each
      1, 0, 0, 0, 0, 0, 0, 0, 5,   1,             // how many, and each key with its value
      1, 9,                                       // present
      4, 1, 3, 0, 0, 0, 0, 0, 0,   0,   7, 8, 9,  // dtype, rank, extents, elements
      0};                                         // absent
  const std::vector<std::byte> bytes = bytes_of(value);
  ASSERT_EQ(bytes.size(), expected.size());
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
}

TEST(Bytes, OfALongArrayNeedNoTuple) {
  std::array<int, 2000> many{};
  many.back() = 3;
  EXPECT_EQ((value_of<std::array<int, 2000>>(bytes_of(many))), many);
}

TEST(Bytes, HaveNoBoolThatIsNeitherTrueNorFalse) {
  for (int value = 0; value < 256; ++value) {
    const std::vector<std::byte> byte(1, static_cast<std::byte>(value));
    if (value > 1)
      EXPECT_THROW(static_cast<void>(value_of<bool>(byte)), DataLoss) << value;
    else
      EXPECT_EQ(value_of<bool>(byte), value == 1);
  }
  std::vector<std::byte> tensor = bytes_of(Tensor::zeros({2}, DType::kBool));
  tensor.back() = std::byte{2};
  EXPECT_THROW(static_cast<void>(value_of<Tensor>(tensor)), DataLoss);
}

TEST(Bytes, ThatEndTooEarlyAreDataLoss) {
  const std::vector<std::byte> bytes = bytes_of(whole());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(static_cast<void>(value_of<Whole>(std::span(bytes).first(length))), DataLoss) << length;
}

TEST(Bytes, OfTensorsThatCannotBeAreDataLoss) {
  const auto tensor = [](std::uint8_t dtype, const std::vector<std::int64_t>& extents) {
    ByteWriter writer;
    writer.number(dtype);
    writer.number(static_cast<std::uint8_t>(extents.size()));
    for (const std::int64_t extent : extents) writer.number(extent);
    return writer.take();
  };
  const auto expect = [](const std::vector<std::byte>& bytes, const char* text) {
    EXPECT_THAT([&] { static_cast<void>(value_of<Tensor>(bytes)); },
                ThrowsMessage<DataLoss>(HasSubstr(text)));
  };
  expect(tensor(kAllDTypes.size(), {}), "this has an unknown dtype");
  expect(tensor(0, std::vector<std::int64_t>(Shape::kLargestRank + 1)), "this has an impossible shape");
  expect(tensor(0, {-1}), "this has an impossible shape");
  expect(tensor(0, {std::int64_t{1} << 62, 8}), "this has an impossible shape");
  expect(tensor(3, {std::int64_t{1} << 62}), "this ends too early");  // whose bytes are none, modulo 2^64
}

}  // namespace
}  // namespace cohort::detail
