// Snapshots of workers that are threads of this process, on hosts that are folders.
#include "checkpoint/memory_snapshots.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using checkpoint::MemorySnapshots;
using checkpoint::NamedValue;
using checkpoint::Workers;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kWorkers = 4;

/// `weights` are on all workers; `position` is what each has itself.
std::map<std::string, NamedValue> values_of(int rank, std::int64_t step) {
  const Tensor weights = Tensor::from(std::vector<double>(100, static_cast<double>(step)));
  const Tensor position = Tensor::scalar(std::int64_t{1000} * rank + step);
  std::map<std::string, NamedValue> values;
  values["weights"] = {.dtype = weights.dtype(),
                       .shape = [weights] { return weights.shape(); },
                       .read = [weights] { return Tensor(weights); },
                       .is_everywhere = true};
  values["position"] = {.dtype = position.dtype(),
                        .shape = [position] { return position.shape(); },
                        .read = [position] { return Tensor(position); }};
  return values;
}

class MemorySnapshotsTest : public ::testing::Test {
 protected:
  /// Calls `check` with the snapshots of each of the workers, which are on `hosts` hosts.
  template <class Check>
  void on_every_worker(int hosts, Check check) {
    for_each_worker(kWorkers, [&](Bootstrap& worker) {
      const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
      const Workers workers(strategy.extended(), "tests snapshots in", place_, 60);
      MemorySnapshots snapshots(workers, place_, "h" + std::to_string(workers.rank() * hosts / kWorkers),
                                "disk");
      check(snapshots, workers);
    });
  }

  void save(int hosts, const std::vector<std::int64_t>& steps) {
    on_every_worker(hosts, [&](MemorySnapshots& snapshots, const Workers& workers) {
      for (const std::int64_t step : steps) snapshots.save(workers, values_of(workers.rank(), step), step);
    });
  }

  /// What each worker finds.
  std::vector<std::optional<FoundCheckpoint>> find(int hosts) {
    std::vector<std::optional<FoundCheckpoint>> found(kWorkers);
    on_every_worker(hosts, [&](MemorySnapshots& snapshots, const Workers& workers) {
      found[static_cast<std::size_t>(workers.rank())] = snapshots.find_newest(workers);
    });
    return found;
  }

  /// All find a sound snapshot of `step`, each on its own host, with what was saved.
  void expect_found(int hosts, std::int64_t step) {
    const auto all = find(hosts);
    for (int rank = 0; rank < kWorkers; ++rank) {
      const auto& found = all[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(found.has_value()) << rank;
      EXPECT_EQ(found->step, step);
      EXPECT_EQ(found->path.find(host(rank * hosts / kWorkers)), 0) << found->path;
      EXPECT_THAT(verify_checkpoint(found->path), IsEmpty());
      const auto manifest = checkpoint::read_manifest(found->path);
      checkpoint::PieceReader reader(found->path);
      EXPECT_THAT(reader.read("weights", manifest.values.at("weights")).span<double>(), Each(step));
      EXPECT_EQ(reader.read("position", manifest.values.at("position")).item<std::int64_t>(), step);
    }
  }

  [[nodiscard]] std::string host(int number) const { return place_ + "/h" + std::to_string(number); }

  /// The one folder of snapshots on a host.
  [[nodiscard]] std::string snapshots_on(int number) const {
    return std::filesystem::directory_iterator(host(number))->path().string();
  }

  [[nodiscard]] std::vector<std::int64_t> steps_on(int number) const {
    std::vector<std::int64_t> steps;
    for (const FoundCheckpoint& found : list_checkpoints(snapshots_on(number))) steps.push_back(found.step);
    return steps;
  }

  /// Changes a byte of a snapshot.
  void damage(int number, std::int64_t step) const {
    const std::string path = snapshots_on(number) + "/step-" + std::to_string(step);
    std::fstream file(path + "/" + checkpoint::kManifestName, std::ios::in | std::ios::out);
    file.seekp(5);
    file.put('#');
  }

  const TemporaryFolder folder_;
  const std::string place_ = folder_.path("snapshots");
};

TEST_F(MemorySnapshotsTest, ThereIsNoneAtFirst) {
  for (const auto& found : find(2)) EXPECT_FALSE(found.has_value());
}

TEST_F(MemorySnapshotsTest, EveryHostHasAllValues) {
  for (const int hosts : {1, 2, 4}) {
    save(hosts, {hosts});
    for (int number = 0; number < hosts; ++number) EXPECT_EQ(steps_on(number).back(), hosts);
    expect_found(hosts, hosts);
  }
}

TEST_F(MemorySnapshotsTest, TwoAreKept) {
  save(2, {1, 2, 3, 10});
  EXPECT_THAT(steps_on(0), ElementsAre(3, 10));
  EXPECT_THAT(steps_on(1), ElementsAre(3, 10));
}

TEST_F(MemorySnapshotsTest, AStepCanBeSavedAgain) {
  save(2, {1, 2});
  save(2, {2});
  EXPECT_THAT(steps_on(0), ElementsAre(1, 2));
  expect_found(2, 2);
}

TEST_F(MemorySnapshotsTest, ALostHostLosesNothing) {
  save(2, {1, 2});
  std::filesystem::remove_all(host(0));
  expect_found(2, 2);
  EXPECT_THAT(steps_on(0), ElementsAre(2)) << "a new host gets a copy";
}

TEST_F(MemorySnapshotsTest, OtherNumbersOfHostsFindTheSame) {
  save(4, {1, 2});
  expect_found(1, 2);
  save(1, {3});
  expect_found(4, 3);
}

TEST_F(MemorySnapshotsTest, DamagedOnesAreReplaced) {
  save(2, {1, 2});
  damage(1, 2);
  expect_found(2, 2);
}

TEST_F(MemorySnapshotsTest, TheOlderOneCountsIfTheNewestIsDamagedEverywhere) {
  save(2, {1, 2});
  damage(0, 2);
  damage(1, 2);
  expect_found(2, 1);
  EXPECT_THAT(steps_on(0), ElementsAre(1));
}

TEST_F(MemorySnapshotsTest, FoldersOfOtherUsersAreRefused) {
  std::ofstream(place_) << "no folder";
  for_each_worker(2, [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
    const Workers workers(strategy.extended(), "tests snapshots in", place_, 60);
    EXPECT_THROW(MemorySnapshots(workers, place_, "h0", "disk"), Error);
  });
}

}  // namespace
}  // namespace cohort::testing
