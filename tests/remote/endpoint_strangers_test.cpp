// What is said and done to an endpoint by those who do not belong to its job: they are refused, and keep
// nobody else waiting.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>

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

constexpr uid_t kOther = 65534;

/// What an end of a connection says first.
struct Opening {
  std::array<char, 8> magic{'c', 'o', 'h', 'o', 'r', 't', '-', 'r'};
  std::uint32_t byte_order = 0x01020304;
  std::uint32_t version = 2;
  std::array<char, 32> nonce{};
};

template <class T>
std::string as_text(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

watch::Fd connection_to(const watch::SocketAddress& address) {
  watch::Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address.get(), address.bytes) != 0) socket.reset();
  return socket;
}

/// Reads until the other end closes; -1 where it does not within ten seconds.
ssize_t read_to_end(const watch::Fd& socket) {
  ssize_t bytes = 0;
  pollfd polled{socket.get(), POLLIN, 0};
  while (::poll(&polled, 1, 10'000) == 1) {
    std::array<char, 256> buffer;
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return bytes;
    bytes += got;
  }
  return -1;
}

class StrangersTest : public ::testing::TestWithParam<Way> {
 protected:
  [[nodiscard]] watch::SocketAddress where() const {
    const Address& address = server.address();
    return GetParam() == Way::kNode ? *watch::local_address(address.local)
                                    : *watch::network_address(address.network.front());
  }

  /// Says `text` to the server, and returns how many bytes it answered before it closed the connection.
  [[nodiscard]] ssize_t answer_to(const std::string& text) const {
    const watch::Fd socket = connection_to(where());
    if (::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return -2;
    return read_to_end(socket);
  }

  /// That a task of the job still comes in.
  void expect_service() const {
    Recorder friend_record;
    Endpoint other(options_of({"worker", 1}, GetParam()), friend_record);
    Peer& peer = other.connect(server.address(), Deadline::after(20s));
    peer.send(1, 1);
    EXPECT_TRUE(other.wait_until([&] { return !friend_record.received.empty(); }, Deadline::after(10s)));
  }

  Recorder record = [] {
    Recorder echoing;
    echoing.then = [](Peer& peer, const Message& message) { peer.send(message.kind, message.number); };
    return echoing;
  }();
  Endpoint server{options_of({"ps", 0}, GetParam()), record};
};
COHORT_INSTANTIATE_WAYS(StrangersTest);

TEST_P(StrangersTest, AreToldNothingIfTheySpeakOtherwise) {
  poll_meanwhile(server, [&] {
    EXPECT_EQ(answer_to("GET / HTTP/1.1\r\n\r\n"), 0);
    EXPECT_EQ(answer_to(std::string(100'000, 'x')), 0);
    expect_service();
  });
  EXPECT_EQ(record.connected.size(), 1U);
}

TEST_P(StrangersTest, HaveToProveThatTheyKnowTheSecret) {
  // 32 bytes of a wrong proof, and the length of an introduction: none, some, and too much.
  poll_meanwhile(server, [&] {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{1} << 40}) {
      const ssize_t answered = answer_to(as_text(Opening{}) + std::string(32, 'p') + as_text(bytes) + "{}");
      EXPECT_EQ(answered, static_cast<ssize_t>(sizeof(Opening) + 32));
    }
    expect_service();
  });
  EXPECT_EQ(record.connected.size(), 1U);
}

TEST_P(StrangersTest, MayBeOfAnotherVersion) {
  poll_meanwhile(server, [&] {
    EXPECT_EQ(answer_to(as_text(Opening{.version = 9})), static_cast<ssize_t>(sizeof(Opening) + 32));
    EXPECT_EQ(answer_to(as_text(Opening{.byte_order = 0x04030201})),
              static_cast<ssize_t>(sizeof(Opening) + 32));
  });
  EXPECT_TRUE(record.connected.empty());
}

TEST_P(StrangersTest, KeepNobodyOutByTheirNumber) {
  std::vector<watch::Fd> idle;
  poll_meanwhile(server, [&] {
    for (int i = 0; i < 300; ++i) {
      idle.push_back(connection_to(where()));
      ASSERT_TRUE(idle.back());
    }
    expect_service();
  });
}

TEST_P(StrangersTest, WhoListenInsteadOfATaskAreNamed) {
  Recorder own_record;
  Endpoint own(options_of({"worker", 0}, GetParam()), own_record);
  const watch::Fd listener =
      GetParam() == Way::kNode ? watch::listen_local(watch::random_token()) : listen_on_loopback();
  ::fcntl(listener.get(), F_SETFL, 0);
  Address address;
  address.task = {"ps", 3};
  address.host = "n7";
  if (GetParam() == Way::kNode)
    address.local = watch::local_name(listener.get());
  else
    address.network = watch::network_addresses(listener.get());

  const auto error_for = [&](const std::string& answer) {
    std::thread impostor([&] {
      const watch::Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      static_cast<void>(::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
      static_cast<void>(read_to_end(socket));
    });
    std::string text = message_of(ErrorCode::kInvalidArgument,
                                  [&] { static_cast<void>(own.connect(address, Deadline::after(10s))); });
    impostor.join();
    return text;
  };
  EXPECT_THAT(error_for("SSH-2.0-OpenSSH_9.2\r\n"),
              AllOf(HasSubstr("ps 3 on n7"), HasSubstr("no task of Cohort")));
  const std::string proof(32, 'p');
  EXPECT_THAT(error_for(as_text(Opening{}) + proof), HasSubstr("has another secret"));
  EXPECT_THAT(error_for(as_text(Opening{.version = 7}) + proof), HasSubstr("speaks version 7"));
  EXPECT_THAT(error_for(as_text(Opening{.byte_order = 0x04030201}) + proof), HasSubstr("other byte order"));
}

TEST(Strangers, AreShownTheDoorAfterAWhile) {
  Recorder record;
  Endpoint server(options_of({"ps", 0}, Way::kNetwork), record);
  const watch::Fd idle = connection_to(*watch::network_address(server.address().network.front()));
  std::atomic<bool> ended{false};
  std::thread waiting([&] {
    EXPECT_EQ(read_to_end(idle), 0);
    ended = true;
    server.wake();
  });
  EXPECT_TRUE(server.wait_until([&] { return ended.load(); }, Deadline::after(20s)));
  waiting.join();
}

TEST(Strangers, OfOtherUsersAreNotLetIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  Recorder record;
  Endpoint server(options_of({"ps", 0}, Way::kNode), record);
  const watch::SocketAddress address = *watch::local_address(server.address().local);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kOther) != 0) ::_exit(1);
    const watch::Fd socket = connection_to(address);
    const std::string opening = as_text(Opening{});
    static_cast<void>(::send(socket.get(), opening.data(), opening.size(), MSG_NOSIGNAL));
    ::_exit(read_to_end(socket) == 0 ? 0 : 2);
  }
  std::atomic<bool> ended{false};
  int status = -1;
  std::thread waiting([&] {
    ::waitpid(child, &status, 0);
    ended = true;
    server.wake();
  });
  server.wait_until([&] { return ended.load(); });
  waiting.join();
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cohort::remote
