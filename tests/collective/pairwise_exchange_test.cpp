// Exchanges whose members are all on one thread, and go on when they are told.
#include "collective/network/pairwise_exchange.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/base/monotonic_clock.h>

#include "collective/task/task_group.h"
#include "thread_transport.h"

namespace cohort::network {
namespace {

class ShortMessages final : public testing::ThreadTransport {
 public:
  using ThreadTransport::ThreadTransport;

  [[nodiscard]] std::size_t message_bytes() const noexcept override { return 100; }
  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    sent_bytes += data.size();
    return ThreadTransport::send(to, data);
  }

  std::size_t sent_bytes = 0;
};

using namespace std::chrono_literals;

constexpr CostConstants kSlowNetwork{.latency_seconds = 1e-6, .seconds_per_byte = 1e-6};
constexpr std::chrono::duration<double> kNoTimeout{0};

/// What one member sends to another.
std::byte mark_of(int from, int to) { return static_cast<std::byte>(from * 16 + to + 1); }

/// A member of an exchange in which member r's blocks have `bytes[r]` bytes.
class Member {
 public:
  Member(const std::shared_ptr<testing::Switchboard>& board, int rank, const std::vector<std::size_t>& bytes)
      : transport_(board, rank),
        wire_(transport_),
        exchange_(wire_, 1,
                  {.nodes = static_cast<int>(bytes.size()),
                   .blocks = 1,
                   .longest = *std::ranges::max_element(bytes)},
                  kSlowNetwork, kNoTimeout),
        rank_(rank) {
    const auto members = static_cast<int>(bytes.size());
    for (int step = 1; step < members; ++step) {
      const int to = (rank + step) % members;
      const int from = (rank + members - step) % members;
      leaving_.emplace_back(bytes[static_cast<std::size_t>(rank)], mark_of(rank, to));
      arriving_.emplace_back(bytes[static_cast<std::size_t>(from)]);
      from_.push_back(from);
      exchange_.add_step({{to, leaving_.back().data(), leaving_.back().size()}},
                         {{from, arriving_.back().data(), arriving_.back().size()}});
    }
    tasks_.add(exchange_.receive());
    tasks_.add(exchange_.send());
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  bool go_on() { return tasks_.advance(); }
  [[nodiscard]] bool done() const { return tasks_.done(); }
  [[nodiscard]] bool has_come(std::size_t step) const {
    Task<> arrival = exchange_.arrival(step);
    arrival.resume();
    return arrival.done() || arrival.ready();
  }
  [[nodiscard]] std::size_t sent_bytes() const { return transport_.sent_bytes; }
  void expect_right_blocks(std::size_t steps) const {
    for (std::size_t step = 0; step < steps; ++step)
      EXPECT_EQ(arriving_[step], std::vector<std::byte>(arriving_[step].size(), mark_of(from_[step], rank_)));
  }

 private:
  ShortMessages transport_;
  Wire wire_;
  PairwiseExchange exchange_;
  int rank_;
  TaskGroup tasks_;
  std::vector<std::vector<std::byte>> leaving_;  ///< by step, as the next two
  std::vector<std::vector<std::byte>> arriving_;
  std::vector<int> from_;
};

/// Until none of them can go on.
template <class Members>
void all_go_on(Members& members) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::unique_ptr<Member>& member : members) moved |= member->go_on();
  }
}

std::vector<std::unique_ptr<Member>> members_with(const std::vector<std::size_t>& bytes) {
  const auto board = std::make_shared<testing::Switchboard>(static_cast<int>(bytes.size()));
  std::vector<std::unique_ptr<Member>> members;
  for (std::size_t rank = 0; rank < bytes.size(); ++rank)
    members.push_back(std::make_unique<Member>(board, static_cast<int>(rank), bytes));
  return members;
}

TEST(PairwiseExchange, BringsEveryBlockWhateverItsLength) {
  for (const std::vector<std::size_t>& bytes : {std::vector<std::size_t>{5000, 5000},
                                                {7, 7, 7},
                                                {0, 250, 100, 5000},
                                                {99, 101, 0, 1, 3000, 100, 2}}) {
    auto members = members_with(bytes);
    all_go_on(members);
    for (const auto& member : members) {
      EXPECT_TRUE(member->done());
      member->expect_right_blocks(bytes.size() - 1);
    }
  }
}

TEST(PairwiseExchange, LetsAFewMessagesLeaveBeforeOthersCome) {
  auto members = members_with({5000, 5000, 5000, 5000});
  while (members[0]->go_on()) {
  }
  EXPECT_EQ(members[0]->sent_bytes(), 400);
}

TEST(PairwiseExchange, SendsOnWhereNobodyElseSends) {
  auto members = members_with({500, 500});
  while (members[0]->go_on()) {
  }
  EXPECT_EQ(members[0]->sent_bytes(), 500);
}

TEST(PairwiseExchange, SendsAMessageAfterEachLongPause) {
  VirtualClock clock;
  auto members = members_with({5000, 5000, 5000});
  for (int pause = 0; pause < 3; ++pause) {
    while (members[0]->go_on()) {
    }
    EXPECT_EQ(members[0]->sent_bytes(), 400 + pause * 100);
    clock.set(clock.now() + 1s);
  }
}

TEST(PairwiseWindow, GrowsWithLatencyAndRate) {
  const CostConstants slow{.latency_seconds = 50e-6, .seconds_per_byte = 8e-9};
  const CostConstants fast{.latency_seconds = 30e-6, .seconds_per_byte = 8e-11};
  constexpr std::size_t kMessage = std::size_t{56} << 10;
  constexpr std::size_t kLong = std::size_t{4} << 20;
  EXPECT_EQ(window_of({.nodes = 4, .blocks = 1, .longest = kLong}, kMessage, slow).ahead, 4);
  EXPECT_EQ(window_of({.nodes = 4, .blocks = 1, .longest = kLong}, kMessage, fast).ahead, 20);
  EXPECT_EQ(window_of({.nodes = 4, .blocks = 8, .longest = kLong}, kMessage, slow).ahead, 2);
}

TEST(PairwiseExchange, LetsShortBlocksLeaveAtOnce) {
  auto members = members_with({10, 10, 10, 10});
  while (members[0]->go_on()) {
  }
  EXPECT_EQ(members[0]->sent_bytes(), 30);
}

TEST(PairwiseExchange, HasStepsInTheirOrder) {
  auto members = members_with({300, 300, 300, 300});
  const std::unique_ptr<Member> absent = std::move(members[1]);
  members.erase(members.begin() + 1);
  all_go_on(members);
  EXPECT_TRUE(members[0]->has_come(0)) << "from 3";
  EXPECT_FALSE(members[0]->has_come(1)) << "from 2, which has sent a part of it";
  EXPECT_FALSE(members[0]->has_come(2)) << "from 1, which is absent";
  EXPECT_FALSE(members[1]->has_come(0)) << "likewise";
  EXPECT_FALSE(members[1]->has_come(1)) << "from 0, after the one before";
}

}  // namespace
}  // namespace cohort::network
