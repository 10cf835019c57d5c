// A process that saves is killed at every one of its system calls.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint_folder.h>

#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::IsEmpty;

enum class Outcome { kKilled, kEnded, kNotTraced };

/// The system call that a process which has stopped is about to make; nothing if it stopped elsewhere.
std::optional<std::uint64_t> next_call(pid_t process) {
  __ptrace_syscall_info call{};
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof call, &call) <= 0) return std::nullopt;
  if (call.op != PTRACE_SYSCALL_INFO_ENTRY) return std::nullopt;
  return call.entry.nr;
}

/// A save begins with the making of a folder.
bool makes_a_folder(std::uint64_t call) {
#ifdef SYS_mkdir
  if (call == SYS_mkdir) return true;
#endif
  return call == SYS_mkdirat;
}

/// Saves step 2 in `folder` by another process, and kills it before call number `calls` of the save.
Outcome save_and_kill(const std::string& folder, int calls) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
    ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // which needs to trace the process itself
    ::execl(MAKE_CHECKPOINT, MAKE_CHECKPOINT, folder.c_str(), "2", static_cast<char*>(nullptr));
    ::_exit(78);
  }
  int status = 0;
  bool is_saving = false;
  ::waitpid(child, &status, 0);
  if (WIFSTOPPED(status)) ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD);
  for (; WIFSTOPPED(status); ::waitpid(child, &status, 0)) {
    const auto call = next_call(child);
    is_saving = is_saving || (call && makes_a_folder(*call));
    if (is_saving && call && calls-- == 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return Outcome::kKilled;
    }
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return Outcome::kNotTraced;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return Outcome::kEnded;
}

int save(const std::string& folder, int step) {
  return std::system(("'" MAKE_CHECKPOINT "' " + folder + " " + std::to_string(step)).c_str());
}

TEST(KilledSave, LeavesACompleteCheckpointOrNone) {
  bool was_without = false;
  bool was_complete = false;
  for (int calls = 0;; ++calls) {
    const TemporaryFolder folder;
    const std::string path = folder.path("checkpoints");
    ASSERT_EQ(save(path, 1), 0);
    const Outcome outcome = save_and_kill(path, calls);
    if (outcome == Outcome::kNotTraced) GTEST_SKIP() << "processes cannot be traced here";
    const std::vector<FoundCheckpoint> found = list_checkpoints(path);
    for (const FoundCheckpoint& each : found)
      EXPECT_THAT(verify_checkpoint(each.path), IsEmpty()) << each.path << " after " << calls;
    ASSERT_GE(found.size(), 1);
    if (outcome == Outcome::kEnded) break;
    (found.size() == 1 ? was_without : was_complete) = true;
    // What is left does not disturb the next job.
    if (found.size() == 1) {
      ASSERT_EQ(save(path, 2), 0) << "after " << calls;
    }
    EXPECT_THAT(verify_checkpoint(path + "/step-2"), IsEmpty()) << "after " << calls;
  }
  EXPECT_TRUE(was_without);
  EXPECT_TRUE(was_complete);
}

}  // namespace
}  // namespace cohort::testing
