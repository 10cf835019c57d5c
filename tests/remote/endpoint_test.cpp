// Two endpoints of one process, over shared memory and over TCP: what arrives, in which order, and when.
#include <cohort/remote/endpoint.h>

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks.h"

namespace cohort::remote {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Bytes that differ from place to place and from seed to seed.
std::string pattern(std::size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 31 + i / 251 + seed) % 256);
  return text;
}

class EndpointTest : public testing::TestWithParam<Way> {};
COHORT_INSTANTIATE_WAYS(EndpointTest);

TEST_P(EndpointTest, IntroducesTheTasksToEachOther) {
  Pair pair(GetParam());
  EXPECT_EQ(pair.b_at_a->task(), (ClusterTask{"ps", 1}));
  EXPECT_EQ(pair.a_at_b->task(), (ClusterTask{"worker", 3}));
  EXPECT_EQ(pair.b_at_a->incarnation(), pair.b.incarnation());
  EXPECT_EQ(pair.a_at_b->incarnation(), pair.a.incarnation());
  EXPECT_NE(pair.a.incarnation(), pair.b.incarnation());
  EXPECT_EQ(pair.b_at_a->on_this_node(), GetParam() == Way::kNode);
  EXPECT_THAT(pair.b_at_a->name(), HasSubstr("ps 1 (host "));
  EXPECT_THAT(pair.b_at_a->name(), HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_TRUE(pair.poll_until([&] { return !pair.a_record.connected.empty(); }));
  EXPECT_EQ(pair.a_record.connected.front(), pair.b_at_a);
}

TEST_P(EndpointTest, CarriesMessagesBothWays) {
  Pair pair(GetParam());
  pair.b_at_a->send(7, 42, bytes_of("hello"));
  const std::vector<std::span<const std::byte>> parts{
      bytes_of("in "), {}, bytes_of("three "), bytes_of("parts")};
  pair.b_at_a->send(8, 43, parts);
  pair.a_at_b->send(9, 44);
  ASSERT_TRUE(pair.poll_until([&] { return pair.b_record.received.size() == 2; }));
  ASSERT_TRUE(pair.poll_until([&] { return pair.a_record.received.size() == 1; }));
  EXPECT_EQ(pair.b_record.received[0].kind, 7);
  EXPECT_EQ(pair.b_record.received[0].number, 42U);
  EXPECT_EQ(pair.b_record.received[0].body, "hello");
  EXPECT_EQ(pair.b_record.received[1].body, "in three parts");
  EXPECT_EQ(pair.a_record.received[0].number, 44U);
  EXPECT_EQ(pair.a_record.received[0].body, "");
}

// Sizes around those at which something else happens: a frame that is shown where it lies, a ring.
TEST_P(EndpointTest, KeepsBodiesOfAllSizesAndTheirOrder) {
  Pair pair(GetParam());
  std::mt19937 random(1);
  std::size_t expected = 0;
  std::vector<std::string> sent;
  const auto send = [&](std::size_t bytes) {
    sent.push_back(pattern(bytes, static_cast<unsigned>(sent.size())));
    pair.b_at_a->send(1, sent.size(), bytes_of(sent.back()));
  };
  for (const std::size_t bytes :
       {0UL, 1UL, 15UL, 16UL, 17UL, 65503UL, 65504UL, 65505UL, 1048575UL, 1048576UL, 3000001UL, 5UL})
    send(bytes);
  for (int i = 0; i < 3000; ++i) {
    send(std::uniform_int_distribution<std::size_t>(0, i % 100 == 0 ? 200000 : 3000)(random));
    if (i % 7 == 0) pair.b.poll();
    if (i % 5 == 0) pair.a.poll();
  }
  expected = sent.size();
  ASSERT_TRUE(pair.poll_until([&] { return pair.b_record.received.size() == expected; }));
  for (std::size_t i = 0; i < expected; ++i) {
    ASSERT_EQ(pair.b_record.received[i].number, i + 1);
    ASSERT_TRUE(pair.b_record.received[i].body == sent[i]) << "message " << i << ", " << sent[i].size();
  }
  EXPECT_EQ(pair.b_at_a->backlog(), 0U);
}

TEST_P(EndpointTest, KeepsWhatDoesNotFitAndNeverWaits) {
  Pair pair(GetParam());
  const std::string body = pattern(1 << 20, 5);
  constexpr int kMessages = 24;
  // Nobody reads meanwhile, so the rest must be kept. Both ways at once.
  for (int i = 0; i < kMessages; ++i) {
    pair.b_at_a->send(1, static_cast<std::uint64_t>(i), bytes_of(body));
    pair.a_at_b->send(1, static_cast<std::uint64_t>(i), bytes_of(body));
  }
  EXPECT_GT(pair.b_at_a->backlog(), body.size());
  EXPECT_GT(pair.a_at_b->backlog(), body.size());
  ASSERT_TRUE(pair.poll_until([&] {
    return pair.a_record.received.size() == kMessages && pair.b_record.received.size() == kMessages;
  }));
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_TRUE(pair.a_record.received[static_cast<std::size_t>(i)].body == body);
    EXPECT_TRUE(pair.b_record.received[static_cast<std::size_t>(i)].body == body);
  }
  EXPECT_EQ(pair.b_at_a->backlog(), 0U);
}

TEST_P(EndpointTest, PutsLargeBodiesWhereTheHandlerSays) {
  Pair pair(GetParam());
  const auto large = std::make_shared<std::string>(pattern(3'000'001, 9));
  std::string memory(large->size(), '\0');
  std::string head_seen;
  pair.b_record.place = [&](std::span<const std::byte> head, std::size_t bytes) {
    head_seen.assign(reinterpret_cast<const char*>(head.data()), head.size());
    EXPECT_EQ(bytes, memory.size());
    return std::as_writable_bytes(std::span(memory));
  };
  pair.b_at_a->send_shared(1, 1, bytes_of("head"), bytes_of(*large), large);
  pair.b_at_a->send(2, 2, bytes_of("next"));
  ASSERT_TRUE(pair.poll_until([&] { return pair.b_record.received.size() == 2; }));
  EXPECT_EQ(head_seen, "head");
  EXPECT_EQ(pair.b_record.received[0].body, "head");
  EXPECT_TRUE(memory == *large);
  EXPECT_EQ(pair.b_record.received[1].body, "next");
}

TEST_P(EndpointTest, LetsGoOfSharedBodiesOnceTheyAreSent) {
  Pair pair(GetParam());
  const auto large = std::make_shared<std::string>(pattern(9'000'001, 2));
  pair.b_at_a->send_shared(1, 1, bytes_of("head"), bytes_of(*large), large);
  EXPECT_EQ(large.use_count(), 2) << "it cannot be sent as a whole while nobody reads, nor need it be copied";
  ASSERT_TRUE(pair.poll_until([&] { return pair.b_record.received.size() == 1; }));
  // The handler gave no place, so the body has both.
  EXPECT_TRUE(pair.b_record.received[0].body == "head" + *large);
  EXPECT_TRUE(pair.poll_until([&] { return large.use_count() == 1; }));
}

TEST_P(EndpointTest, GoesOnAfterTheHandlerHasThrown) {
  Pair pair(GetParam());
  pair.b_record.then = [](Peer&, const Message& message) {
    if (message.number % 2 == 0) throw std::runtime_error("even");
  };
  for (std::uint64_t i = 0; i < 6; ++i) pair.b_at_a->send(1, i, bytes_of("body"));
  int thrown = 0;
  const Deadline deadline = Deadline::after(10s);
  while (pair.b_record.received.size() < 6 && !deadline.expired()) {
    try {
      pair.b.wait_until([&] { return pair.b_record.received.size() == 6; }, deadline);
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  EXPECT_EQ(thrown, 3);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(pair.b_record.received.at(i).number, i);
}

TEST_P(EndpointTest, RefusesToPollInsideTheHandler) {
  Pair pair(GetParam());
  pair.b_record.then = [&](Peer&, const Message&) { pair.b.poll(); };
  pair.b_at_a->send(1, 1);
  EXPECT_THROW(static_cast<void>(pair.poll_until([] { return false; })), WrongContext);
}

TEST_P(EndpointTest, SleepsUntilSomethingArrives) {
  Pair pair(GetParam());
  std::thread b([&] {
    for (std::size_t i = 1; i <= 200; ++i) {
      ASSERT_TRUE(
          pair.b.wait_until([&] { return pair.b_record.received.size() == i; }, Deadline::after(10s)));
      pair.a_at_b->send(1, i);
    }
  });
  for (std::size_t i = 1; i <= 200; ++i) {
    // Long enough, now and then, for the other to fall asleep.
    if (i % 20 == 0) ::usleep(1000);
    pair.b_at_a->send(1, i);
    ASSERT_TRUE(pair.a.wait_until([&] { return pair.a_record.received.size() == i; }, Deadline::after(10s)));
  }
  b.join();
}

TEST_P(EndpointTest, SleepsUntilThereIsRoom) {
  Pair pair(GetParam());
  constexpr std::size_t kMessages = 12;
  const std::string body = pattern(2'000'000, 3);
  std::thread b([&] {
    EXPECT_TRUE(pair.b.wait_until(
        [&] {
          // Long enough, now and then, for the other to fall asleep.
          if (pair.b_record.received.size() % 4 == 1) ::usleep(1000);
          return pair.b_record.received.size() == kMessages;
        },
        Deadline::after(20s)));
  });
  for (std::size_t i = 0; i < kMessages; ++i) pair.b_at_a->send(1, i, bytes_of(body));
  EXPECT_TRUE(pair.a.wait_until([&] { return pair.b_at_a->backlog() == 0; }, Deadline::after(20s)));
  b.join();
  EXPECT_EQ(pair.b_record.received.size(), kMessages);
}

TEST_P(EndpointTest, IsWokenByOtherThreads) {
  Pair pair(GetParam());
  std::atomic<int> stage{0};
  std::thread other([&] {
    for (int i = 1; i <= 100; ++i) {
      stage.store(i);
      pair.a.wake();
      while (stage.load() == i) std::this_thread::yield();
    }
  });
  for (int i = 1; i <= 100; ++i) {
    EXPECT_TRUE(pair.a.wait_until([&] { return stage.load() == i; }, Deadline::after(10s)));
    stage.store(-i);
  }
  other.join();
}

TEST_P(EndpointTest, GivesUpAtTheDeadlineAlsoWhileMessagesArrive) {
  Pair pair(GetParam());
  std::atomic<bool> done{false};
  std::thread b([&] {
    while (!done) {
      if (pair.a_at_b->backlog() == 0) pair.a_at_b->send(1, 1);
      pair.b.poll();
    }
  });
  EXPECT_FALSE(pair.a.wait_until([] { return false; }, Deadline::after(50ms)));
  done = true;
  b.join();
}

TEST_P(EndpointTest, GivesUpAtTheDeadline) {
  Pair pair(GetParam());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(pair.a.wait_until([] { return false; }, Deadline::after(30ms)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 30ms);
}

}  // namespace
}  // namespace cohort::remote
