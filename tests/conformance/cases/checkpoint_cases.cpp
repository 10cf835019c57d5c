// ON_READ variables in checkpoints: the first replica has 4, the second one 3.
#include <unistd.h>

#include <filesystem>
#include <string>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

constexpr auto kOnRead = VariableSynchronization::kOnRead;

/// The workers' common folder, which the first one removes at the end.
class Folder {
 public:
  explicit Folder(Bootstrap& worker)
      : worker_(worker),
        path_(worker.exchange(::testing::TempDir() + "cohort-cases-" + std::to_string(::getpid())).front()) {}
  ~Folder() {
    static_cast<void>(worker_.exchange("done"));
    if (worker_.rank() == 0) std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Bootstrap& worker_;
  std::string path_;
};

struct Kind {
  VariableAggregation aggregation;
  double saved;              ///< of 4 and 3
  double part;               ///< of that, restored on each replica
  double part_of_plain_two;  ///< of a plain 2, restored on each replica
};
constexpr std::array kKinds{Kind{VariableAggregation::kSum, 7, 3.5, 1},
                            Kind{VariableAggregation::kMean, 3.5, 3.5, 2}};

double local_component(const Strategy& strategy, const Variable& variable) {
  return strategy.local_results(variable).front().item<double>();
}

TEST(CheckpointCase, Case055_OnReadIsSavedAsItsAggregate) {
  as_workers(2, [](Bootstrap& worker) {
    const Folder folder(worker);
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60}, cpu_devices(1));
    const auto scope = strategy.scope();
    std::int64_t step = 0;
    for (const Kind& kind : kKinds) {
      const Variable variable({.initial_value = Tensor::scalar(0.0),
                               .synchronization = kOnRead,
                               .aggregation = kind.aggregation});
      strategy.run(
          [&](ReplicaContext& replica) { variable.assign(4.0 - replica.replica_id_in_sync_group()); });
      Checkpoint checkpoint(strategy);
      checkpoint.add("v", variable);
      const std::string path = checkpoint.save(folder.path(), ++step);
      strategy.run([&](ReplicaContext&) { variable.assign(9.0); });
      checkpoint.restore(path).assert_consumed();
      EXPECT_EQ(local_component(strategy, variable), kind.part);

      const Variable plain({.initial_value = Tensor::scalar(0.0)});
      Checkpoint other(strategy);
      other.add("v", plain);
      other.restore(path).assert_consumed();
      EXPECT_EQ(plain.read().item<double>(), kind.saved);
    }
  });
}

TEST(CheckpointCase, Case056_APlainVariableIsRestoredIntoOnRead) {
  as_workers(2, [](Bootstrap& worker) {
    const Folder folder(worker);
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60}, cpu_devices(1));
    const auto scope = strategy.scope();
    const Variable plain({.initial_value = Tensor::scalar(2.0)});
    Checkpoint saved(strategy);
    saved.add("v", plain);
    const std::string path = saved.save(folder.path(), 1);
    for (const Kind& kind : kKinds) {
      const Variable variable({.initial_value = Tensor::scalar(0.0),
                               .synchronization = kOnRead,
                               .aggregation = kind.aggregation});
      Checkpoint checkpoint(strategy);
      checkpoint.add("v", variable);
      checkpoint.restore(path).assert_consumed();
      EXPECT_EQ(local_component(strategy, variable), kind.part_of_plain_two);
    }
  });
}

}  // namespace
}  // namespace cohort::testing
