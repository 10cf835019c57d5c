// What a supervisor tells a server's process, and when it does not. A shell plays the server.
#include "own_task.h"

#include <poll.h>
#include <sys/wait.h>

#include <csignal>

#include <gmock/gmock.h>

#include "remote/supervised_task.h"

namespace cohort::supervise {
namespace {

using remote::SupervisorWord;

/// Asks twice, reads one word, and ends with it as status.
constexpr const char* kAskTwice = R"(
  line=$(sed 's/.*"supervisor":\([0-9]*\).*/\1/' "/proc/self/fd/$COHORT_TASK_FD")
  printf '\001' >&"$line"
  printf '\001' >&"$line"
  read -rN 1 -u "$line" word
  printf -v status %d "'$word"
  exit "$status")";

remote::TaskPlace standby_at(const remote::TaskListeners& listeners) {
  remote::TaskPlace place;
  place.task = listeners.address.task;
  place.addresses = {listeners.address};
  place.secret = remote::random_secret();
  place.memory = listeners.memory.get();
  place.standby = true;
  return place;
}

class OneServer : public testing::Test {
 protected:
  ~OneServer() override {
    task_.signal(SIGKILL);
    if (task_.runs()) ::waitpid(task_.pid(), nullptr, 0);
  }

  /// Both questions of the process, in their order.
  std::vector<ServerWord> hear_two() {
    std::vector<ServerWord> heard;
    while (heard.size() < 2) {
      std::vector<pollfd> lines;
      task_.add_to(lines);
      EXPECT_EQ(::poll(lines.data(), lines.size(), 20'000), 1) << "the server says nothing";
      const std::vector<ServerWord> more = task_.hear();
      if (more.empty()) break;
      heard.insert(heard.end(), more.begin(), more.end());
    }
    return heard;
  }

  void answer(const ServerWord& question) {
    task_.pass_on({.server = 1, .word = SupervisorWord::kGranted, .number = question.number});
  }

  int status_of_process() {
    int status = 0;
    ::waitpid(task_.pid(), &status, 0);
    task_.has_ended();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const Command command_{.words = {"bash", "-c", kAskTwice}, .variables = variables_of_tasks(false)};
  remote::TaskListeners listeners_ = remote::listen_for({"ps", 1}, remote::Interfaces::kLoopback);
  OwnTask task_{standby_at(listeners_), "n0", true};
};

TEST_F(OneServer, GetsTheAnswerToItsLastQuestion) {
  task_.start(command_, false);
  const std::vector<ServerWord> asked = hear_two();
  ASSERT_EQ(asked.size(), 2);
  EXPECT_EQ(asked[0].server, 1);
  EXPECT_EQ(asked[0].word, SupervisorWord::kAlone);
  answer(asked[1]);
  EXPECT_EQ(status_of_process(), static_cast<int>(SupervisorWord::kGranted));
}

TEST_F(OneServer, GetsNoLateAnswer) {
  task_.start(command_, false);
  const std::vector<ServerWord> asked = hear_two();
  ASSERT_EQ(asked.size(), 2);
  answer(asked[0]);
  task_.take_over();
  EXPECT_EQ(status_of_process(), static_cast<int>(SupervisorWord::kTakeOver));
}

TEST_F(OneServer, GetsNoAnswerToAProcessBeforeIt) {
  task_.start(command_, false);
  const std::vector<ServerWord> before = hear_two();
  ASSERT_EQ(before.size(), 2);
  task_.signal(SIGKILL);
  EXPECT_EQ(status_of_process(), -1);
  task_.start_again(command_, false);
  EXPECT_EQ(task_.restarts(), 1);
  answer(before[1]);
  task_.take_over();
  EXPECT_EQ(status_of_process(), static_cast<int>(SupervisorWord::kTakeOver));
}

TEST_F(OneServer, IsCalledAStandbyUntilItTakesOver) {
  task_.start(command_, false);
  EXPECT_THAT(task_.describe(), testing::StartsWith("the standby of ps 1 (host n0, pid "));
  task_.take_over();
  EXPECT_THAT(task_.describe(), testing::StartsWith("ps 1 (host n0, pid "));
  EXPECT_EQ(status_of_process(), static_cast<int>(SupervisorWord::kTakeOver));
}

TEST_F(OneServer, HasNoLineWhereItIsStartedAfterATakeOver) {
  task_.take_over();
  task_.start({.words = {"true"}, .variables = {}}, false);
  std::vector<pollfd> lines;
  task_.add_to(lines);
  EXPECT_TRUE(lines.empty());
  EXPECT_EQ(status_of_process(), 0);
}

TEST_F(OneServer, IsNotWaitedForAfterItHasClosedItsLine) {
  task_.start({.words = {"true"}, .variables = {}}, false);
  EXPECT_EQ(status_of_process(), 0);
  EXPECT_TRUE(task_.hear().empty());
  std::vector<pollfd> lines;
  task_.add_to(lines);
  EXPECT_TRUE(lines.empty());
}

}  // namespace
}  // namespace cohort::supervise
