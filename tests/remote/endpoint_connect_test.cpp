// How tasks find each other, and whom they refuse.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/sockets.h"
#include "tasks.h"
#include "thrown.h"

namespace cohort::remote {
namespace {

using namespace std::chrono_literals;
using cohort::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ConnectTest : public ::testing::TestWithParam<Way> {};
COHORT_INSTANTIATE_WAYS(ConnectTest);

TEST_P(ConnectTest, RefusesAnotherSecret) {
  Recorder record;
  Endpoint server(options_of({"ps", 0}, GetParam()), record);
  EndpointOptions options = options_of({"worker", 0}, GetParam());
  options.secret = "another secret of sixteen bytes";
  Recorder other_record;
  Endpoint other(options, other_record);
  poll_meanwhile(server, [&] {
    const auto error = message_of(ErrorCode::kInvalidArgument, [&] {
      static_cast<void>(other.connect(server.address(), Deadline::after(10s)));
    });
    EXPECT_THAT(error, AllOf(HasSubstr("ps 0 on "), HasSubstr("has another secret")));
  });
  EXPECT_TRUE(record.connected.empty());
}

TEST_P(ConnectTest, RefusesAnotherTask) {
  Recorder record;
  Endpoint server(options_of({"ps", 0}, GetParam()), record);
  Recorder other_record;
  Endpoint other(options_of({"worker", 0}, GetParam()), other_record);
  Address wrong = server.address();
  wrong.task.id = 5;
  poll_meanwhile(server, [&] {
    const auto error = message_of(ErrorCode::kInvalidArgument,
                                  [&] { static_cast<void>(other.connect(wrong, Deadline::after(10s))); });
    EXPECT_THAT(error, AllOf(HasSubstr("ps 5 on "), HasSubstr("ps 0 answers there")));
  });
  EXPECT_TRUE(record.connected.empty());
}

TEST_P(ConnectTest, SaysWhyATaskCannotBeReached) {
  Recorder record;
  Endpoint own(options_of({"worker", 0}, GetParam()), record);
  Address nobody;
  {
    Recorder gone_record;
    nobody = Endpoint(options_of({"ps", 4}, GetParam()), gone_record).address();
  }
  const auto error = message_of(ErrorCode::kUnavailable,
                                [&] { static_cast<void>(own.connect(nobody, Deadline::after(100ms))); });
  EXPECT_THAT(error, AllOf(HasSubstr("ps 4 on "), HasSubstr("Connection refused")));
  nobody.network = {"localhost"};
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] { static_cast<void>(own.connect(nobody, Deadline::after(1s))); }),
              HasSubstr("'localhost'"));
}

TEST_P(ConnectTest, LetsTwoTasksConnectToEachOtherAtOnce) {
  Recorder a_record;
  Recorder b_record;
  Endpoint a(options_of({"worker", 0}, GetParam()), a_record);
  Endpoint b(options_of({"worker", 1}, GetParam()), b_record);
  // One that has connected must go on to let the other in.
  std::thread other([&] {
    static_cast<void>(b.connect(a.address(), Deadline::after(10s)));
    b.wait_until([&] { return b_record.connected.size() == 2; }, Deadline::after(10s));
  });
  static_cast<void>(a.connect(b.address(), Deadline::after(10s)));
  a.wait_until([&] { return a_record.connected.size() == 2; }, Deadline::after(10s));
  other.join();
  EXPECT_EQ(a_record.connected.size(), 2U);
  EXPECT_EQ(b_record.connected.size(), 2U);
}

TEST_P(ConnectTest, MayConnectInsideTheHandler) {
  Pair pair(GetParam());
  Recorder third_record;
  Endpoint third(options_of({"ps", 7}, GetParam()), third_record);
  poll_meanwhile(third, [&] {
    pair.b_record.then = [&](Peer&, const Message&) {
      pair.b.connect(third.address(), Deadline::after(10s)).send(1, 2, bytes_of("from the handler"));
    };
    pair.b_at_a->send(1, 1);
    ASSERT_TRUE(pair.poll_until([&] { return pair.b_record.connected.size() == 2; }));
  });
  ASSERT_TRUE(third.wait_until([&] { return !third_record.received.empty(); }, Deadline::after(10s)));
  EXPECT_EQ(third_record.received.front().body, "from the handler");
}

TEST_P(ConnectTest, MayConnectToItself) {
  Recorder record;
  Endpoint own(options_of({"worker", 0}, GetParam()), record);
  own.connect(own.address(), Deadline::after(10s)).send(1, 5);
  EXPECT_TRUE(own.wait_until([&] { return !record.received.empty(); }, Deadline::after(10s)));
  EXPECT_EQ(record.connected.size(), 2U);
}

TEST_P(ConnectTest, ServesManyTasks) {
  constexpr std::size_t kTasks = 20;
  Recorder record;
  record.then = [](Peer& peer, const Message& message) { peer.send(1, message.number + 1); };
  Endpoint server(options_of({"ps", 0}, GetParam()), record);
  std::vector<std::unique_ptr<Recorder>> records;
  std::vector<std::unique_ptr<Endpoint>> clients;
  poll_meanwhile(server, [&] {
    for (std::size_t i = 0; i < kTasks; ++i) {
      records.push_back(std::make_unique<Recorder>());
      clients.push_back(
          std::make_unique<Endpoint>(options_of({"worker", static_cast<int>(i)}, GetParam()), *records[i]));
      clients[i]->connect(server.address(), Deadline::after(10s)).send(1, 100 * i);
    }
    for (std::size_t i = 0; i < kTasks; ++i) {
      ASSERT_TRUE(
          clients[i]->wait_until([&] { return !records[i]->received.empty(); }, Deadline::after(10s)));
      EXPECT_EQ(records[i]->received.front().number, 100 * i + 1);
    }
  });
  EXPECT_EQ(record.received.size(), kTasks);
}

TEST(Connect, HandsTheOfferedDescriptorToTasksOfTheNode) {
  const watch::Fd offered(::memfd_create("offered", MFD_CLOEXEC));
  ASSERT_EQ(::write(offered.get(), "text", 4), 4);
  for (const Way way : {Way::kNode, Way::kNetwork}) {
    Recorder record;
    EndpointOptions options = options_of({"ps", 0}, way);
    options.offered = offered.get();
    Endpoint server(options, record);
    Recorder other_record;
    Endpoint other(options_of({"worker", 0}, way), other_record);
    std::thread letting_in(
        [&] { server.wait_until([&] { return !record.connected.empty(); }, Deadline::after(10s)); });
    Peer& peer = other.connect(server.address(), Deadline::after(10s));
    letting_in.join();
    EXPECT_EQ(record.connected.front()->offered_descriptor(), -1);
    if (way == Way::kNetwork) {
      EXPECT_EQ(peer.offered_descriptor(), -1);
      continue;
    }
    char text[5] = {};
    EXPECT_EQ(::pread(peer.offered_descriptor(), text, 4, 0), 4);
    EXPECT_STREQ(text, "text");
  }
}

// As one over a real network, a connection is on its way for a while: to a full queue, until somebody is let
// in.
TEST(Connect, WaitsForANetworkThatDoesNotAnswerAtOnce) {
  const watch::Fd listener = listen_on_loopback();
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  Address slow{.task = {"ps", 0}, .host = "n1", .network = watch::network_addresses(listener.get())};
  const watch::Fd first = watch::connect_to(*watch::network_address(slow.network.front()));
  Recorder record;
  Endpoint own(options_of({"worker", 0}, Way::kNetwork), record);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable,
                         [&] { static_cast<void>(own.connect(slow, Deadline::after(100ms))); }),
              HasSubstr(": no answer"));
}

TEST(Connect, PrefersTheNodeAndTakesTheNetworkOtherwise) {
  Recorder record;
  Endpoint server(options_of({"ps", 0}, Way::kNode), record);
  Recorder other_record;
  Endpoint other(options_of({"worker", 0}, Way::kNode), other_record);
  std::thread letting_in(
      [&] { server.wait_until([&] { return record.connected.size() == 2; }, Deadline::after(10s)); });
  EXPECT_TRUE(other.connect(server.address(), Deadline::after(10s)).on_this_node());
  Address elsewhere = server.address();
  elsewhere.local = "no such name";
  EXPECT_FALSE(other.connect(elsewhere, Deadline::after(10s)).on_this_node());
  letting_in.join();
}

TEST(Connect, RefusesOptionsThatCannotWork) {
  Recorder record;
  EndpointOptions options = options_of({"ps", 0}, Way::kNetwork);
  options.secret = "short";
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { Endpoint endpoint(options, record); }),
              HasSubstr("secret of ps 0"));
  options = options_of({"ps", 0}, Way::kNetwork);
  options.silence = options.heartbeat;
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { Endpoint endpoint(options, record); }),
              HasSubstr("twice as long"));
  options = options_of({"ps", 0}, Way::kNode);
  options.local_listener = options.network_listener;
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { Endpoint endpoint(options, record); }),
              HasSubstr("is no local stream socket that listens"));
}

}  // namespace
}  // namespace cohort::remote
