// A save meets a fault at every one of its calls on files: the process is killed, the call fails, or it
// writes less. Whatever happens, the newest sound checkpoint is the one before or the new one, the error says
// what failed, and the next save works and leaves nothing behind of this one.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <tuple>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../../strategy/fake_cluster.h"
#include "../../strategy/strategies.h"
#include "checkpoint/format/folder.h"
#include "file_faults.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kRows = 40;

Tensor content_of(std::int64_t step) {
  return Tensor::full({kRows, 3}, DType::kFloat32, static_cast<double>(step));
}

/// The state of a training, on each worker.
struct Training {
  explicit Training(const Strategy& strategy) : scope(strategy.scope()), checkpoint(strategy) {
    checkpoint.add("weights", weights);
    checkpoint.add("step", step);
  }
  void advance_to(std::int64_t next) {
    weights.assign(content_of(next));
    step = next;
  }

  StrategyScope scope;
  Variable weights{{.initial_value = content_of(0)}};
  std::int64_t step = 0;
  Checkpoint checkpoint;
};

/// How checkpoints are saved: `save` makes that of a step.
struct SaveMode {
  const char* name;
  int workers;
  std::size_t kept;  ///< how many of the newest stay; 0: all
  void (*save)(Training& training, const std::string& folder, std::int64_t step);

  friend std::ostream& operator<<(std::ostream& stream, const SaveMode& mode) { return stream << mode.name; }
};

void save_alone(Training& training, const std::string& folder, std::int64_t step) {
  training.checkpoint.save(folder, step);
}

/// The training goes on meanwhile.
void save_in_the_background(Training& training, const std::string& folder, std::int64_t step) {
  training.checkpoint.save_async(folder, step);
  training.advance_to(step + 1);
  training.checkpoint.wait();
}

void save_and_remove_older(Training& training, const std::string& folder, std::int64_t step) {
  CheckpointManager(training.checkpoint, folder, {.max_to_keep = 1}).save(step);
}

void save_in_the_background_and_remove_older(Training& training, const std::string& folder,
                                             std::int64_t step) {
  CheckpointManager manager(training.checkpoint, folder, {.max_to_keep = 1});
  manager.save_async(step);
  training.checkpoint.wait();
}

constexpr SaveMode kModes[] = {
    {"Checkpoint", 1, 0, save_alone},
    {"CheckpointOfTwoWorkers", 2, 0, save_alone},
    {"InTheBackground", 1, 0, save_in_the_background},
    {"InTheBackgroundOfTwoWorkers", 2, 0, save_in_the_background},
    {"Manager", 1, 1, save_and_remove_older},
    {"ManagerInTheBackground", 1, 2, save_in_the_background_and_remove_older},
};

void on_each_worker(int workers, const std::function<void(Training&)>& work) {
  for_each_worker(workers, [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
    Training training(strategy);
    work(training);
  });
}

/// Saves a step on all workers. Returns the error of the first one, empty if there was none; all have it.
std::string save(const SaveMode& mode, const std::string& folder, std::int64_t step) {
  std::mutex mutex;
  std::vector<std::string> errors;
  on_each_worker(mode.workers, [&](Training& training) {
    training.advance_to(step);
    std::string text;
    try {
      mode.save(training, folder, step);
    } catch (const Unavailable& error) {
      text = error.what();
    }
    const std::lock_guard lock(mutex);
    errors.push_back(text);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, errors.front());
  return errors.front();
}

enum class Ending { kDone, kDoneWithFault, kKilled };

/// Lets a process of its own do this; returns how it ended. Only the main thread lives on in the child of a
/// process, so that this one uses no strategy itself.
Ending in_own_process(const std::function<Ending()>& work) {
  constexpr int kFailed = 100;
  const pid_t child = ::fork();
  if (child == 0) {
    const Ending ending = work();
    ::_exit(::testing::Test::HasFailure() ? kFailed : static_cast<int>(ending));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return Ending::kKilled;
  if (WIFEXITED(status) && WEXITSTATUS(status) != kFailed) return static_cast<Ending>(WEXITSTATUS(status));
  ADD_FAILURE() << "a process ended with status " << status;
  return Ending::kDone;
}

std::set<std::int64_t> sound_steps(const std::string& folder) {
  std::set<std::int64_t> steps;
  for (const FoundCheckpoint& found : list_checkpoints(folder)) {
    EXPECT_THAT(verify_checkpoint(found.path), IsEmpty());
    steps.insert(found.step);
  }
  return steps;
}

/// Restores the newest checkpoint by one worker, and checks that it is that of a whole step.
std::int64_t restored_step(const std::string& folder) {
  std::int64_t step = -1;
  on_each_worker(1, [&](Training& training) {
    training.checkpoint.restore(list_checkpoints(folder).back().path).assert_consumed();
    step = training.step;
    EXPECT_EQ(numbers(training.weights.read()), numbers(content_of(step)));
  });
  return step;
}

std::set<std::string> entries_of(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

class FaultySave : public ::testing::TestWithParam<SaveMode> {
 protected:
  /// The save of step 2 meets `fault` at its call `number`. Returns whether there was such a call.
  static bool is_survived(const FileFault& fault, int number) {
    const TemporaryFolder temporary;
    const std::string folder = temporary.path("checkpoints");
    const Ending ending = in_own_process([&] {
      EXPECT_EQ(save(GetParam(), folder, 1), "");
      std::string error;
      std::string what;
      {
        FileFaults faults(folder, fault, number);
        error = save(GetParam(), folder, 2);
        what = faults.what();
      }
      // On a disk that fails from the name on, it can only be said that there is a checkpoint.
      const bool is_there =
          error.empty() || (fault.is_lasting && error.find("step-2' is complete") != std::string::npos);
      EXPECT_EQ(sound_steps(folder).contains(2), is_there) << what << ": " << error;
      check_error(fault, error, folder);
      return what.empty() ? Ending::kDone : Ending::kDoneWithFault;
    });
    const Ending next = in_own_process([&] {
      const std::set<std::int64_t> steps = sound_steps(folder);
      EXPECT_TRUE(steps.contains(1) || steps.contains(2));
      EXPECT_EQ(restored_step(folder), *steps.rbegin());
      check_next_save(folder, steps);
      return Ending::kDone;
    });
    EXPECT_EQ(next, Ending::kDone);
    return ending != Ending::kDone;
  }

  static void check_error(const FileFault& fault, const std::string& error, const std::string& folder) {
    if (error.empty()) return;
    EXPECT_EQ(fault.kind, FileFault::Kind::kError) << error;
    EXPECT_NE(fault.error, EINTR) << error;
    EXPECT_THAT(error, AllOf(HasSubstr(folder), HasSubstr(std::strerror(fault.error))));
    if (GetParam().workers > 1) {
      EXPECT_THAT(error, AnyOf(HasSubstr("worker 0 (host "), HasSubstr("worker 1 (host ")));
    }
  }

  /// The next job saves another step, and nothing of the failed one is left.
  static void check_next_save(const std::string& folder, std::set<std::int64_t> steps) {
    EXPECT_EQ(save(GetParam(), folder, 3), "");
    EXPECT_EQ(restored_step(folder), 3);
    steps.insert(3);
    if (GetParam().kept > 0)
      while (steps.size() > GetParam().kept) steps.erase(steps.begin());
    std::set<std::string> expected{".writer"};
    for (const std::int64_t step : steps) expected.insert("step-" + std::to_string(step));
    EXPECT_EQ(entries_of(folder), expected);
  }

  /// @returns at how many calls there was a fault.
  int survive_at_every_call(const FileFault& fault) {
    int number = 0;
    while (is_survived(fault, number)) {
      if (HasFailure()) {
        ADD_FAILURE() << "at call " << number;
        break;
      }
      ++number;
    }
    return number;
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, FaultySave, ::testing::ValuesIn(kModes),
                         [](const auto& mode) { return std::string(mode.param.name); });

TEST_P(FaultySave, OfAProcessThatIsKilled) {
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kKill}), 20);
}

TEST_P(FaultySave, OnAFullDisk) {
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kError, .error = ENOSPC}), 10);
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kError, .error = ENOSPC, .is_lasting = true}), 0);
}

TEST_P(FaultySave, OnADiskThatFails) {
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kError, .error = EIO}), 20);
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kError, .error = EIO, .is_lasting = true}), 20);
}

TEST_P(FaultySave, InAFolderThatIsNotItsOwn) {
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kError, .error = EACCES}), 5);
}

TEST_P(FaultySave, WhereFoldersCannotBeRenamed) {
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kError, .error = EXDEV}), 0);
}

TEST_P(FaultySave, WithSignals) {
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kError, .error = EINTR}), 10);
}

TEST_P(FaultySave, ThatWritesLessThanItWasAskedTo) {
  EXPECT_GT(survive_at_every_call({.kind = FileFault::Kind::kShort}), 3);
}

}  // namespace
}  // namespace cohort::testing
