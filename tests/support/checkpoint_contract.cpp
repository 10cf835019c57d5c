#include "checkpoint_contract.h"

#include <cstdint>
#include <filesystem>
#include <istream>
#include <numeric>
#include <ostream>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/metrics/means.h>

#include "checkpoint/format/folder.h"
#include "contract_strategy.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor counting(std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows) * 3);
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::from(values, {rows, 3});
}

/// The bytes of each file with values.
std::vector<std::uintmax_t> sizes_of_values(const std::string& path) {
  std::vector<std::uintmax_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().filename().string().starts_with("values-")) sizes.push_back(entry.file_size());
  return sizes;
}

/// A random generator whose state cannot be written or read while it is broken.
class BreakableGenerator {
 public:
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return ++state; }

  friend std::ostream& operator<<(std::ostream& stream, const BreakableGenerator& generator) {
    if (generator.is_broken) throw Unavailable("a generator is broken");
    return stream << generator.state;
  }
  friend std::istream& operator>>(std::istream& stream, BreakableGenerator& generator) {
    if (generator.is_broken) throw Unavailable("a generator is broken");
    return stream >> generator.state;
  }

  std::uint32_t state = 0;
  bool is_broken = false;
};

}  // namespace

void check_saving_and_restoring(Bootstrap& worker, int devices, const std::string& folder) {
  const int workers = static_cast<int>(worker.workers().size());
  constexpr std::int64_t kRows = 10000;
  std::string path;
  {
    const auto strategy = strategy_of(worker, devices);
    const auto scope = strategy.scope();
    const Variable large({.initial_value = counting(kRows)});
    const Variable small({.initial_value = Tensor::from({1.0F, 2.0F})});
    const Variable total({.initial_value = Tensor::scalar(0.0F),
                          .synchronization = VariableSynchronization::kOnRead,
                          .aggregation = VariableAggregation::kSum});
    strategy.run([&] { total.assign_add(1.0F); });
    Checkpoint checkpoint(strategy);
    checkpoint.add("large", large);
    checkpoint.add("small", small);
    checkpoint.add("total", total);
    path = checkpoint.save(folder, 5);
  }
  EXPECT_THAT(verify_checkpoint(path), IsEmpty());
  const auto sizes = sizes_of_values(path);
  EXPECT_EQ(sizes.size(), static_cast<std::size_t>(workers));
  const double share = double(kRows) * 12 / workers;
  for (const std::uintmax_t size : sizes) EXPECT_NEAR(static_cast<double>(size), share, 1000);

  const auto strategy = strategy_of(worker, 1);
  const auto scope = strategy.scope();
  const Variable large({.initial_value = Tensor::zeros({kRows, 3}, DType::kFloat32)});
  const Variable small({.initial_value = Tensor::from({0.0F, 0.0F})});
  const Variable total({.initial_value = Tensor::scalar(0.0F),
                        .synchronization = VariableSynchronization::kOnRead,
                        .aggregation = VariableAggregation::kSum});
  Checkpoint checkpoint(strategy);
  checkpoint.add("large", large);
  checkpoint.add("small", small);
  checkpoint.add("total", total);
  checkpoint.restore(path).assert_consumed();
  EXPECT_TRUE(bitwise_equal(large.components().front(), counting(kRows)));
  EXPECT_TRUE(bitwise_equal(small.components().front(), Tensor::from({1.0F, 2.0F})));
  // The sum stays what it was, and is divided among one replica on each worker.
  EXPECT_EQ(total.components().front().item<float>(), static_cast<float>(devices));
  EXPECT_EQ(total.read().item<float>(), static_cast<float>(devices * workers));
}

void check_values_of_the_first_worker(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  std::int64_t number = 10 + worker.rank();
  std::string text(static_cast<std::size_t>(worker.rank() + 1), 'x');
  Checkpoint checkpoint(strategy);
  checkpoint.add("number", number);
  checkpoint.add("text", text);
  const std::string path = checkpoint.save(folder, 1);
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(number, 10);
  EXPECT_EQ(text, "x");
}

void check_failure_of_one_worker(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  const auto scope = strategy.scope();
  const int last = static_cast<int>(worker.workers().size()) - 1;
  const Variable variable({.initial_value = counting(100)});
  Checkpoint checkpoint(strategy);
  checkpoint.add("v", variable);
  const std::string good = checkpoint.save(folder, 1);

  // The last worker alone cannot read.
  Checkpoint failing(strategy);
  failing.add("v", variable);
  const std::string path = worker.rank() == last ? folder + "/nowhere" : good;
  const auto text = message_of(ErrorCode::kUnavailable, [&] { failing.restore(path); });
  EXPECT_THAT(text, HasSubstr("nowhere"));
  if (last > 0) {
    EXPECT_THAT(text, HasSubstr("worker " + std::to_string(last) + " (host"));
  }

  // A worker that sees another folder cannot write its part.
  const std::string other = worker.rank() == last && last > 0 ? folder + "/elsewhere" : folder;
  if (last > 0) {
    const auto refusal = message_of(ErrorCode::kUnavailable, [&] { checkpoint.save(other, 2); });
    EXPECT_THAT(refusal, HasSubstr("worker " + std::to_string(last) + " (host"));
    EXPECT_THAT(refusal, HasSubstr("elsewhere/step-2"));
    EXPECT_FALSE(std::filesystem::exists(checkpoint::checkpoint_path(folder, 2)));
  }
  EXPECT_EQ(list_checkpoints(folder).size(), 1);
  // The workers can go on.
  checkpoint.save(folder, 3);
  checkpoint.restore(good).assert_consumed();
}

void check_saving_in_background(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  const auto scope = strategy.scope();
  const Variable variable({.initial_value = counting(100)});
  Checkpoint checkpoint(strategy);
  checkpoint.add("v", variable);
  for (const int step : {1, 2, 3}) {
    variable.assign(Tensor::full({100, 3}, DType::kFloat32, step));
    checkpoint.save_async(folder, step);
    variable.assign(counting(100));
    EXPECT_EQ(variable.read().rows(0, 1).bytes(), 12);  // calls of the program go on
    strategy.run([&] { variable.assign_add(Tensor::zeros({100, 3}, DType::kFloat32)); });
  }
  checkpoint.wait();
  for (const int step : {1, 2, 3}) {
    const std::string path = checkpoint::checkpoint_path(folder, step);
    EXPECT_THAT(verify_checkpoint(path), IsEmpty());
    checkpoint.restore(path).assert_consumed();
    EXPECT_TRUE(bitwise_equal(variable.read(), Tensor::full({100, 3}, DType::kFloat32, step)));
  }
}

void check_a_value_that_fails(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  const int last = static_cast<int>(worker.workers().size()) - 1;
  BreakableGenerator generator;
  Checkpoint checkpoint(strategy);
  checkpoint.add("generator", generator);
  const std::string good = checkpoint.save(folder, 1);
  const auto fails = [&](const auto& call) {
    generator.is_broken = worker.rank() == last;
    const auto text = message_of(ErrorCode::kUnavailable, call);
    EXPECT_THAT(text, HasSubstr("a generator is broken"));
    if (last > 0) {
      EXPECT_THAT(text, HasSubstr("worker " + std::to_string(last) + " (host"));
    }
    generator.is_broken = false;
    checkpoint.restore(good).assert_consumed();  // the workers can go on
  };
  fails([&] { checkpoint.save(folder, 2); });
  fails([&] { checkpoint.save_async(folder, 2); });
  fails([&] { checkpoint.restore(good); });
  checkpoint.save_async(folder, 2);
  checkpoint.wait();
  EXPECT_EQ(list_checkpoints(folder).size(), 2);
}

void check_other_values(Bootstrap& worker, const std::string& folder) {
  if (worker.workers().size() == 1) return;
  const auto strategy = strategy_of(worker, 1);
  float a = 1;
  Checkpoint checkpoint(strategy);
  checkpoint.add("a", a);
  checkpoint.add(worker.rank() == 1 ? "odd" : "even", a);
  const auto text = message_of(ErrorCode::kInvalidArgument, [&] { checkpoint.save(folder, 1); });
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("worker 0 (host"), HasSubstr("has 'even'"),
                                     HasSubstr("worker 1 (host"), HasSubstr("has 'odd'")));
}

// The sums of the replicas, which do not add up exactly, decide about the last bits of what follows.
void check_metrics_in_checkpoints(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 2);
  const auto scope = strategy.scope();
  const auto add = [&](const Mean& mean, double factor) {
    strategy.run([&](ReplicaContext& replica) {
      mean.update_state(Tensor::scalar(factor * 0.1 * (replica.replica_id_in_sync_group() + 1)));
    });
  };
  const Mean mean;
  add(mean, 1);
  Checkpoint checkpoint(strategy);
  checkpoint.add("mean", mean);
  const std::string saved = checkpoint.save(folder, 1);
  add(mean, 3);
  const double expected = mean.result().item<double>();

  const Mean other;
  Checkpoint restoring(strategy);
  restoring.add("mean", other);
  restoring.restore(saved).assert_consumed();
  add(other, 3);
  EXPECT_EQ(other.result().item<double>(), expected);
}

}  // namespace cohort::testing
