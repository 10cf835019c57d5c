#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <cohort/checkpoint/safetensors.h>
#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "safetensors_file.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Tensor kWeight = tensor_of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
const Tensor kBias = vector_of(std::vector<float>{7, 8});

Variable zeros(const std::string& name, const Shape& shape, DType dtype = DType::kFloat32) {
  return Variable({.name = name, .initial_value = Tensor::zeros(shape, dtype)});
}

/// A folder with the model of these tests.
class Safetensors : public ::testing::Test {
 protected:
  [[nodiscard]] std::string model() const {
    return folder_.file("model.safetensors", safetensors_file({{"fc.weight", kWeight}, {"fc.bias", kBias}}));
  }
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }

  static std::string refused(const std::function<void()>& call,
                             ErrorCode code = ErrorCode::kInvalidArgument) {
    return message_of(code, call);
  }

  const TemporaryFolder folder_;
};

using SafetensorsReading = Safetensors;

TEST_F(SafetensorsReading, GivesEveryTensor) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  tensors.reserve(kAllDTypes.size() + 2);
  for (const DType dtype : kAllDTypes) {
    tensors.emplace_back(to_string(dtype),
                         tensor_of(std::vector<float>{0, 1, 1, 0, 1, 0}, {2, 3}).cast(dtype));
  }
  tensors.emplace_back("scalar", Tensor::scalar(1.5));
  tensors.emplace_back("empty", Tensor::zeros({0, 3}, DType::kInt64));
  SafetensorsReader reader(folder_.file("all.safetensors", safetensors_file(tensors)));
  ASSERT_EQ(reader.tensors().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(reader.tensors().at(name).dtype, tensor.dtype()) << name;
    EXPECT_EQ(reader.tensors().at(name).shape, tensor.shape()) << name;
    EXPECT_TRUE(bitwise_equal(reader.read(name), tensor)) << name;
  }
  EXPECT_EQ(reader.tensors().at("bfloat16").stored_as, "BF16");
  EXPECT_THAT(refused([&] { (void)reader.read("none"); }), HasSubstr("no tensor 'none'"));
}

TEST_F(SafetensorsReading, CopiesNothingButWhatIsNotAligned) {
  const auto file = [](std::size_t spaces) {
    return safetensors_file(
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" + std::string(spaces, ' '),
        std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  };
  for (std::size_t spaces = 0; spaces < 8; ++spaces) {
    SafetensorsReader reader(folder_.file("spaces.safetensors", file(spaces)));
    const Tensor tensor = reader.read("a");
    EXPECT_THAT(tensor.span<float>(), ElementsAre(1.0F, 2.0F));
    tensor.fill(5);
    std::ifstream unchanged(folder_.path("spaces.safetensors"), std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(unchanged), {}), file(spaces));
  }
}

TEST_F(SafetensorsReading, TakesFoldersAndIndexes) {
  const std::string one =
      folder_.file("a-1.safetensors", safetensors_file({{"x", kWeight}, {"also", kBias}}));
  const std::string two = folder_.file("a-2.safetensors", safetensors_file({{"y", kBias}}));
  const std::string index = folder_.file("model.safetensors.index.json",
                                         R"({"metadata":{"total_size":32,"other":[1.5]},)"
                                         R"("weight_map":{"x":"a-1.safetensors","y":"a-2.safetensors"}})");
  for (const std::string& path : {index, folder()}) {
    SafetensorsReader reader(path);
    ASSERT_EQ(reader.tensors().size(), 2) << path;
    EXPECT_TRUE(bitwise_equal(reader.read("y"), kBias));
    EXPECT_TRUE(bitwise_equal(reader.read("x"), kWeight));
    EXPECT_EQ(reader.tensors().at("x").file, one);
  }
  const std::vector<std::string> files{one, two};
  EXPECT_EQ(SafetensorsReader(files).tensors().size(), 3);
  // As other readers do, a single file is preferred.
  static_cast<void>(model());
  EXPECT_EQ(SafetensorsReader(folder()).tensors().count("fc.bias"), 1);
}

TEST_F(SafetensorsReading, RefusesWhatIsNoModel) {
  EXPECT_THAT(refused([&] { SafetensorsReader reader(folder()); }),
              HasSubstr("has neither model.safetensors nor"));
  EXPECT_THAT(
      refused([&] { SafetensorsReader reader(folder_.path("none.safetensors")); }, ErrorCode::kUnavailable),
      HasSubstr("none.safetensors"));
  EXPECT_THAT(refused([] { SafetensorsReader reader{std::span<const std::string>()}; }),
              HasSubstr("no safetensors"));
  const auto hint = [&](const std::string& bytes) {
    return refused([&] { SafetensorsReader reader(folder_.file("wrong", bytes)); }, ErrorCode::kDataLoss);
  };
  EXPECT_THAT(hint(std::string("PK\x03\x04\0\0\x08\x08", 8)), HasSubstr("save_file"));
  EXPECT_THAT(hint("version https://git-lfs.github.com/spec/v1"), HasSubstr("git lfs pull"));
  EXPECT_THAT(hint("GGUF\x03\x01\x01\x01\x01\x01"), HasSubstr("llama.cpp"));
  EXPECT_THAT(hint("\x1f\x8b\x08\x01\x01\x01\x01\x01\x01\x01"), HasSubstr("gunzip"));
  EXPECT_THAT(hint("1234567"), HasSubstr("too few"));
  static_cast<void>(folder_.file("manifest.json", "{}"));
  EXPECT_THAT(refused([&] { SafetensorsReader reader(folder()); }), HasSubstr("is a checkpoint of Cohort"));
}

TEST_F(SafetensorsReading, RefusesFilesThatDoNotBelongTogether) {
  const std::string one = folder_.file("1.safetensors", safetensors_file({{"x", kWeight}}));
  const std::string two = folder_.file("2.safetensors", safetensors_file({{"x", kBias}}));
  const std::vector<std::string> both{one, two};
  const std::string twice = refused([&] { SafetensorsReader reader(both); });
  EXPECT_THAT(twice, HasSubstr("'x' is both in '" + one + "' and in '" + two + "'"));

  const auto with_index = [&](const std::string& map, ErrorCode code) {
    const std::string index = folder_.file("some.index.json", R"({"weight_map":)" + map + "}");
    return refused([&] { SafetensorsReader reader(index); }, code);
  };
  EXPECT_THAT(with_index(R"({"x":"3.safetensors"})", ErrorCode::kUnavailable), HasSubstr("3.safetensors"));
  const std::string absent = with_index(R"({"z":"1.safetensors"})", ErrorCode::kDataLoss);
  EXPECT_THAT(absent, HasSubstr("tensor 'z' is in '" + one + "', which does not have it"));
}

TEST_F(SafetensorsReading, RefusesFilesThatAreCutOff) {
  const std::string whole = safetensors_file({{"x", kWeight}, {"y", kBias}});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string path = folder_.file("cut.safetensors", whole.substr(0, bytes));
    EXPECT_THAT(refused([&] { SafetensorsReader reader(path); }, ErrorCode::kDataLoss),
                HasSubstr("cut.safetensors"));
  }
  // While it is open: no signal ends the process.
  const std::string path =
      folder_.file("shrinking.safetensors",
                   safetensors_file({{"x", Tensor::zeros({1 << 20}, DType::kFloat32)}, {"y", kBias}}));
  SafetensorsReader reader(path);
  std::filesystem::resize_file(path, 1 << 20);
  EXPECT_THAT(refused([&] { (void)reader.read("x"); }, ErrorCode::kDataLoss), HasSubstr("become shorter"));
}

TEST_F(SafetensorsReading, RefusesBoolsThatAreNone) {
  SafetensorsReader reader(folder_.file(
      "bools",
      safetensors_file(R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", "\x01\x02\x01")));
  EXPECT_THAT(refused([&] { (void)reader.read("mask"); }, ErrorCode::kDataLoss), HasSubstr("'mask'"));
}

using SafetensorsLoading = Safetensors;

TEST_F(SafetensorsLoading, ChangesNothingWhereABoolIsNone) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("mask":{"dtype":"BOOL","shape":[1],"data_offsets":[1,2]}})";
  const std::string path = folder_.file("bools", safetensors_file(header, "\x01\x02"));
  const std::vector<Variable> variables{zeros("a", {1}, DType::kUInt8), zeros("mask", {1}, DType::kBool)};
  EXPECT_THAT(refused([&] { load_safetensors(path, variables); }, ErrorCode::kDataLoss), HasSubstr("'mask'"));
  EXPECT_THAT(numbers(variables[0].read()), ElementsAre(0));
}

TEST_F(SafetensorsLoading, RenamesTransposesAndConverts) {
  const std::string path =
      folder_.file("model.safetensors",
                   safetensors_file({{"fc.weight", kWeight.cast(DType::kBFloat16)}, {"fc.bias", kBias}}));
  const std::vector<Variable> variables{zeros("dense/kernel", {3, 2}), zeros("dense/bias", {2})};
  const SafetensorsOptions options{.rename = {{"fc.weight", "dense/kernel"}, {"fc.*", "dense/*"}},
                                   .transpose = {"*/kernel"},
                                   .convert = true};
  const LoadedSafetensors loaded = load_safetensors(path, variables, options);
  EXPECT_THAT(loaded.missing, IsEmpty());
  EXPECT_THAT(loaded.unexpected, IsEmpty());
  EXPECT_THAT(numbers(variables[0].read()), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(numbers(variables[1].read()), ElementsAre(7, 8));
}

TEST_F(SafetensorsLoading, ConvertsOnlyIfAsked) {
  const std::string path =
      folder_.file("half.safetensors",
                   safetensors_file({{"v", kBias.cast(DType::kBFloat16)}, {"n", kBias.cast(DType::kInt32)}}));
  const std::vector<Variable> variables{zeros("v", {2}), zeros("n", {2}, DType::kInt64)};
  const std::string strict = refused([&] { load_safetensors(path, variables); });
  EXPECT_THAT(strict, HasSubstr("tensor 'v' in '" + path +
                                "' is bfloat16[2], and variable 'v' is float32[2]: the "
                                "option `convert` allows that"));
  // Integers are never converted.
  const std::string integers = refused([&] { load_safetensors(path, variables, {.convert = true}); });
  EXPECT_THAT(integers, HasSubstr("'n' is int64[2]"));
  EXPECT_THAT(integers, Not(HasSubstr("'v' is float32")));
  for (const Variable& variable : variables) EXPECT_THAT(numbers(variable.read()), ElementsAre(0, 0));
}

TEST_F(SafetensorsLoading, NamesWhatIsMissingOrUnexpected) {
  const std::string path = model();
  const std::vector<Variable> variables{zeros("fc.bias", {2}), zeros("head", {1})};
  const std::string both = refused([&] { load_safetensors(path, variables); });
  EXPECT_THAT(both, HasSubstr("no tensor for the variables head (1 of 2); allow_missing"));
  EXPECT_THAT(both, HasSubstr("no variable for the tensors fc.weight (1 of 2); allow_unexpected"));
  EXPECT_THAT(refused([&] { load_safetensors(path, variables, {.allow_missing = true}); }),
              Not(HasSubstr("no tensor for")));
  EXPECT_THAT(refused([&] { load_safetensors(path, variables, {.allow_unexpected = true}); }),
              Not(HasSubstr("no variable for")));
  EXPECT_THAT(numbers(variables[0].read()), ElementsAre(0, 0));

  const LoadedSafetensors loaded =
      load_safetensors(path, variables, {.allow_missing = true, .allow_unexpected = true});
  EXPECT_THAT(loaded.missing, ElementsAre("head"));
  EXPECT_THAT(loaded.unexpected, ElementsAre("fc.weight"));
  EXPECT_THAT(numbers(variables[0].read()), ElementsAre(7, 8));
}

TEST_F(SafetensorsLoading, SaysHowShapesDiffer) {
  const std::string path = model();
  const std::vector<Variable> variables{zeros("fc.weight", {3, 2}), zeros("fc.bias", {2})};
  EXPECT_THAT(refused([&] { load_safetensors(path, variables); }),
              HasSubstr("is float32[2, 3], and variable 'fc.weight' is float32[3, 2]: transpose it"));
  const std::vector<Variable> fit{zeros("fc.weight", {2, 3}), zeros("fc.bias", {2})};
  EXPECT_THAT(refused([&] { load_safetensors(path, fit, {.transpose = {"fc.weight"}}); }),
              HasSubstr("float32[3, 2] when transposed, and variable 'fc.weight' is float32[2, 3]: do not"));
  EXPECT_THAT(refused([&] { load_safetensors(path, fit, {.transpose = {"fc.*s"}}); }),
              HasSubstr("transpose 'fc.*s'"));
}

TEST_F(SafetensorsLoading, RefusesTwoOfOneName) {
  const std::string path = model();
  const std::vector<Variable> variables{zeros("fc.bias", {2}), zeros("fc.bias", {2})};
  EXPECT_THAT(refused([&] { load_safetensors(path, variables); }),
              HasSubstr("two variables are called 'fc.bias'"));
  EXPECT_THAT(refused([&] {
                load_safetensors(path, {}, {.rename = {{"fc.weight", "fc.bias"}}});
              }),
              HasSubstr("'fc.bias' and 'fc.weight' are both called 'fc.bias'"));
}

TEST_F(SafetensorsLoading, GivesForeignElementsAsBytes) {
  const std::string header = R"({"f8":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},)"
                             R"("f4":{"dtype":"F4","shape":[2,4],"data_offsets":[4,8]}})";
  const std::string path = folder_.file("foreign.safetensors", safetensors_file(header, "abcdefgh"));
  const std::vector<Variable> bytes{zeros("f8", {2, 2}, DType::kUInt8), zeros("f4", {2, 2}, DType::kUInt8)};
  load_safetensors(path, bytes, {.transpose = {"f8"}});
  EXPECT_THAT(numbers(bytes[0].read()), ElementsAre('a', 'c', 'b', 'd'));
  EXPECT_THAT(numbers(bytes[1].read()), ElementsAre('e', 'f', 'g', 'h'));
  EXPECT_THAT(
      refused([&] { load_safetensors(path, bytes, {.transpose = {"f4"}}); }, ErrorCode::kUnimplemented),
      HasSubstr("F4"));
  const std::vector<Variable> floats{zeros("f8", {2, 2})};
  EXPECT_THAT(
      refused([&] { load_safetensors(path, floats, {.convert = true, .allow_unexpected = true}); }),
      HasSubstr("is F8_E4M3 (read as uint8)[2, 2], and variable 'f8' is float32[2, 2]: its numbers cannot"));
}

TEST_F(SafetensorsLoading, RefusesVariablesWithoutACommonValue) {
  const std::string path = model();
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const std::vector<Variable> variables{Variable({.name = "fc.bias",
                                                  .initial_value = Tensor::zeros({2}, DType::kFloat32),
                                                  .synchronization = VariableSynchronization::kOnRead})};
  EXPECT_THAT(refused([&] { load_safetensors(path, variables, {.allow_unexpected = true}, {}, strategy); }),
              HasSubstr("'fc.bias' cannot be loaded: it is ON_READ"));
}

TEST_F(SafetensorsLoading, GivesEveryReplicaTheSame) {
  const std::string path = model();
  struct Job {
    int workers;
    std::function<Strategy(Bootstrap&)> make;
  };
  std::vector<Job> jobs{{1, [](Bootstrap&) { return OneDeviceStrategy(); }},
                        {1, [](Bootstrap&) { return mirrored(3); }},
                        {1, [](Bootstrap&) { return CentralStorageStrategy(cpu_devices(2)); }}};
  for (const int workers : {2, 3}) {
    jobs.push_back({workers, [](Bootstrap& worker) {
                      return MultiWorkerMirroredStrategy(worker, kPatient, cpu_devices(2));
                    }});
  }
  for (const Job& job : jobs) {
    for_each_worker(job.workers, [&](Bootstrap& worker) {
      const Strategy strategy = job.make(worker);
      const auto scope = strategy.scope();
      const std::vector<Variable> variables{zeros("fc.weight", {3, 2}),
                                            Variable({.name = "fc.bias",
                                                      .initial_value = Tensor::zeros({2}, DType::kFloat32),
                                                      .synchronization = VariableSynchronization::kOnRead,
                                                      .aggregation = VariableAggregation::kMean})};
      load_safetensors(path, variables, {.transpose = {"fc.weight"}}, {}, strategy);
      for (const Tensor& component : variables[0].components())
        EXPECT_THAT(numbers(component), ElementsAre(1, 4, 2, 5, 3, 6));
      for (const Tensor& component : variables[1].components())
        EXPECT_THAT(numbers(component), ElementsAre(7, 8));
    });
  }
}

TEST_F(SafetensorsLoading, GivesAShardedVariableItsRows) {
  const std::string path = model();
  const ShardedVariable sharded(
      std::vector<Variable>{zeros("fc.weight/part_0", {1, 3}), zeros("fc.weight/part_1", {1, 3})},
      "fc.weight");
  load_safetensors(path, {}, {.allow_unexpected = true}, {{sharded}});
  EXPECT_TRUE(bitwise_equal(sharded.read(), kWeight));
}

}  // namespace
}  // namespace cohort::testing
