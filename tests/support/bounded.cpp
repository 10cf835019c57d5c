// bounded COMMAND [ARGUMENT...]
//
// Runs a test, and ends as it ends: with its status, or by its signal. What TEST_TIME_LIMIT_SECONDS says is
// its bound. When that passes, the log gets all processes of the test with the stacks of their threads; then
// these are ended, and `bounded` ends by SIGALRM, which no property of a test in CTest takes for a success,
// as it may take an exit status. Who outlives the test is named and ended, too.
//
// Each test has a folder of its own for Open MPI's sessions, which is removed. Launchers that start and end
// beside each other, or soon after each other, make and remove the same one in it, and now and then one
// fails: so that is made here, and is never empty.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "process_tree.h"

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kForTheRest = 5s;  // to end after the test
constexpr auto kToCleanUp = 3s;   // when they are asked to end

void say(const std::string& line) { fmt::print(stderr, "bounded: {}\n", line); }

std::optional<std::chrono::seconds> bound() {
  const char* const text = ::getenv("TEST_TIME_LIMIT_SECONDS");
  const long seconds = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  if (seconds <= 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

sigset_t waited_for() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

pid_t start(char** command, const sigset_t& mask) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // CTest kills nobody but its own child
  if (::getppid() != parent) ::_exit(1);
  ::execvp(command[0], command);
  say(fmt::format("cannot run {}: {}", command[0], std::strerror(errno)));
  ::_exit(127);
}

/// Waits for a signal, and passes on what ends programs, but not what a terminal has sent to everybody.
void wait_for_signal(pid_t command, Clock::duration limit) {
  const sigset_t set = waited_for();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count();
  const timespec until{.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
  siginfo_t info{};
  const int signal = ::sigtimedwait(&set, &info, &until);
  if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) ::kill(command, signal);
}

/// How the command has ended, as of waitpid, if it has by then. Orphans are waited for as well.
std::optional<int> status_by(Clock::time_point end, pid_t command) {
  while (true) {
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == command) return status;
    }
    const auto left = end - Clock::now();
    if (left <= 0s) return std::nullopt;
    wait_for_signal(command, left);
  }
}

class SessionFolder {
 public:
  SessionFolder() {
    std::error_code error;
    const std::filesystem::path place = std::filesystem::temp_directory_path(error);
    std::string path = (place / "bounded-XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr) return;
    path_ = path;
    ::setenv("OMPI_MCA_orte_tmpdir_base", path_.c_str(), 1);
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) return;
    const std::string name(host.data());
    const std::string top = fmt::format("{}/ompi.{}.{}", path_, name.substr(0, name.find('.')), ::geteuid());
    if (::mkdir(top.c_str(), 0700) == 0) ::mkdir((top + "/kept").c_str(), 0700);
  }
  void remove() const {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
};

[[noreturn]] void end_by(int signal) {
  const rlimit no_core{};  // where there is one, it is the command's
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) end_by(WTERMSIG(status));
  ::_exit(WEXITSTATUS(status));
}

void end_all() {
  const std::vector<Process> left = end_descendants(kToCleanUp);
  if (left.empty()) return;
  say("these cannot be killed:");
  print(left);
}

[[noreturn]] void give_up(std::chrono::seconds limit, const char* name, const SessionFolder& sessions) {
  say(fmt::format("no end after {} s: {}; its processes:", limit.count(), name));
  const std::vector<Process> processes = descendants();
  print(processes);
  explain(processes);
  end_all();
  say(fmt::format("no end after {} s: {}; {} processes were ended, see above what they waited for",
                  limit.count(), name, processes.size()));
  sessions.remove();
  end_by(SIGALRM);
}

int run(char** command) {
  const auto limit = bound();
  if (command[0] == nullptr || !limit) {
    say("usage: TEST_TIME_LIMIT_SECONDS=N bounded COMMAND [ARGUMENT...]");
    return 2;
  }
  const auto end = Clock::now() + *limit;
  const SessionFolder sessions;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGCHLD, SIG_DFL);
  const sigset_t set = waited_for();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &set, &before);
  const pid_t child = start(command, before);
  if (child < 0) {
    say(fmt::format("cannot start a process: {}", std::strerror(errno)));
    return 1;
  }
  const std::optional<int> status = status_by(end, child);
  if (!status) give_up(*limit, command[0], sessions);
  if (!have_ended_within(kForTheRest)) {
    say(fmt::format("{} has ended, but these of its processes live on:", command[0]));
    print(descendants());
    end_all();
  }
  sessions.remove();
  end_as(*status);
}

}  // namespace
}  // namespace cohort::testing

int main(int, char** argv) { return cohort::testing::run(argv + 1); }
