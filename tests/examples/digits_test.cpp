// The digits example on real data: it learns, it gives the same losses on however many
// replicas, and it refuses what it cannot use.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int status = -1;
  std::string output;  // of both streams
};

std::string replace(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

Outcome run(const std::string& command) {
  FILE* pipe = popen(fmt::format("{} 2>&1 </dev/null", command).c_str(), "r");
  if (pipe == nullptr) return {};
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), count);
  }
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

/// As one word of a command: the folder of a build may have blanks in its name.
std::string quoted(const std::string& path) { return fmt::format("'{}'", path); }

/// `wrapper` is a command that starts the program, which follows it.
Outcome run_digits(int ranks, const std::string& options, const std::string& wrapper = "") {
  const std::string launcher = replace(MPIRUN, " N", fmt::format(" {}", ranks));
  return run(fmt::format("{} {} {} {}", launcher, wrapper, quoted(PROGRAM), options));
}

/// One worker by itself.
Outcome run_alone(const std::string& options) { return run(fmt::format("{} {}", quoted(PROGRAM), options)); }

/// The name of a file or folder of this process, removed at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& extension)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("cohort-digits-{}{}", getpid(), extension)) {}
  ~TemporaryFile() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string word() const { return quoted(path()); }  ///< of a command

 private:
  std::filesystem::path path_;
};

nlohmann::json train(int ranks, const std::string& options) {
  const TemporaryFile file(".json");
  const Outcome outcome = run_digits(ranks, fmt::format("{} --json {}", options, file.word()));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  std::ifstream stream(file.path());
  return nlohmann::json::parse(stream, nullptr, false);
}

double worst_difference(const nlohmann::json& a, const nlohmann::json& b) {
  EXPECT_EQ(a["epochs"].size(), b["epochs"].size());
  double worst = 0;
  for (std::size_t i = 0; i < a["epochs"].size(); ++i) {
    const double x = a["epochs"][i]["loss"];
    const double y = b["epochs"][i]["loss"];
    worst = std::max(worst, std::abs(x - y) / std::abs(x));
  }
  return worst;
}

TEST(Digits, LearnsUnderEachOfFiveSeeds) {
  for (int seed = 1; seed <= 5; ++seed) {
    const auto results = train(2, fmt::format("--seed {}", seed));
    EXPECT_GE(results["test_accuracy"], 0.97) << "seed " << seed;
    EXPECT_EQ(results["strategy"], "multi_worker_mirrored");
    EXPECT_EQ(results["replicas"], 2);
    EXPECT_EQ(results["epochs"].size(), 60u);
  }
}

TEST(Digits, AgreesOnTheLossHoweverReplicasAreSpread) {
  const auto alone = train(1, "--strategy default");
  constexpr double kTolerance = 1e-5;
  for (const int replicas : {1, 2, 3, 4}) {
    const auto threads = train(1, fmt::format("--strategy mirrored --devices {}", replicas));
    const auto workers = train(replicas, "--strategy multi_worker_mirrored");
    EXPECT_EQ(threads["replicas"], replicas);
    EXPECT_EQ(workers["replicas"], replicas);
    EXPECT_LE(worst_difference(alone, threads), kTolerance) << replicas << " devices of one worker";
    EXPECT_LE(worst_difference(alone, workers), kTolerance) << replicas << " workers";
  }
  const auto both = train(2, "--strategy multi_worker_mirrored --devices 2");
  EXPECT_EQ(both["replicas"], 4);
  EXPECT_LE(worst_difference(alone, both), kTolerance) << "2 devices of each of 2 workers";
  EXPECT_LE(worst_difference(alone, train(1, "--strategy one_device")), kTolerance);
  EXPECT_LE(worst_difference(alone, train(1, "--strategy central_storage --devices 3")), kTolerance);
  EXPECT_GT(worst_difference(alone, train(1, "--strategy default --seed 2")), kTolerance)
      << "the check must be able to fail";
}

/// A job of tasks that are no MPI ranks.
nlohmann::json train_on_servers(const std::string& roles, const std::string& options) {
  const TemporaryFile file(".json");
  const Outcome outcome = run(fmt::format("{} --roles {} -- {} {} --json {}", quoted(SUPERVISOR), roles,
                                          quoted(PROGRAM), options, file.word()));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  std::ifstream stream(file.path());
  return nlohmann::json::parse(stream, nullptr, false);
}

// Asynchronous steps come in another order in each run, so the limit is lower than for common steps.
TEST(Digits, TrainsOnServersInBothWays) {
  for (const std::string strategy : {"parameter_server", "coordinator"}) {
    const auto results = train_on_servers("chief=1,worker=2,ps=2", "--strategy " + strategy);
    ASSERT_TRUE(results.is_object()) << strategy;
    EXPECT_EQ(results["strategy"], strategy);
    EXPECT_EQ(results["replicas"], 1) << "of the chief alone";
    EXPECT_EQ(results["epochs"].size(), 60u);
    EXPECT_LT(results["epochs"][59]["loss"], results["epochs"][0]["loss"]) << strategy;
    EXPECT_GE(results["test_accuracy"], 0.95) << strategy;
  }
}

TEST(Digits, EvaluatesBesideTheTraining) {
  const TemporaryFile file(".json");
  const Outcome outcome =
      run_digits(4, fmt::format("--roles evaluator=1,worker=3 --epochs 3 --json {}", file.word()));
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::ifstream stream(file.path());
  const auto results = nlohmann::json::parse(stream);
  EXPECT_EQ(results["replicas"], 3);
  EXPECT_THAT(outcome.output, HasSubstr("evaluator: epoch 1, test accuracy"));
  // The parameters are those that the workers end with.
  EXPECT_THAT(outcome.output, HasSubstr(fmt::format("evaluator: epoch 3, test accuracy {:.4f}",
                                                    results["test_accuracy"].get<double>())));
}

/// Losses and accuracies of the last `count` epochs.
nlohmann::json last_epochs(const nlohmann::json& results, std::size_t count) {
  nlohmann::json epochs = nlohmann::json::array();
  for (nlohmann::json epoch : results["epochs"]) {
    epoch.erase("seconds");
    epochs.push_back(std::move(epoch));
  }
  if (epochs.size() > count) epochs.erase(epochs.begin(), epochs.end() - static_cast<std::ptrdiff_t>(count));
  return epochs;
}

TEST(Digits, GoesOnFromItsNewestCheckpointToTheSameBits) {
  const auto undisturbed = train(2, "--epochs 6 --learning-rate 0.3");
  const TemporaryFile folder(".checkpoints");
  const std::string saves = fmt::format("--learning-rate 0.3 --checkpoint {} --every 10", folder.word());
  train(2, saves + " --epochs 4");  // 92 steps: the newest checkpoint is in the middle of the last epoch
  const Outcome again = run_digits(2, saves + " --epochs 6");
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.output, HasSubstr("there are checkpoints; add --resume"));
  const auto resumed = train(2, saves + " --epochs 6 --resume");
  EXPECT_EQ(last_epochs(resumed, 6), last_epochs(undisturbed, 3)) << "epochs 4 to 6";
  EXPECT_EQ(resumed["test_accuracy"], undisturbed["test_accuracy"]);

  const auto by_others = train(3, saves + " --epochs 7 --resume");
  EXPECT_LE(
      worst_difference(by_others, {{"epochs", last_epochs(train(1, "--epochs 7 --learning-rate 0.3"), 2)}}),
      1e-5)
      << "epochs 6 and 7, with 3 workers instead of 2";
}

TEST(Digits, EvaluatesWhatIsLeftAfterAResume) {
  const TemporaryFile folder(".checkpoints");
  const std::string saves =
      fmt::format("--roles evaluator=1,worker=2 --checkpoint {} --every 23 --resume", folder.word());
  run_digits(3, saves + " --epochs 2");
  const Outcome more = run_digits(3, saves + " --epochs 3");
  EXPECT_EQ(more.status, 0) << more.output;
  EXPECT_THAT(more.output, HasSubstr("evaluator: epoch 3, test accuracy"));
  EXPECT_THAT(more.output, Not(HasSubstr("evaluator: epoch 1")));
  const Outcome nothing = run_digits(3, saves + " --epochs 3");
  EXPECT_EQ(nothing.status, 0) << nothing.output;
  EXPECT_THAT(nothing.output, HasSubstr("evaluator: epoch 3, test accuracy"));
}

TEST(Digits, EvaluatesNothingWhereTfConfigHasWorkersOnly) {
  const char* by_rank =
      R"(sh -c 'TF_CONFIG="{\"cluster\": {\"worker\": [\"a:1\", \"b:1\", \"c:1\"]}, \"task\":)"
      R"( {\"type\": \"worker\", \"index\": $OMPI_COMM_WORLD_RANK}}" exec "$0" "$@"')";
  const Outcome outcome = run_digits(3, "--roles TF_CONFIG --epochs 1", by_rank);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("3 replicas"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("evaluator")));
}

TEST(Digits, ReadsTheSameFromTfRecordAsFromCsv) {
  const TemporaryFile records(".tfrecord");
  const std::string csv = std::filesystem::path(PROGRAM).parent_path() / "data" / "digits.csv";
  ASSERT_EQ(std::system(fmt::format("{} {} {}", quoted(CONVERTER), quoted(csv), records.word()).c_str()), 0);
  for (const int replicas : {1, 2}) {
    const std::string options = fmt::format("--strategy mirrored --devices {} --epochs 5", replicas);
    const auto from_csv = train(1, options);
    const auto from_records = train(1, fmt::format("{} --data {}", options, records.word()));
    EXPECT_EQ(worst_difference(from_csv, from_records), 0) << replicas << " replicas";
    EXPECT_EQ(from_csv["test_accuracy"], from_records["test_accuracy"]);
    // What it was before there were datasets of files.
    EXPECT_NEAR(from_csv["epochs"][0]["loss"], 1.0829265, 1e-5);
  }
}

TEST(Digits, RefusesWhatItCannotUse) {
  struct Case {
    int ranks;
    std::string options;
    int status;
    std::string fragment;
  };
  const std::array cases{
      Case{1, "--strategy central", 2, "use one of default, one_device, mirrored"},
      Case{1, "--strategy mirrored --devices 0", 2, "--devices 0 is out of range"},
      Case{1, "--strategy one_device --devices 2", 2, "which has one replica"},
      Case{1, "--epochs -1", 2, "--epochs -1"},
      Case{1, "--batch 0", 2, "--batch 0"},
      Case{1, "--learning-rate nan", 2, "--learning-rate nan"},
      Case{1, "--epoch 3", 2, "--epoch"},
      Case{1, "stray", 2, "see --help"},
      Case{2, "--strategy mirrored", 2, "this job has 2 workers"},
      Case{1, "--strategy mirrored --roles worker=1", 2, "--roles worker=1 does not go with"},
      Case{2, "--roles worker=3", 2, "are 3 tasks, but the job has 2 workers"},
      Case{3, "--roles ps=1,worker=2", 1, "MultiWorkerMirroredStrategy: task type 'ps'"},
      Case{1, "--resume", 2, "add --checkpoint DIR"},
      Case{1, "--every 0 --checkpoint x", 2, "--every 0 is out of range"},
      Case{1, "--strategy coordinator --checkpoint x", 2, "--checkpoint does not go with"},
      Case{1, "--checkpoint /proc/nothing", 1, "'/proc/nothing'"},
      Case{1, "--strategy coordinator", 1, "cohort-run --roles"},
      Case{1, "--data /nonexistent.csv", 1, "cannot open CSV file '/nonexistent.csv'"},
      Case{1, "--epochs 1 --json /nonexistent/x.json", 1, "cannot write '/nonexistent/x.json'"},
  };
  for (const Case& wrong : cases) {
    // After a job that failed, mpirun sleeps for two seconds.
    const Outcome outcome =
        wrong.ranks == 1 ? run_alone(wrong.options) : run_digits(wrong.ranks, wrong.options);
    EXPECT_EQ(outcome.status, wrong.status) << wrong.options << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(wrong.fragment)) << wrong.options;
  }
  const Outcome under_launcher = run_digits(1, "--data /nonexistent.csv");
  EXPECT_EQ(under_launcher.status, 1);
  EXPECT_THAT(under_launcher.output, HasSubstr("cannot open CSV file '/nonexistent.csv'"));
  // Without a launcher nobody else has to hear of the end, so MPI says nothing of it.
  const Outcome alone = run_alone("--data /nonexistent.csv");
  EXPECT_EQ(alone.status, 1);
  EXPECT_EQ(std::count(alone.output.begin(), alone.output.end(), '\n'), 1) << alone.output;
  EXPECT_THAT(alone.output, HasSubstr("cannot open CSV file '/nonexistent.csv'"));
  const Outcome help = run_digits(2, "--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("--learning-rate"));
}

TEST(Digits, WarnsOfNothingWhereItIsRunAsTheQuickstartDoes) {
  const Outcome outcome =
      run_digits(2, "--strategy multi_worker_mirrored --epochs 1", "env COHORT_LOG_LEVEL=warning");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  // On a machine of one core, two workers share it, and are told so.
  if (std::thread::hardware_concurrency() > 1) {
    EXPECT_THAT(outcome.output, Not(HasSubstr("warning")));
  }
}

}  // namespace
