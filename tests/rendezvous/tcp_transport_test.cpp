// The TCP transport, seen from all members at once: they live on one thread, which polls them in turn. What
// collectives make of it is tested in contract_test.cpp.
#include "rendezvous/transport/tcp_transport.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

namespace cohort::rendezvous {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Channel = Transport::Channel;
using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  Bytes bytes(count);
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(engine()); });
  return bytes;
}

/// Members, each a worker on a node of its own.
class Members {
 public:
  explicit Members(int count, const std::string& secret = "a secret of the communicator") {
    TcpNetworkOptions options;
    for (int rank = 0; rank < count; ++rank) {
      options.worker_of.push_back(rank);
      options.workers.push_back({rank, rank, 0, "host" + std::to_string(rank), 1000 + rank});
    }
    std::vector<std::string> addresses;
    for (int rank = 0; rank < count; ++rank) {
      options.rank = rank;
      options.secret = secret;
      options.lost = lost.emplace_back(std::make_shared<LostConnection>());
      networks.push_back(std::make_shared<TcpNetwork>(options));
      addresses.push_back(networks.back()->address());
    }
    for (const auto& network : networks) {
      network->set_addresses(addresses);
      transports.push_back(std::make_unique<TcpTransport>(network));
    }
  }

  [[nodiscard]] Transport& operator[](int rank) const { return *transports[static_cast<std::size_t>(rank)]; }

  /// Moves all on until the condition holds.
  template <class Condition>
  [[nodiscard]] bool until(Condition condition, std::chrono::milliseconds limit = 20s) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      for (const auto& network : networks)
        if (network) network->progress();
    }
    return true;
  }

  /// The bytes of the transfer, once it has completed.
  [[nodiscard]] std::optional<std::size_t> complete(Transport& transport, Transport::Ticket ticket,
                                                    std::chrono::milliseconds limit = 20s) const {
    std::optional<std::size_t> bytes;
    static_cast<void>(until([&] { return (bytes = transport.poll(ticket)).has_value(); }, limit));
    return bytes;
  }

  std::vector<std::shared_ptr<LostConnection>> lost;
  std::vector<std::shared_ptr<TcpNetwork>> networks;
  std::vector<std::unique_ptr<Transport>> transports;
};

TEST(TcpTransport, BringsMessagesOfAllLengths) {
  const Members members(2);
  // Around those of a header, and of what is read ahead.
  for (const std::size_t length : {0U, 1U, 23U, 24U, 1000U, 32'744U, 32'768U, 100'000U, 5'000'000U}) {
    for (const bool early : {false, true}) {
      const Bytes sent = random_bytes(length, static_cast<unsigned>(length));
      Bytes received(length + 10);
      const auto send = members[0].send({.member = 1, .tag = 7}, sent);
      std::optional<std::size_t> of_send;
      if (early) of_send = members.complete(members[0], send);  // the receiver keeps it
      const auto receive = members[1].receive({.member = 0, .tag = 7}, received);
      if (!early) of_send = members.complete(members[0], send);
      EXPECT_EQ(of_send, length);
      EXPECT_EQ(members.complete(members[1], receive), length);
      received.resize(length);
      EXPECT_EQ(received, sent) << length;
    }
  }
}

TEST(TcpTransport, MatchesByMemberChannelAndTagInOrder) {
  const Members members(3);
  const auto send = [&](int from, Channel channel, int tag, char text) {
    const Bytes byte{static_cast<std::byte>(text)};
    EXPECT_EQ(members.complete(members[from], members[from].send({channel, 2, tag}, byte)), 1U);
  };
  send(0, Channel::kCollective, 1, 'a');
  send(1, Channel::kCollective, 1, 'b');
  send(0, Channel::kMessage, 1, 'c');
  send(0, Channel::kCollective, 2, 'd');
  send(0, Channel::kCollective, 1, 'e');
  send(0, Channel::kCollective, Transport::kLargestTag, 'f');
  const auto receive = [&](int from, Channel channel, int tag) {
    Bytes byte(1);
    EXPECT_EQ(members.complete(members[2], members[2].receive({channel, from, tag}, byte)), 1U);
    return static_cast<char>(byte[0]);
  };
  EXPECT_EQ(receive(0, Channel::kCollective, Transport::kLargestTag), 'f');
  EXPECT_EQ(receive(0, Channel::kCollective, 2), 'd');
  EXPECT_EQ(receive(0, Channel::kMessage, 1), 'c');
  EXPECT_EQ(receive(1, Channel::kCollective, 1), 'b');
  EXPECT_EQ(receive(0, Channel::kCollective, 1), 'a');
  EXPECT_EQ(receive(0, Channel::kCollective, 1), 'e');
}

TEST(TcpTransport, ConnectsByTheFirstMessagesAlsoIfBothSendAtOnce) {
  for (int times = 0; times < 20; ++times) {
    const Members members(2);
    const Bytes ones(100'000, std::byte{1});
    const Bytes twos(100'000, std::byte{2});
    std::array<Bytes, 2> received{Bytes(100'000), Bytes(100'000)};
    std::vector<Transport::Ticket> receives;
    for (int round = 0; round < 3; ++round) {
      const auto first = members[0].send({.member = 1}, ones);
      const auto second = members[1].send({.member = 0}, twos);
      const auto at_first = members[0].receive({.member = 1}, received[0]);
      const auto at_second = members[1].receive({.member = 0}, received[1]);
      EXPECT_TRUE(members.complete(members[0], first) && members.complete(members[1], second));
      EXPECT_TRUE(members.complete(members[0], at_first) && members.complete(members[1], at_second));
      EXPECT_EQ(received[0], twos);
      EXPECT_EQ(received[1], ones);
    }
  }
}

TEST(TcpTransport, ConnectsAllAtOnce) {
  const Members members(7);
  for (const auto& network : members.networks) network->start_connecting();
  EXPECT_TRUE(members.until([&] {
    return std::ranges::all_of(members.networks,
                               [](const auto& network) { return network->unconnected().empty(); });
  }));
  // So many that the system is asked which have something.
  std::vector<Bytes> received(7, Bytes(1000));
  std::vector<Transport::Ticket> receives(7);
  for (int from = 1; from < 7; ++from) {
    const auto index = static_cast<std::size_t>(from);
    receives[index] = members[0].receive({.member = from}, received[index]);
    const Bytes sent(1000, static_cast<std::byte>(from));
    EXPECT_TRUE(members.complete(members[from], members[from].send({.member = 0}, sent)));
  }
  for (int from = 1; from < 7; ++from) {
    const auto index = static_cast<std::size_t>(from);
    EXPECT_EQ(members.complete(members[0], receives[index]), 1000U);
    EXPECT_EQ(received[index], Bytes(1000, static_cast<std::byte>(from)));
  }
}

TEST(TcpTransport, NeverCompletesAReceiveThatIsTooShort) {
  const Members members(2);
  Bytes small(10);
  Bytes next(10);
  const auto too_short = members[1].receive({.member = 0}, small);
  const auto fits = members[1].receive({.member = 0}, next);
  const Bytes sent = random_bytes(11, 1);
  EXPECT_TRUE(members.complete(members[0], members[0].send({.member = 1}, sent)));
  EXPECT_TRUE(members.complete(members[0], members[0].send({.member = 1}, std::span(sent).first(10))));
  EXPECT_EQ(members.complete(members[1], fits), 10U);
  EXPECT_FALSE(members.complete(members[1], too_short, 50ms));
  EXPECT_EQ(small, Bytes(10)) << "nothing was written";
}

TEST(TcpTransport, TakesBackReceivesThatNothingHasComeFor) {
  const Members members(2);
  Bytes first(4);
  Bytes second(4);
  const auto cancelled = members[1].receive({.member = 0}, first);
  const auto kept = members[1].receive({.member = 0}, second);
  EXPECT_TRUE(members[1].cancel(cancelled));
  const Bytes sent = random_bytes(4, 1);
  EXPECT_TRUE(members.complete(members[0], members[0].send({.member = 1}, sent)));
  EXPECT_TRUE(members.until([&] { return !members[1].cancel(kept) || ::testing::Test::HasFailure(); }))
      << "it has come";
  EXPECT_EQ(members.complete(members[1], kept), 4U);
  EXPECT_EQ(second, sent);
  EXPECT_EQ(first, Bytes(4));
}

TEST(TcpTransport, BringsControlMessagesWithoutReceives) {
  const Members members(3);
  members[0].send_control(2, "from 0");
  members[1].send_control(2, "");
  std::vector<std::pair<int, std::string>> come;
  EXPECT_TRUE(members.until([&] {
    while (const auto message = members[2].receive_control()) come.emplace_back(message->from, message->text);
    return come.size() == 2;
  }));
  EXPECT_THAT(come, ::testing::UnorderedElementsAre(std::pair(0, "from 0"), std::pair(1, "")));
  EXPECT_FALSE(members[1].receive_control());
}

TEST(TcpTransport, KeepsMessagesOfGroupsApart) {
  const Members members(3);
  const std::vector<int> ranks{2, 0};
  // Worker 2 is ahead: its messages come before the group is there.
  const auto of_two = members[2].split(ranks, {.number = 1, .generation = 1});
  const Bytes sent = random_bytes(50'000, 3);
  EXPECT_TRUE(members.complete(*of_two, of_two->send({.member = 1, .tag = 5}, sent)));
  of_two->send_control(1, "in the group");
  EXPECT_TRUE(members.complete(members[2], members[2].send({.member = 0, .tag = 5}, Bytes(3))));
  Bytes outside(3, std::byte{1});
  EXPECT_EQ(members.complete(members[0], members[0].receive({.member = 2, .tag = 5}, outside)), 3U);
  EXPECT_EQ(outside, Bytes(3));
  const auto of_zero = members[0].split(ranks, {.number = 1, .generation = 1});
  Bytes received(50'000);
  EXPECT_EQ(members.complete(*of_zero, of_zero->receive({.member = 0, .tag = 5}, received)), 50'000U);
  EXPECT_EQ(received, sent);
  EXPECT_FALSE(members[0].receive_control());
  std::optional<Transport::ControlMessage> control;
  EXPECT_TRUE(members.until([&] { return (control = of_zero->receive_control()).has_value(); }));
  EXPECT_EQ(control->from, 0);
  EXPECT_EQ(control->text, "in the group");
  EXPECT_FALSE(members[0].free_context_ids().lowest()->number == 1) << "in use";
}

TEST(TcpTransport, LeavesMemoryAloneOnceAGroupHasEnded) {
  const Members members(2);
  const std::vector<int> ranks{0, 1};
  auto of_zero = members[0].split(ranks, {.number = 1, .generation = 1});
  auto of_one = members[1].split(ranks, {.number = 1, .generation = 1});
  EXPECT_TRUE(of_zero->ends_transfers());
  constexpr std::size_t kBytes = 64 << 20;  // more than the system keeps
  auto sent = std::make_unique<Bytes>(random_bytes(kBytes, 1));
  auto received = std::make_unique<Bytes>(kBytes);
  static_cast<void>(of_one->receive({.member = 0}, *received));
  static_cast<void>(of_zero->send({.member = 1}, *sent));
  static_cast<void>(of_zero->send({.member = 1, .tag = 1}, *sent));
  EXPECT_TRUE(
      members.until([&] { return received->front() == sent->front() || received->at(1) == sent->at(1); }));
  // In the midst of the first.
  of_one.reset();
  const Bytes as_it_was = *received;
  of_zero.reset();
  std::ranges::fill(*sent, std::byte{});
  sent.reset();
  // What comes behind it arrives as it should.
  const Bytes after = random_bytes(1000, 2);
  Bytes came(1000);
  const auto receive = members[1].receive({.member = 0}, came);
  const auto send = members[0].send({.member = 1}, after);
  EXPECT_EQ(members.complete(members[1], receive), 1000U);
  EXPECT_TRUE(members.complete(members[0], send));
  EXPECT_EQ(came, after);
  EXPECT_EQ(*received, as_it_was);
  // Its number is free again, and messages of the old group are none of the new one.
  EXPECT_EQ(members[0].free_context_ids().lowest()->number, 1);
  const auto next = members[1].split(ranks, {.number = 1, .generation = 2});
  EXPECT_FALSE(members.complete(*next, next->receive({.member = 0, .tag = 1}, came), 20ms));
}

TEST(TcpTransport, NamesTheWorkerWhoseConnectionIsLost) {
  Members members(3);
  Bytes byte(1);
  EXPECT_TRUE(members.complete(members[1], members[1].send({.member = 0}, byte)));
  EXPECT_TRUE(members.complete(members[2], members[2].send({.member = 0}, byte)));
  EXPECT_TRUE(members.complete(members[0], members[0].receive({.member = 1}, byte)));
  EXPECT_TRUE(members.complete(members[0], members[0].receive({.member = 2}, byte)));
  members.transports[1].reset();
  members.networks[1].reset();
  const auto from_two = members[0].receive({.member = 2}, byte);
  EXPECT_FALSE(members.complete(members[0], from_two, 600ms));
  EXPECT_EQ(members.lost[0]->fault(), nullptr) << "it may leave, if nothing is expected of it";
  const auto from_one = members[0].receive({.member = 1}, byte);
  EXPECT_FALSE(members.complete(members[0], from_one, 600ms));
  const Error* fault = members.lost[0]->fault();
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fault->origin().member, 1);
  EXPECT_THAT(fault->what(), AllOf(HasSubstr("worker 1 (host host1, pid 1001)"), HasSubstr("closed")));
}

TEST(TcpTransport, SendsWhatWasSentBeforeItsEnd) {
  Members members(2);
  const Bytes sent = random_bytes(1 << 20, 1);
  Bytes received(1 << 20);
  // Unread data at an end must not take back what that end has sent.
  EXPECT_TRUE(members.complete(members[1], members[1].send({.member = 0, .tag = 1}, Bytes(1000))));
  std::optional<std::size_t> bytes;
  const auto receive = members[1].receive({.member = 0}, received);
  EXPECT_TRUE(members.complete(members[0], members[0].send({.member = 1}, sent)));
  std::thread end([&] {
    members.transports[0].reset();
    members.networks[0].reset();
  });
  while (!bytes && members.lost[1]->fault() == nullptr) bytes = members[1].poll(receive);
  end.join();
  EXPECT_EQ(bytes, sent.size());
  EXPECT_EQ(received, sent);
}

TEST(TcpTransport, GoesOnWhenAForkedChildDestroysItsCopy) {
  Members members(2);
  Bytes byte(1);
  EXPECT_TRUE(members.complete(members[0], members[0].send({.member = 1}, byte)));
  EXPECT_TRUE(members.complete(members[1], members[1].receive({.member = 0}, byte)));
  const pid_t child = ::fork();
  if (child == 0) {
    members.transports.clear();
    members.networks.clear();
    ::_exit(0);
  }
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(members.complete(members[0], members[0].send({.member = 1}, byte)));
  EXPECT_TRUE(members.complete(members[1], members[1].receive({.member = 0}, byte)));
}

TEST(TcpTransport, LetsNobodyInWhoDoesNotKnowTheSecret) {
  const Members members(2);
  const Members strangers(2, "another secret than theirs");
  const std::vector<std::string> addresses{members.networks[0]->address(), strangers.networks[1]->address()};
  TcpNetworkOptions options;
  options.rank = 1;
  options.worker_of = {0, 1};
  options.workers = {{0, 0, 0, "a", 1}, {1, 1, 0, "b", 2}};
  options.secret = "guessed, but not right";
  TcpNetwork stranger(options);
  stranger.set_addresses(addresses);
  stranger.start_connecting();
  try {
    EXPECT_FALSE(members.until(
        [&] {
          stranger.progress();
          return stranger.unconnected().empty();
        },
        500ms));
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("another secret"));
  }
  EXPECT_EQ(members.networks[0]->unconnected(), std::vector<int>{1});
}

}  // namespace
}  // namespace cohort::rendezvous
