// Later versions of the library read what earlier ones wrote.
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "../../strategy/strategies.h"
#include "values.h"

namespace cohort::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class RecordedCheckpoint : public ::testing::TestWithParam<int> {
 protected:
  const std::string folder_ = fmt::format("{}/version-{}", RECORDED, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Versions, RecordedCheckpoint, ::testing::Values(1),
                         ::testing::PrintToStringParamName());

TEST_P(RecordedCheckpoint, IsSound) {
  const auto found = list_checkpoints(folder_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().step, kRecordedStep);
  EXPECT_THAT(verify_checkpoint(found.front().path), IsEmpty());
}

TEST_P(RecordedCheckpoint, IsRestored) {
  const Strategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable table({.initial_value = Tensor::zeros(recorded_table().shape(), DType::kFloat32)});
  std::string text;
  std::map<std::string, Tensor> tensors;
  Checkpoint checkpoint(strategy);
  checkpoint.add("table", table);
  checkpoint.add("text", text);
  for (const auto& [name, tensor] : recorded_tensors()) {
    tensors.emplace(name, Tensor::zeros(tensor.shape(), tensor.dtype()));
    checkpoint.add(name, tensors.at(name));
  }
  checkpoint.restore(folder_ + "/step-7").assert_consumed();
  EXPECT_TRUE(bitwise_equal(table.read(), recorded_table()));
  EXPECT_EQ(text, kRecordedText);
  for (const auto& [name, tensor] : recorded_tensors())
    EXPECT_TRUE(bitwise_equal(tensors.at(name), tensor)) << name;
}

}  // namespace
}  // namespace cohort::testing
