// ON_READ variables that are saved, and what others restore.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include <cohort/checkpoint/checkpoint.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

constexpr auto kOnRead = VariableSynchronization::kOnRead;

class CheckpointCase : public Replicas {
 public:
  CheckpointCase(const CheckpointCase&) = delete;
  CheckpointCase& operator=(const CheckpointCase&) = delete;

 protected:
  CheckpointCase() {
    // The first worker's process names the folder of all.
    const auto process = each([](int r) { return Tensor::scalar(r == 0 ? double(::getpid()) : 0.0); });
    const auto number = static_cast<int>(strategy_.reduce(ReduceOp::kSum, process).item<double>());
    folder_ = std::filesystem::path(::testing::TempDir()) / ("cohort-cases-" + std::to_string(number));
  }
  ~CheckpointCase() override {
    meet();
    std::error_code ignored;
    if (first_local() == 0) std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] Variable on_read(VariableAggregation aggregation) const {
    return made({.name = "v",
                 .initial_value = Tensor::scalar(0.0),
                 .synchronization = kOnRead,
                 .aggregation = aggregation});
  }

  template <class Value>
  [[nodiscard]] std::string save(const Value& value) const {
    Checkpoint checkpoint(strategy_);
    checkpoint.add("v", value);
    return checkpoint.save(folder_.string(), 1);
  }
  template <class Value>
  void restore(const std::string& path, const Value& value) const {
    Checkpoint checkpoint(strategy_);
    checkpoint.add("v", value);
    checkpoint.restore(path).assert_consumed();
  }

  /// Saves a variable whose replica r has 4 - r, whose aggregate is `wanted`, and restores it: into itself,
  /// whose components are then `component`, and as a plain value.
  void check_aggregate(VariableAggregation aggregation, double wanted, double component) const {
    const Variable variable = on_read(aggregation);
    strategy_.run(
        [&](ReplicaContext& replica) { variable.assign(4.0 - replica.replica_id_in_sync_group()); });
    const std::string path = save(variable);
    const Tensor plain = Tensor::scalar(0.0);
    restore(path, plain);
    EXPECT_DOUBLE_EQ(plain.item<double>(), wanted);
    restore(path, variable);
    expect_components(variable, component);
    EXPECT_DOUBLE_EQ(variable.read().item<double>(), wanted);
  }

  /// Restores a plain 2, of which each component is then `component`.
  void check_restored(VariableAggregation aggregation, double component) const {
    const std::string path = save(Tensor::scalar(2.0));
    const Variable variable = on_read(aggregation);
    restore(path, variable);
    expect_components(variable, component);
    EXPECT_DOUBLE_EQ(variable.read().item<double>(), 2);
  }

 private:
  std::filesystem::path folder_;
};
COHORT_INSTANTIATE_CASES(CheckpointCase);

TEST_P(CheckpointCase, Case055_SavesAnOnReadSumWhichReplicasShareAfterwards) {
  const double sum = total([](int r) { return 4.0 - r; });
  check_aggregate(VariableAggregation::kSum, sum, sum / replicas());
}

TEST_P(CheckpointCase, Case055_SavesAnOnReadMeanWhichReplicasAllHaveAfterwards) {
  const double mean = total([](int r) { return 4.0 - r; }) / replicas();
  check_aggregate(VariableAggregation::kMean, mean, mean);
}

TEST_P(CheckpointCase, Case056_RestoresAPlainValueIntoAnOnReadSum) {
  check_restored(VariableAggregation::kSum, 2.0 / replicas());
}

TEST_P(CheckpointCase, Case056_RestoresAPlainValueIntoAnOnReadMean) {
  check_restored(VariableAggregation::kMean, 2);
}

}  // namespace
}  // namespace cohort::testing
