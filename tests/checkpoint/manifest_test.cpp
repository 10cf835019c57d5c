// What the manifest of a checkpoint says, and how its values are divided among files.
#include <limits>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/format/manifest.h"
#include "thrown.h"

namespace cohort::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;

Manifest two_pieces() {
  Manifest manifest{.step = 7, .workers = 2, .values = {}, .files = {{"a", {10, 1}}, {"b", {20, 2}}}};
  manifest.values["w"] = {DType::kFloat32, {4, 2}, {{"a", "w.0", 0, 3, 5}, {"b", "w.1", 3, 1, 0xffffffff}}};
  manifest.values["scalar"] = {DType::kBool, {}, {{"b", "scalar", 0, 1, 6}}};
  return manifest;
}

std::string refusal(const Manifest& manifest) {
  std::string text =
      message_of(ErrorCode::kDataLoss, [&] { (void)parse_manifest(to_json(manifest), "m.json"); });
  EXPECT_THAT(text, HasSubstr("'m.json'"));
  return text;
}

TEST(Manifest, IsReadAsItWasWritten) {
  const std::string text = to_json(two_pieces());
  const Manifest read = parse_manifest(text, "m.json");
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.step, 7);
  EXPECT_EQ(read.workers, 2);
  EXPECT_EQ(read.values.at("w").pieces.at(1).checksum, 0xffffffff);
  EXPECT_EQ(read.values.at("scalar").shape, Shape());
}

TEST(Manifest, HasTheMetricsOfItsStep) {
  Manifest manifest = two_pieces();
  EXPECT_THAT(to_json(manifest), Not(HasSubstr("metrics")));
  manifest.metrics = {{"accuracy", 0.1}, {"loss", 1e300}};
  EXPECT_EQ(parse_manifest(to_json(manifest), "m.json").metrics, manifest.metrics);
  manifest.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THAT(refusal(manifest), HasSubstr("its metric 'loss' is no number"));
}

// A file as the first version wrote it: later versions of the library read it, too.
TEST(Manifest, OfVersion1IsRead) {
  const Manifest manifest = parse_manifest(
      R"({"checkpoint": {"files": {"f": {"crc32c": "0000000a", "size": 9}}, "step": 3, "values": {"x": {"dtype": "int8",
      "pieces": [{"crc32c": "00000001", "file": "f", "first_row": 0, "rows": 2, "tensor": "x"}], "shape": [2]}},
      "version": 1, "workers": 1}, "crc32c": "0b695be4"})",
      "m.json");
  EXPECT_EQ(manifest.step, 3);
  EXPECT_EQ(manifest.values.at("x").pieces.at(0).rows, 2);
  EXPECT_EQ(manifest.files.at("f").checksum, 10);
}

TEST(Manifest, OfALaterVersionSaysSo) {
  EXPECT_THAT(
      message_of(ErrorCode::kUnimplemented,
                 [] { (void)parse_manifest(R"({"checkpoint":{"version":2},"crc32c":"0"})", "m.json"); }),
      AllOf(HasSubstr("version 2"), HasSubstr("newer")));
}

TEST(Manifest, OfAVersionThatNeverWasIsAnError) {
  EXPECT_THAT(
      message_of(ErrorCode::kDataLoss,
                 [] { (void)parse_manifest(R"({"checkpoint":{"version":0},"crc32c":"0"})", "m.json"); }),
      HasSubstr("version 0"));
}

TEST(Manifest, ThatIsDamagedIsAnError) {
  std::string text = to_json(two_pieces());
  text.replace(text.find("\"step\":7"), 8, "\"step\":8");
  EXPECT_THAT(message_of(ErrorCode::kDataLoss, [&] { (void)parse_manifest(text, "m.json"); }),
              HasSubstr("'m.json' is damaged"));
  EXPECT_THAT(message_of(ErrorCode::kDataLoss, [&] { (void)parse_manifest(text.substr(0, 99), "m.json"); }),
              HasSubstr("no JSON"));
}

TEST(Manifest, ThatContradictsItselfIsAnError) {
  Manifest manifest = two_pieces();
  manifest.values["w"].pieces.pop_back();
  EXPECT_THAT(refusal(manifest), HasSubstr("value 'w': its pieces have 3 rows, and it has 4"));
  manifest = two_pieces();
  manifest.values["w"].pieces[1].first_row = 2;
  EXPECT_THAT(refusal(manifest), HasSubstr("do not follow"));
  manifest = two_pieces();
  manifest.values["w"].pieces[1].rows = 2;
  EXPECT_THAT(refusal(manifest), HasSubstr("do not follow"));
  manifest = two_pieces();
  manifest.values["w"].pieces[0].tensor = "scalar";
  manifest.values["w"].pieces[0].file = "b";
  EXPECT_THAT(refusal(manifest), HasSubstr("tensor 'scalar' of 'b' is used twice"));
  manifest = two_pieces();
  manifest.workers = 0;
  EXPECT_THAT(refusal(manifest), HasSubstr("0 workers"));
  manifest = two_pieces();
  manifest.values["w"].pieces[0].file = "c";
  EXPECT_THAT(refusal(manifest), HasSubstr("'c' is not listed"));
  manifest = two_pieces();
  manifest.values["w"].pieces[0].file = "../a";
  EXPECT_THAT(refusal(manifest), HasSubstr("no name of a file in this folder"));
}

std::vector<std::uint64_t> bytes_by_worker(const std::vector<Divisible>& values, int workers) {
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(workers));
  for (const Part& part : divide(values, workers))
    bytes[static_cast<std::size_t>(part.worker)] +=
        values[part.value].bytes_of_row * static_cast<std::uint64_t>(part.rows);
  return bytes;
}

TEST(Division, CutsWhatIsLargerThanAShare) {
  for (const int workers : {1, 2, 3, 4, 7})
    for (const std::uint64_t bytes : bytes_by_worker({{8, 1000}}, workers))
      EXPECT_NEAR(double(bytes), 8000.0 / workers, 16);
}

TEST(Division, LeavesSmallValuesWhole) {
  const std::vector<Divisible> values(40, {4, 100});
  EXPECT_EQ(divide(values, 4).size(), values.size());
  EXPECT_THAT(bytes_by_worker(values, 4), ::testing::Each(4000));
}

TEST(Division, HasEachRowOnce) {
  const std::vector<Divisible> values{{100, 77}, {0, 5}, {8, 0}, {4, 1}, {1, 100000}};
  for (const int workers : {1, 2, 3, 4, 7}) {
    std::vector<std::int64_t> rows(values.size());
    std::vector<int> parts(values.size());
    for (const Part& part : divide(values, workers)) {
      EXPECT_EQ(part.first_row, rows[part.value]);
      EXPECT_LT(part.worker, workers);
      rows[part.value] += part.rows;
      ++parts[part.value];
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(rows[i], values[i].rows);
      EXPECT_GE(parts[i], 1);
    }
  }
}

}  // namespace
}  // namespace cohort::checkpoint
