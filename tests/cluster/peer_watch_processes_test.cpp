// Workers of a PeerWatch as processes: what happens when one is killed, stopped or
// signalled, and what the others write and how they end.
#include "cluster/peer_watch.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kMostWorkers = 4;

/// What the processes share: the exchange of blobs, and a count of those that are ready.
struct Shared {
  std::atomic<int> arrived;
  std::atomic<int> ready;
  char blobs[16][kMostWorkers][512];
};

struct Ending {
  int status = 0;
  std::string output;
  std::chrono::duration<double> after{};
  [[nodiscard]] bool exited_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  [[nodiscard]] bool ended_by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
};

/// Forks one process per worker, which makes a watch, says that it is ready and runs `body`.
class Processes {
 public:
  using Body = std::function<int(PeerWatch& watch)>;

  Processes(const std::vector<int>& nodes, const std::vector<Body>& bodies,
            std::chrono::milliseconds silence = 1s, std::chrono::milliseconds beat = 50ms,
            std::chrono::milliseconds interrupt = 300ms)
      : silence_(silence), beat_(beat), interrupt_(interrupt) {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared();
    for (std::size_t rank = 0; rank < bodies.size(); ++rank) {
      workers_.push_back({static_cast<int>(rank), nodes[rank], 0, fmt::format("n{}", nodes[rank]),
                          1000 + static_cast<int>(rank)});
    }
    for (std::size_t rank = 0; rank < bodies.size(); ++rank) start(static_cast<int>(rank), bodies[rank]);
    while (shared_->ready < static_cast<int>(bodies.size())) std::this_thread::sleep_for(1ms);
    start_ = std::chrono::steady_clock::now();
  }

  ~Processes() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
    }
    for (const int fd : outputs_) ::close(fd);
    ::munmap(shared_, sizeof(Shared));
  }

  void signal(int rank, int number) { ::kill(pids_[static_cast<std::size_t>(rank)], number); }

  void wait_until_stopped(int rank) { ::waitpid(pids_[static_cast<std::size_t>(rank)], nullptr, WUNTRACED); }

  Ending wait(int rank) {
    Ending ending;
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    ::waitpid(pid, &ending.status, 0);
    pid = -1;
    ending.after = std::chrono::steady_clock::now() - start_;
    char buffer[4096];
    const ssize_t got = ::read(outputs_[static_cast<std::size_t>(rank)], buffer, sizeof buffer);
    if (got > 0) ending.output.assign(buffer, static_cast<std::size_t>(got));
    return ending;
  }

  [[nodiscard]] std::string name(int rank) const {
    return describe(workers_[static_cast<std::size_t>(rank)]);
  }

 private:
  void start(int rank, const Body& body) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      std::signal(SIGINT, SIG_DFL);  // shells ignore it for what they start in the background
      PeerWatch watch(options(rank));
      ++shared_->ready;
      ::_exit(body(watch));
    }
    ::close(ends[1]);
    pids_.push_back(pid);
    outputs_.push_back(ends[0]);
  }

  PeerWatchOptions options(int rank) {
    PeerWatchOptions options;
    options.rank = rank;
    options.workers = workers_;
    options.grace = 0.4s;
    options.beat = beat_;
    options.silence = silence_;
    options.interrupt = interrupt_;
    options.exchange = [this, rank, round = 0](std::string_view blob) mutable {
      auto& blobs = shared_->blobs[round++];
      blob.copy(blobs[rank], sizeof blobs[rank] - 1);
      const int wanted = round * static_cast<int>(workers_.size());
      ++shared_->arrived;
      while (shared_->arrived < wanted) std::this_thread::sleep_for(100us);
      return std::vector<std::string>(blobs, blobs + workers_.size());
    };
    return options;
  }

  std::chrono::milliseconds silence_;
  std::chrono::milliseconds beat_;
  std::chrono::milliseconds interrupt_;
  Shared* shared_;
  std::vector<WorkerInfo> workers_;
  std::vector<pid_t> pids_;
  std::vector<int> outputs_;
  std::chrono::steady_clock::time_point start_;
};

int compute_for_ever(PeerWatch&) {
  volatile unsigned counter = 0;
  while (true) counter = counter + 1;
}

int leave(PeerWatch& watch) { return watch.leave() ? 0 : 7; }

TEST(PeerWatchProcesses, EndsThoseWhoComputeWhenOneIsKilled) {
  Processes processes({0, 0, 1}, {compute_for_ever, compute_for_ever, compute_for_ever});
  processes.signal(2, SIGKILL);
  for (const int rank : {0, 1}) {
    const Ending ending = processes.wait(rank);
    EXPECT_TRUE(ending.exited_with(EX_TEMPFAIL)) << ending.status;
    EXPECT_EQ(ending.output, "cohort: " + processes.name(rank) + " ends because " + processes.name(2) +
                                 " is gone: its process ended without leaving the session "
                                 "(cohort-info --explain unavailable)\n");
    EXPECT_LT(ending.after, 3s);
  }
}

TEST(PeerWatchProcesses, SeesTheDeathOfAProcessWhoseChildKeepsTheSocket) {
  const auto fork_and_compute = [](PeerWatch& watch) {
    if (::fork() == 0) ::sleep(3), ::_exit(0);
    return compute_for_ever(watch);
  };
  for (const int victim : {0, 1}) {
    std::vector<Processes::Body> bodies(2, compute_for_ever);
    bodies[static_cast<std::size_t>(victim)] = fork_and_compute;
    Processes processes({0, 0}, bodies);
    std::this_thread::sleep_for(50ms);
    processes.signal(victim, SIGKILL);
    const Ending ending = processes.wait(1 - victim);
    EXPECT_THAT(ending.output, HasSubstr(processes.name(victim) + " is gone"));
    EXPECT_LT(ending.after, 2s);
  }
}

TEST(PeerWatchProcesses, NoticesAStoppedProcessOnAnotherNode) {
  Processes processes({0, 0, 1}, {compute_for_ever, compute_for_ever, compute_for_ever});
  processes.signal(2, SIGSTOP);
  for (const int rank : {0, 1}) {
    const Ending ending = processes.wait(rank);
    EXPECT_THAT(ending.output, HasSubstr(processes.name(2) + " is out of reach: no sign of life for 1 s"));
    EXPECT_LT(ending.after, 5s);
  }
}

TEST(PeerWatchProcesses, NoticesAStoppedProcessOnTheSameNode) {
  // The chief, a worker beside it, the first worker of another node and one beside that.
  for (const int stopped : {0, 1, 2, 3}) {
    Processes processes({0, 0, 1, 1}, std::vector<Processes::Body>(4, compute_for_ever));
    processes.signal(stopped, SIGSTOP);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == stopped) continue;
      const Ending ending = processes.wait(rank);
      EXPECT_THAT(ending.output,
                  HasSubstr(processes.name(stopped) + " is out of reach: no sign of life for 1 s"));
      EXPECT_LT(ending.after, 5s);
    }
  }
}

// The shortest silence that settings allow.
TEST(PeerWatchProcesses, NoticesASilenceOfTwoBeats) {
  for (const int stopped : {0, 1}) {
    Processes processes({0, 0}, {compute_for_ever, compute_for_ever}, 1s, 500ms);
    processes.signal(stopped, SIGSTOP);
    const Ending ending = processes.wait(1 - stopped);
    EXPECT_THAT(ending.output,
                HasSubstr(processes.name(stopped) + " is out of reach: no sign of life for 1 s"));
  }
}

TEST(PeerWatchProcesses, NeverJudgesASilenceOfZero) {
  Processes processes({0, 0, 1}, {leave, leave, leave}, 0s);
  processes.signal(2, SIGSTOP);
  processes.wait_until_stopped(2);
  std::this_thread::sleep_for(500ms);  // ten beats
  processes.signal(2, SIGCONT);
  for (const int rank : {0, 1, 2}) {
    const Ending ending = processes.wait(rank);
    EXPECT_TRUE(ending.exited_with(0)) << ending.output;
  }
}

TEST(PeerWatchProcesses, IsNoJudgeOfOthersAfterAllWereStopped) {
  Processes processes({0, 0, 1}, std::vector<Processes::Body>(3, [](PeerWatch& watch) {
                        ::raise(SIGSTOP);
                        return leave(watch);
                      }));
  for (const int rank : {0, 1, 2}) processes.wait_until_stopped(rank);
  std::this_thread::sleep_for(2s);  // longer than the silence that would be a fault
  for (const int rank : {0, 1, 2}) processes.signal(rank, SIGCONT);
  for (const int rank : {0, 1, 2}) {
    const Ending ending = processes.wait(rank);
    EXPECT_TRUE(ending.exited_with(0)) << "status " << ending.status << ", " << ending.output;
  }
}

TEST(PeerWatchProcesses, SaysNothingElseWhenTheWholeJobIsInterrupted) {
  const auto until_all_have_their_signal = 10s;
  for (const int number : {SIGTERM, SIGINT}) {
    Processes processes({0, 0, 1, 1}, std::vector<Processes::Body>(4, compute_for_ever), 1s, 50ms,
                        until_all_have_their_signal);
    for (int rank = 3; rank >= 0; --rank) {
      processes.signal(rank, number);
      std::this_thread::sleep_for(10ms);
    }
    for (int rank = 0; rank < 4; ++rank) {
      const Ending ending = processes.wait(rank);
      EXPECT_TRUE(ending.ended_by(number)) << ending.status;
      EXPECT_EQ(ending.output, "cohort: " + processes.name(rank) + " ends: interrupted by " +
                                   (number == SIGTERM ? "SIGTERM" : "SIGINT") + "\n");
    }
  }
}

TEST(PeerWatchProcesses, TellsWhoWasInterruptedAlone) {
  Processes processes({0, 0, 1}, {compute_for_ever, compute_for_ever, compute_for_ever});
  processes.signal(1, SIGTERM);
  EXPECT_EQ(processes.wait(1).output, "cohort: " + processes.name(1) + " ends: interrupted by SIGTERM\n");
  for (const int rank : {0, 2}) {
    const Ending ending = processes.wait(rank);
    EXPECT_TRUE(ending.exited_with(EX_TEMPFAIL));
    EXPECT_THAT(ending.output,
                AllOf(HasSubstr(processes.name(1) + " was ended by SIGTERM"), Not(HasSubstr("gone"))));
  }
}

TEST(PeerWatchProcesses, PrintsTheKnownCauseWhenALauncherEndsTheRest) {
  Processes processes({0, 0}, {compute_for_ever, compute_for_ever});
  processes.signal(1, SIGKILL);
  std::this_thread::sleep_for(150ms);
  processes.signal(0, SIGTERM);
  const Ending ending = processes.wait(0);
  EXPECT_TRUE(ending.ended_by(SIGTERM));
  EXPECT_THAT(ending.output,
              HasSubstr(processes.name(0) + " ends because " + processes.name(1) + " is gone"));
}

TEST(PeerWatchProcesses, LeavesSignalsOfTheProgramAlone) {
  ::signal(SIGTERM, SIG_IGN);
  Processes processes({0, 0}, {leave, [](PeerWatch& watch) {
                                 std::this_thread::sleep_for(200ms);
                                 return leave(watch);
                               }});
  processes.signal(0, SIGTERM);
  processes.signal(1, SIGTERM);
  ::signal(SIGTERM, SIG_DFL);
  for (const int rank : {0, 1}) EXPECT_TRUE(processes.wait(rank).exited_with(0));
}

}  // namespace
}  // namespace cohort
