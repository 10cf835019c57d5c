#include "checkpoint/format/safetensors.h"

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "checkpoint/format/manifest.h"
#include "safetensors_file.h"
#include "temporary_folder.h"
#include "thrown.h"

namespace cohort::checkpoint {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

std::string with_header(const std::string& json, std::size_t data_bytes) {
  return testing::safetensors_file(json, std::string(data_bytes, 'x'));
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
  EXPECT_THAT(refusal(one("F4", "[5]", "[0,8]")), HasSubstr("2 elements share 1, and a row has 5"));
  EXPECT_THAT(refusal(one("F6_E2M3", "[]", "[0,8]")), HasSubstr("4 elements share 3, and a row has 1"));
  EXPECT_THAT(refusal(one("F6_E3M2", "[9223372036854775804]", "[0,8]")), HasSubstr("not what"));
  EXPECT_THAT(refusal(one("C64", "[9223372036854775807]", "[0,8]")), HasSubstr("as float32"));
  EXPECT_THAT(refusal(one("C64", "[1,1,1,1,1,1,1,1]", "[0,8]")), HasSubstr("as float32"));
}

TEST(Safetensors, OfForeignElementsAreReadAsWhatTheyConsistOf) {
  struct Expected {
    std::string dtype;
    std::string shape;
    std::string extents;  ///< of what is read
    DType parts;
    std::size_t bytes;
  };
  const TemporaryFolder folder;
  for (const auto& [dtype, shape, extents, parts, bytes] :
       {Expected{"F8_E4M3", "[2,3]", "[2, 3]", DType::kUInt8, 6},
        {"F8_E5M2", "[]", "[]", DType::kUInt8, 1},
        {"F8_E4M3FNUZ", "[6]", "[6]", DType::kUInt8, 6},
        {"F8_E5M2FNUZ", "[6]", "[6]", DType::kUInt8, 6},
        {"F8_E8M0", "[0,6]", "[0, 6]", DType::kUInt8, 0},
        {"F6_E2M3", "[2,8]", "[2, 6]", DType::kUInt8, 12},
        {"F6_E3M2", "[4]", "[3]", DType::kUInt8, 3},
        {"F4", "[3,4]", "[3, 2]", DType::kUInt8, 6},
        {"C64", "[3]", "[3, 2]", DType::kFloat32, 24},
        {"C64", "[]", "[2]", DType::kFloat32, 8}}) {
    const std::string header =
        fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":[0,{}]}}}})", dtype, shape, bytes);
    const InputFile file(folder.file("foreign.safetensors", with_header(header, bytes)));
    const TensorPlace place = read_header(file).tensors.at("a");
    EXPECT_EQ(place.foreign, dtype);
    EXPECT_EQ(place.dtype, parts) << dtype;
    EXPECT_EQ(to_string(place.shape), extents) << dtype;
    EXPECT_EQ(place.bytes(), bytes) << dtype;
  }
}

TEST(SafetensorsIndex, IsReadAsItIsWritten) {
  const std::string text = safetensors_index(10, {{"a", "one.safetensors"}, {"b \"c\"", "two.safetensors"}});
  EXPECT_THAT(parse_index(text, "index"),
              ::testing::ElementsAre(::testing::Pair("a", "one.safetensors"),
                                     ::testing::Pair("b \"c\"", "two.safetensors")));
}

TEST(SafetensorsIndex, ThatIsHostileIsAnError) {
  const auto refused = [](const std::string& text) {
    return message_of(ErrorCode::kDataLoss, [&] { (void)parse_index(text, "bad.index.json"); });
  };
  for (const char* text : {"{}", "[]", R"({"weight_map":[]})", R"({"weight_map":"a"})"})
    EXPECT_THAT(refused(text), HasSubstr("'bad.index.json' is no index"));
  EXPECT_THAT(refused("{"), HasSubstr("no JSON"));
  EXPECT_THAT(refused(R"({"weight_map":{"a":1}})"), HasSubstr("tensor 'a' has no name of a file"));
  EXPECT_THAT(refused(R"({"weight_map":{"a":"x","a":"y"}})"), HasSubstr("'a' twice"));
  for (const char* file : {"", ".", "..", "../x.safetensors", "/etc/passwd", "a/b", "a\\u0000b"})
    EXPECT_THAT(refused(R"({"weight_map":{"a":")" + std::string(file) + R"("}})"),
                HasSubstr("no name of a file in this folder"));
}

}  // namespace
}  // namespace cohort::checkpoint
