// Tasks in processes of their own that end, stop, fork and come back.
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks.h"

namespace cohort::remote {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class LossTest : public testing::TestWithParam<Way> {
 protected:
  LossTest() : place({"ps", 1}, GetParam()), task(place.start()) {}

  EndpointOptions own_options() { return with_short_silence(options_of({"worker", 0}, GetParam())); }

  /// Connects and waits for one echo.
  Peer& connect() {
    Peer& peer = own.connect(place.address(), Deadline::after(10s));
    order(peer, kEcho, 77);
    return peer;
  }

  /// Returns the number of the answer.
  std::uint64_t order(Peer& peer, Order order, std::uint64_t number, const std::string& body = {}) {
    const std::size_t before = record.received.size();
    peer.send(order, number, bytes_of(body));
    EXPECT_TRUE(wait([&] { return record.received.size() > before; }));
    return record.received.size() > before ? record.received.back().number : 0;
  }

  bool wait(const std::function<bool()>& condition) {
    return own.wait_until(condition, Deadline::after(20s));
  }

  Place place;
  TaskProcess task;
  Recorder record;
  Endpoint own{own_options(), record};
};
COHORT_INSTANTIATE_WAYS(LossTest);

TEST_P(LossTest, SeesAKilledTask) {
  Peer& peer = connect();
  task.send_signal(SIGKILL);
  ASSERT_TRUE(wait([&] { return !record.lost.empty(); }));
  EXPECT_EQ(record.lost.front(), &peer);
  EXPECT_TRUE(peer.lost());
  EXPECT_THAT(record.errors.front(), AllOf(HasSubstr("ps 1 (host "), HasSubstr(" has ended")));
  // A lost peer gets nothing, and that is no error.
  peer.send(kEcho, 1);
  EXPECT_EQ(peer.backlog(), 0U);
}

TEST_P(LossTest, HandsOverWhatWasSentBeforeTheEnd) {
  // A sign of life that the task has not read when it ends would take back what it sent: TCP resets the
  // connection.
  EndpointOptions options = own_options();
  options.heartbeat = 1h;
  options.silence = 0ms;
  Endpoint without_signs(options, record);
  Peer& peer = without_signs.connect(place.address(), Deadline::after(10s));
  peer.send(kSay, 1000, bytes_of("some bytes"));
  peer.send(kExit, 9);
  ASSERT_TRUE(without_signs.wait_until([&] { return !record.lost.empty(); }, Deadline::after(20s)));
  ASSERT_EQ(record.received.size(), 1001U);
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(record.received[i].number, i);
  EXPECT_EQ(record.received.back().number, 9U);
}

TEST_P(LossTest, SeesTheEndThroughAForkedChild) {
  Peer& peer = connect();
  const auto child = static_cast<pid_t>(order(peer, kFork, 0));
  ASSERT_GT(child, 0);
  task.send_signal(SIGKILL);
  EXPECT_TRUE(wait([&] { return !record.lost.empty(); }));
  ::kill(child, SIGKILL);
}

TEST_P(LossTest, CountsAStoppedTaskAsLost) {
  connect();
  const auto begin = std::chrono::steady_clock::now();
  task.send_signal(SIGSTOP);
  ASSERT_TRUE(wait([&] { return !record.lost.empty(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 500ms);
  EXPECT_THAT(record.errors.front(), HasSubstr("gave no sign of life for "));
  // Once it goes on it may be connected to again.
  task.send_signal(SIGCONT);
  Peer& again = connect();
  EXPECT_EQ(again.incarnation(), record.lost.front()->incarnation());
}

TEST_P(LossTest, WaitsForATaskThatComputes) {
  Peer& peer = connect();
  EXPECT_EQ(order(peer, kCompute, 2500), 2500U);
  EXPECT_TRUE(record.lost.empty());
}

TEST_P(LossTest, IsNotTakenForLostWhileItComputes) {
  Peer& peer = connect();
  const auto end = std::chrono::steady_clock::now() + 2500ms;
  while (std::chrono::steady_clock::now() < end) ::sched_yield();
  EXPECT_EQ(order(peer, kEcho, 5), 5U);
  EXPECT_TRUE(record.lost.empty());
}

TEST_P(LossTest, MeetsANewIncarnationAtTheSameAddress) {
  std::uint64_t incarnation = connect().incarnation();
  std::optional<TaskProcess> next;
  for (std::size_t round = 1; round <= 3; ++round) {
    (next ? *next : task).send_signal(SIGKILL);
    ASSERT_TRUE(wait([&] { return record.lost.size() == round; }));
    // The listener stays, so the connection waits in its queue while nobody is there.
    if (round % 2 == 0) {
      EXPECT_THROW(own.connect(place.address(), Deadline::after(30ms)), Unavailable);
    }
    next.reset();
    next.emplace(place.address(), place.local_listener(), place.network_listener(), place.options());
    Peer& peer = connect();
    EXPECT_NE(peer.incarnation(), incarnation);
    incarnation = peer.incarnation();
  }
}

TEST_P(LossTest, WaitsForATaskThatStartsLate) {
  const Place late_place({"ps", 2}, GetParam());
  EXPECT_THROW(own.connect(late_place.address(), Deadline::after(50ms)), Unavailable);
  const TaskProcess late = late_place.start();
  EXPECT_EQ(own.connect(late_place.address(), Deadline::after(10s)).task(), (ClusterTask{"ps", 2}));
}

TEST_P(LossTest, TellsOthersThatAnEndpointIsGone) {
  Pair pair(GetParam());
  Recorder late_record;
  std::optional<Endpoint> late(std::in_place, options_of({"worker", 9}, GetParam()), late_record);
  Peer* to_a = nullptr;
  std::thread connecting([&] { to_a = &late->connect(pair.a.address(), Deadline::after(10s)); });
  ASSERT_TRUE(pair.poll_until([&] { return pair.a_record.connected.size() == 2; }));
  connecting.join();
  to_a->send(1, 1, bytes_of("bye"));
  late.reset();
  ASSERT_TRUE(pair.poll_until([&] { return !pair.a_record.lost.empty(); }));
  ASSERT_EQ(pair.a_record.received.size(), 1U);
  EXPECT_EQ(pair.a_record.received.front().body, "bye");
  EXPECT_EQ(pair.a_record.lost.front()->task(), (ClusterTask{"worker", 9}));
  EXPECT_TRUE(pair.b_record.lost.empty());
}

TEST_P(LossTest, LeavesConnectionsToTheParentOfAForkedChild) {
  Pair pair(GetParam());
  auto copied = std::make_unique<Endpoint>(own_options(), record);
  std::thread connecting([&] { static_cast<void>(copied->connect(pair.a.address(), Deadline::after(10s))); });
  ASSERT_TRUE(pair.poll_until([&] { return pair.a_record.connected.size() == 2; }));
  connecting.join();
  const pid_t child = ::fork();
  if (child == 0) {
    copied.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  pair.a_record.connected.back()->send(1, 5);
  ASSERT_TRUE(copied->wait_until([&] { return !record.received.empty(); }, Deadline::after(10s)));
  pair.a.poll();
  EXPECT_TRUE(pair.a_record.lost.empty());
}

TEST_P(LossTest, ReadsTheMemoryOfANeighbour) {
  Peer& peer = connect();
  // The process is a fork of this one, so what was there before is there at the same place.
  static const std::uint64_t before = 4711;
  std::uint64_t value = 0;
  const bool read = peer.read_memory(reinterpret_cast<std::uint64_t>(&before),
                                     std::as_writable_bytes(std::span(&value, 1)));
  EXPECT_EQ(read, GetParam() == Way::kNode);
  if (read) {
    EXPECT_EQ(value, before);
  }
  EXPECT_TRUE(peer.is_open());
  EXPECT_FALSE(peer.read_memory(16, std::as_writable_bytes(std::span(&value, 1)))) << "there is no memory";
  task.send_signal(SIGKILL);
  ::waitpid(task.pid(), nullptr, 0);
  EXPECT_FALSE(peer.read_memory(reinterpret_cast<std::uint64_t>(&before),
                                std::as_writable_bytes(std::span(&value, 1))));
}

}  // namespace
}  // namespace cohort::remote
