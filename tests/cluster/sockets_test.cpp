// How sockets are named, made and waited for, what travels along them, and how two ends prove who they are.
#include "cluster/sockets.h"

#include <fcntl.h>

#include <array>
#include <csignal>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

#include "cluster/mutual_proof.h"

namespace cohort::watch {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Ends {
  Fd listener;
  Fd connector;
};

/// Two ends of a connection over the node, once it is accepted.
Ends meet(int type = SOCK_STREAM) {
  const std::string name = random_token();
  const Fd listener = listen_local(name, type);
  Fd connector = connect_to(*local_address(name), type);
  Arrivals arrivals = accept_all(listener);
  EXPECT_THAT(arrivals.sockets, SizeIs(1));
  return {std::move(arrivals.sockets.front()), std::move(connector)};
}

/// Two ends that have told each other their numbers.
struct Meeting {
  MutualProof connector{Side::kConnector};
  MutualProof listener{Side::kListener};

  Meeting() {
    connector.hear(listener.own_nonce());
    listener.hear(connector.own_nonce());
  }
};

TEST(MutualProofs, AreBelievedOfWhoeverKnowsTheSecret) {
  const Meeting meeting;
  EXPECT_TRUE(meeting.connector.accepts(meeting.listener.prove("secret"), "secret"));
  EXPECT_TRUE(meeting.listener.accepts(meeting.connector.prove("secret", "worker 1"), "secret", "worker 1"));
}

TEST(MutualProofs, AreNotBelievedOtherwise) {
  const Meeting meeting;
  const Proof of_listener = meeting.listener.prove("secret", "worker 1");
  EXPECT_FALSE(meeting.connector.accepts(meeting.listener.prove("guess"), "secret")) << "another secret";
  EXPECT_FALSE(meeting.connector.accepts(of_listener, "secret", "worker 2")) << "another text";
  EXPECT_FALSE(meeting.connector.accepts(of_listener, "secret")) << "no text";
  EXPECT_FALSE(meeting.listener.accepts(of_listener, "secret", "worker 1")) << "what it has said itself";
  EXPECT_FALSE(Meeting().connector.accepts(of_listener, "secret", "worker 1"))
      << "said in another connection";
}

TEST(MutualProofs, HaveALength) {
  const Proof proof = Meeting().connector.prove("secret");
  EXPECT_EQ(proof_from(as_text(proof)), proof);
  EXPECT_EQ(proof_from(as_text(proof).substr(1)), std::nullopt);
  EXPECT_EQ(nonce_from(""), std::nullopt);
}

TEST(Addresses, AreNumbersWithAPort) {
  EXPECT_EQ(network_address("127.0.0.1:4000")->storage.ss_family, AF_INET);
  EXPECT_EQ(network_address("[::1]:4000")->storage.ss_family, AF_INET6);
  for (const char* wrong : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "n0:4000",
                            "::1:4000", "[::1]", "[127.0.0.1]:4000", "127.0.0.1:4000 ", "127.0.0.1:-1"})
    EXPECT_FALSE(network_address(wrong)) << wrong;
}

TEST(Addresses, OfANodeAreNamesThatFit) {
  EXPECT_TRUE(local_address(std::string(107, 'x')));
  EXPECT_FALSE(local_address(std::string(108, 'x')));
  EXPECT_FALSE(local_address(""));
  EXPECT_FALSE(listen_local(std::string(108, 'x')));
  EXPECT_EQ(errno, ENAMETOOLONG);
}

TEST(Sockets, AreFoundWhereTheListenerSays) {
  const std::string name = random_token();
  EXPECT_EQ(local_name(listen_local(name).get()), name);
  const Fd loopback = listen_loopback();
  ASSERT_THAT(network_addresses(loopback.get()), SizeIs(1));
  EXPECT_THAT(network_addresses(loopback.get()).front(), StartsWith("127.0.0.1:"));
  const Fd network = listen_network();
  for (const std::string& text : network_addresses(network.get())) {
    const Fd socket = connect_to(*network_address(text));
    pollfd polled{socket.get(), POLLOUT, 0};
    ASSERT_TRUE(socket && poll_until({&polled, 1}, steady_clock::now() + 20s)) << text;
    EXPECT_EQ(connect_error(socket.get()), 0) << text;
  }
}

TEST(Sockets, SayWhyTheyDoNotConnect) {
  EXPECT_FALSE(connect_to(*local_address(random_token())));
  EXPECT_EQ(errno, ECONNREFUSED);
  const std::string gone = network_addresses(listen_loopback().get()).front();
  const Fd socket = connect_to(*network_address(gone));
  pollfd polled{socket.get(), POLLOUT, 0};
  if (socket && poll_until({&polled, 1}, steady_clock::now() + 20s)) {
    EXPECT_EQ(connect_error(socket.get()), ECONNREFUSED);
  }
}

TEST(Sockets, AreAcceptedSoManyAtATime) {
  const std::string name = random_token();
  const Fd listener = listen_local(name);
  std::vector<Fd> connectors;
  connectors.reserve(5);
  for (int i = 0; i < 5; ++i) connectors.push_back(connect_to(*local_address(name)));
  EXPECT_THAT(accept_all(listener, 3).sockets, SizeIs(3));
  EXPECT_THAT(accept_all(listener, 3).sockets, SizeIs(2));
  EXPECT_THAT(accept_all(listener, 3).sockets, IsEmpty());
  EXPECT_THAT(accept_all(Fd()).sockets, IsEmpty());
}

TEST(Sockets, ThatAreTakenOverListen) {
  EXPECT_THROW(static_cast<void>(take_over(listen_loopback().release(), Reach::kNode)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(take_over(listen_local(random_token()).release(), Reach::kNetwork)),
               InvalidArgument);
  EXPECT_THROW(static_cast<void>(take_over(meet().connector.release(), Reach::kNode)), InvalidArgument);
  EXPECT_TRUE(take_over(listen_loopback().release(), Reach::kNetwork));
}

TEST(Sockets, CarryDescriptors) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const Ends ends = meet(type);
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const Fd out(pipe[0]);
    const Fd in(pipe[1]);
    EXPECT_EQ(send_with(ends.connector.get(), "text", pipe), 4);
    std::array<char, 16> buffer{};
    Attached attached;
    EXPECT_EQ(receive_with(ends.listener.get(), buffer, attached), 4);
    EXPECT_STREQ(buffer.data(), "text");
    ASSERT_THAT(attached.descriptors, SizeIs(2));
    EXPECT_EQ(::write(attached.descriptors[1].get(), "x", 1), 1);
    EXPECT_EQ(::read(pipe[0], buffer.data(), buffer.size()), 1);
    EXPECT_NE(::fcntl(attached.descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_LT(receive_with(ends.listener.get(), buffer, attached), 0);
    EXPECT_EQ(errno, EAGAIN);
  }
}

TEST(Waits, EndAtTheirTimeAndNotByASignal) {
  const Ends ends = meet();
  pollfd polled{ends.listener.get(), POLLIN, 0};
  const auto begin = steady_clock::now();
  struct sigaction handler {};
  handler.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &handler, nullptr), 0);
  std::jthread interrupts([waiting = ::pthread_self()] {
    std::this_thread::sleep_for(20ms);
    ::pthread_kill(waiting, SIGUSR1);
  });
  EXPECT_FALSE(poll_until({&polled, 1}, begin + 100ms));
  EXPECT_GE(steady_clock::now(), begin + 100ms);
  EXPECT_EQ(send_with(ends.connector.get(), "x", {}), 1);
  EXPECT_TRUE(poll_until({&polled, 1}, steady_clock::time_point::max()));
  EXPECT_TRUE(poll_until({&polled, 1}, begin));  // what is there is seen, however late
}

}  // namespace
}  // namespace cohort::watch
