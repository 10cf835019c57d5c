// Ten thousand damaged checkpoints: each is refused by an error that names it, or is as good as it was.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../../strategy/fake_cluster.h"
#include "../../strategy/strategies.h"
#include "damage.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What is saved, and restored in another process.
struct State {
  explicit State(float value = 0)
      : table({.initial_value = Tensor::full({20, 3}, DType::kFloat32, static_cast<double>(value))}),
        halves(Tensor::full({5}, DType::kFloat16, static_cast<double>(value))),
        text(value == 0 ? "" : "text of " + std::to_string(value)) {}
  void add_to(Checkpoint& checkpoint) {
    checkpoint.add("table", table);
    checkpoint.add("halves", halves);
    checkpoint.add("text", text);
  }
  friend bool operator==(const State& a, const State& b) {
    return bitwise_equal(a.table.read(), b.table.read()) && bitwise_equal(a.halves, b.halves) &&
           a.text == b.text;
  }

  Variable table;
  Tensor halves;
  std::string text;
};

Files read_files(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

/// What a file says, without the spaces between, which may change in a manifest.
nlohmann::json meaning_of(const std::string& manifest) {
  return nlohmann::json::parse(manifest, nullptr, false);
}

class DamagedCheckpoint : public ::testing::Test {
 protected:
  DamagedCheckpoint() {
    for_each_worker(2, [&](Bootstrap& worker) {
      const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
      const auto scope = strategy.scope();
      for (const int step : {1, 2}) {
        State state(static_cast<float>(step));
        Checkpoint checkpoint(strategy);
        state.add_to(checkpoint);
        checkpoint.save(folder_.path().string(), step);
      }
    });
    sound_ = read_files(path_);
    placed_ = sound_;
  }

  /// Writes the files that differ from those that are there.
  void place(const Files& files) {
    for (const auto& [name, bytes] : placed_) {
      const auto now = files.find(name);
      if (now == files.end() || now->second != bytes) std::filesystem::remove(path_ + "/" + name);
    }
    for (const auto& [name, bytes] : files) {
      if (!std::filesystem::exists(path_ + "/" + name))
        static_cast<void>(folder_.file("step-1/" + name, bytes));
    }
    placed_ = files;
  }

  [[nodiscard]] bool is_the_same(Files files) const {
    const auto manifest = files.find("manifest.json");
    if (manifest == files.end()) return false;
    const std::string& sound = sound_.at("manifest.json");
    if (meaning_of(manifest->second) == meaning_of(sound)) manifest->second = sound;
    return files == sound_;
  }

  /// The error of a restore; nothing if it succeeds.
  std::optional<std::string> refusal(State& state) {
    Checkpoint checkpoint;
    state.add_to(checkpoint);
    try {
      checkpoint.restore(path_).expect_partial();
      return std::nullopt;
    } catch (const Error& error) {
      return error.what();
    }
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("step-1");
  Files sound_;
  Files placed_;
};

TEST_F(DamagedCheckpoint, ByAccidentIsRefusedByName) {
  Damage damage(sound_, read_files(folder_.path("step-2")));
  const State expected(1);
  int refused = 0;
  for (int i = 0; i < 6000 && !HasFailure(); ++i) {
    const Files files = damage.by_accident();
    place(files);
    const auto problems = verify_checkpoint(path_);
    EXPECT_EQ(problems.empty(), is_the_same(files)) << i;
    for (const std::string& problem : problems) EXPECT_THAT(problem, HasSubstr("step-1")) << i;
    State state;
    const auto error = refusal(state);
    if (error) {
      EXPECT_THAT(*error, HasSubstr("step-1")) << i;
      EXPECT_TRUE(state == State()) << i << ": a refused restore changed something";
      ++refused;
    } else {
      // Only what is not needed for a restore was hit.
      EXPECT_TRUE(state == expected) << i;
    }
  }
  EXPECT_GT(refused, 3000);
}

TEST_F(DamagedCheckpoint, ByIntentDoesNoHarm) {
  Damage damage(sound_, {});
  int refused = 0;
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    place(damage.by_intent());
    const auto problems = verify_checkpoint(path_);
    for (const std::string& problem : problems) EXPECT_THAT(problem, HasSubstr("step-1")) << i;
    State state;
    const auto error = refusal(state);
    if (!error) continue;
    ++refused;
    EXPECT_THAT(*error, HasSubstr("step-1")) << i;
    EXPECT_TRUE(state == State()) << i << ": a refused restore changed something";
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(DamagedCheckpoint, OfAnotherStepIsRefused) {
  std::filesystem::remove_all(path_);
  std::filesystem::rename(folder_.path("step-2"), path_);
  State state;
  EXPECT_THAT(refusal(state).value_or("restored"), HasSubstr("of step 2, and its folder of step 1"));
  EXPECT_THAT(verify_checkpoint(path_), ::testing::ElementsAre(HasSubstr("of step 2")));
  // Under a name that says no step, it is that of step 2.
  std::filesystem::rename(path_, folder_.path("best"));
  EXPECT_THAT(verify_checkpoint(folder_.path("best")), IsEmpty());
}

TEST_F(DamagedCheckpoint, ThatIsNestedDeeplyIsRefused) {
  constexpr std::size_t kDepth = 1'000'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  Files files = sound_;
  files["manifest.json"] = R"({"checkpoint":{"version":1,"x":)" + nested + R"(},"crc32c":"00000000"})";
  place(files);
  State state;
  EXPECT_THAT(refusal(state).value_or("restored"), HasSubstr("nested"));
}

}  // namespace
}  // namespace cohort::testing
