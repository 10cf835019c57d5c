#include "checkpoint/format/safetensors.h"

#include <cstring>

#include <cohort/base/error.h>

#include "temporary_folder.h"
#include "thrown.h"

namespace cohort::checkpoint {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

/// A file with this header and so many bytes of data.
std::string with_header(const std::string& json, std::size_t data_bytes) {
  const auto length = static_cast<std::uint64_t>(json.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + json + std::string(data_bytes, 'x');
}

std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const InputFile file(folder.file("bad.safetensors", bytes));
  std::string text = message_of(ErrorCode::kDataLoss, [&] { (void)read_header(file); });
  EXPECT_THAT(text, HasSubstr("bad.safetensors"));
  return text;
}

TEST(Safetensors, HaveEveryDTypeAndShape) {
  std::vector<NamedTensor> tensors{{"scalar", DType::kFloat32, {}}, {"empty", DType::kInt64, {0, 3}}};
  for (const DType dtype : kAllDTypes) tensors.push_back({std::string(to_string(dtype)), dtype, {3, 1}});
  const std::string begin = begin_safetensors(tensors, {{"who", "me"}});
  std::uint64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) bytes += tensor.shape.elements() * size_of(tensor.dtype);

  const TemporaryFolder folder;
  const InputFile file(folder.file("file", begin + std::string(bytes, 'x')));
  const SafetensorsHeader header = read_header(file);
  EXPECT_EQ(header.metadata.at("who"), "me");
  ASSERT_EQ(header.tensors.size(), tensors.size());
  std::uint64_t next = begin.size();
  for (const NamedTensor& tensor : tensors) {
    const TensorPlace& place = header.tensors.at(tensor.name);
    EXPECT_EQ(place.dtype, tensor.dtype) << tensor.name;
    EXPECT_EQ(place.shape, tensor.shape) << tensor.name;
    EXPECT_EQ(place.begin, next) << tensor.name;
    EXPECT_EQ(place.begin % size_of(place.dtype), 0) << tensor.name;
    next += place.bytes();
  }
}

TEST(Safetensors, OfOneNameAreRefused) {
  std::vector<NamedTensor> tensors{{"a", DType::kInt8, {1}}, {"a", DType::kInt16, {1}}};
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { (void)begin_safetensors(tensors, {}); }),
              HasSubstr("two tensors 'a'"));
  tensors = {{"\xff", DType::kInt8, {1}}};
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { (void)begin_safetensors(tensors, {}); }),
              HasSubstr("UTF-8"));
}

TEST(Safetensors, ThatAreHostileAreErrors) {
  const auto entry = [](const std::string& name, const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}";
  };
  const auto one = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return with_header("{" + entry("a", dtype, shape, offsets) + "}", 8);
  };
  EXPECT_THAT(refusal("1234567"), HasSubstr("too few"));
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("longer than any"));
  EXPECT_THAT(refusal(std::string("\x09\0\0\0\0\0\0\0{}", 10)), HasSubstr("longer than the file"));
  EXPECT_THAT(refusal(with_header("{", 0)), HasSubstr("no JSON"));
  EXPECT_THAT(refusal(with_header("[]", 0)), HasSubstr("no object"));
  EXPECT_THAT(refusal(with_header(std::string(10'000, '['), 0)), HasSubstr("nested"));
  EXPECT_THAT(refusal(with_header("{}", 1)), HasSubstr("cut off, or has been added to"));
  EXPECT_THAT(refusal(one("F8", "[8]", "[0,8]")), HasSubstr("'F8' is unknown"));
  EXPECT_THAT(refusal(one("F32", "[3]", "[0,8]")), HasSubstr("not what float32[3] has"));
  EXPECT_THAT(refusal(one("F32", "[2]", "[0,12]")), HasSubstr("within the file's 8 bytes"));
  EXPECT_THAT(refusal(one("F32", "[2]", "[8,0]")), HasSubstr("within the file"));
  EXPECT_THAT(refusal(one("F32", "[2]", "[0,18446744073709551615]")), HasSubstr("no list of numbers"));
  EXPECT_THAT(refusal(one("F32", "[-2]", "[0,8]")), HasSubstr("no list of numbers"));
  EXPECT_THAT(refusal(one("F32", "2", "[0,8]")), HasSubstr("no list of numbers"));
  // 2^62 elements of 4 bytes are 0 bytes modulo 2^64.
  EXPECT_THAT(refusal(one("F32", "[4611686018427387904]", "[0,0]")), HasSubstr("not what"));
  EXPECT_THAT(refusal(one("F32", "[4611686018427387904,4]", "[0,8]")), HasSubstr("elements"));
  EXPECT_THAT(refusal(with_header(
                  "{" + entry("a", "I8", "[5]", "[0,5]") + "," + entry("b", "I8", "[4]", "[4,8]") + "}", 8)),
              HasSubstr("'b' in"));
  EXPECT_THAT(refusal(with_header(
                  "{" + entry("a", "I8", "[3]", "[0,3]") + "," + entry("b", "I8", "[4]", "[4,8]") + "}", 8)),
              HasSubstr("behind the end"));
  EXPECT_THAT(refusal(with_header(
                  "{" + entry("a", "I8", "[8]", "[0,8]") + "," + entry("a", "I8", "[8]", "[0,8]") + "}", 8)),
              HasSubstr("'a' twice"));
  EXPECT_THAT(refusal(with_header(R"({"__metadata__":{"a":1}})", 0)), HasSubstr("'a' is no text"));
}

}  // namespace
}  // namespace cohort::checkpoint
