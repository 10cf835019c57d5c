#include "base/system_calls.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

/// A child that sleeps, and who it says it is.
struct Child {
  pid_t pid = -1;
  ProcessIdentity identity;
};

Child start_child() {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  Child child;
  child.pid = ::fork();
  if (child.pid == 0) {
    const ProcessIdentity own = own_identity();
    static_cast<void>(::write(ends[1], &own, sizeof own));
    while (true) ::pause();
  }
  EXPECT_EQ(::read(ends[0], &child.identity, sizeof child.identity),
            static_cast<ssize_t>(sizeof child.identity));
  ::close(ends[0]);
  ::close(ends[1]);
  return child;
}

/// The state once it is this one; the last one after five seconds.
ProcessState wait_for(ProcessState wanted, const ProcessIdentity& process) {
  const auto end = std::chrono::steady_clock::now() + 5s;
  ProcessState state = state_of(process);
  while (state != wanted && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
    state = state_of(process);
  }
  return state;
}

TEST(ProcessState, OfThisProcessIsRunning) { EXPECT_EQ(state_of(own_identity()), ProcessState::kRunning); }

TEST(ProcessState, FollowsAChildThroughItsLife) {
  const Child child = start_child();
  EXPECT_EQ(child.identity.pid, child.pid);
  EXPECT_EQ(state_of(child.identity), ProcessState::kRunning);
  ::kill(child.pid, SIGSTOP);
  EXPECT_EQ(wait_for(ProcessState::kStopped, child.identity), ProcessState::kStopped);
  ::kill(child.pid, SIGKILL);
  EXPECT_EQ(wait_for(ProcessState::kGone, child.identity), ProcessState::kGone) << "not waited for";
  ::waitpid(child.pid, nullptr, 0);
  EXPECT_EQ(state_of(child.identity), ProcessState::kGone);
}

TEST(ProcessState, OfAProcessThatGotTheNumberOfAnotherIsGone) {
  ProcessIdentity earlier = own_identity();
  --earlier.started;
  EXPECT_EQ(state_of(earlier), ProcessState::kGone);
}

TEST(ProcessState, OutOfSightIsUnknown) {
  ProcessIdentity elsewhere = own_identity();
  ++elsewhere.pid_namespace;
  EXPECT_EQ(state_of(elsewhere), ProcessState::kUnknown);
}

}  // namespace
}  // namespace cohort
