// The leaders' roll call and report, for numbers of nodes up to 64: what they send, and that all leaders come
// to the same conclusion wherever a call differs.
#include "collective/network/roll_call.h"

#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thread_transport.h"

namespace cohort::network {
namespace {

using ::testing::HasSubstr;
using testing::Switchboard;
using testing::ThreadTransport;

constexpr int kNodes[] = {2, 3, 4, 5, 7, 16, 33, 64};
constexpr std::size_t kPiggyback = 4096;

class CountingTransport final : public ThreadTransport {
 public:
  using ThreadTransport::ThreadTransport;

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    ++messages;
    bytes += data.size();
    return ThreadTransport::send(to, data);
  }

  std::size_t messages = 0;
  std::size_t bytes = 0;
};

/// The nodes of members, by rank; node k has 1 + k % most.
std::vector<int> nodes_of_members(int nodes, int most) {
  std::vector<int> node_of;
  for (int node = 0; node < nodes; ++node)
    for (int member = 0; member <= node % most; ++member) node_of.push_back(node);
  return node_of;
}

/// The leader of one node, with what it needs for a roll call.
class Leader {
 public:
  Leader(const std::shared_ptr<Switchboard>& board, const std::vector<int>& node_of, int rank)
      : transport(board, rank), topology(node_of, rank), wire(transport) {
    for (int node = 0; node < topology.nodes(); ++node) ranks_.push_back(topology.members_of(node).front());
    roll_call.emplace(lane(), topology, kPiggyback);
  }

  [[nodiscard]] Lane lane() { return {wire, ranks_, topology.own_node()}; }

  CountingTransport transport;
  Topology topology;
  Wire wire;
  std::optional<RollCall> roll_call;

 private:
  std::vector<int> ranks_;
};

std::vector<std::unique_ptr<Leader>> leaders_of(const std::vector<int>& node_of) {
  const auto board = std::make_shared<Switchboard>(static_cast<int>(node_of.size()));
  std::vector<std::unique_ptr<Leader>> leaders;
  for (int rank = 0; rank < static_cast<int>(node_of.size()); ++rank) {
    auto leader = std::make_unique<Leader>(board, node_of, rank);
    if (leader->topology.is_leader()) leaders.push_back(std::move(leader));
  }
  return leaders;
}

/// One task per leader, all on this thread.
void drive(std::vector<Task<>> tasks) {
  for (std::size_t done = 0; done < tasks.size();) {
    done = 0;
    for (Task<>& task : tasks) {
      if (!task.done() && task.ready()) task.resume();
      if (task.done()) ++done;
    }
  }
}

void hold(const std::vector<std::unique_ptr<Leader>>& leaders) {
  std::vector<Task<>> tasks;
  tasks.reserve(leaders.size());
  for (const auto& leader : leaders) tasks.push_back(leader->roll_call->execute());
  drive(std::move(tasks));
}

CallSignature call_of(std::uint64_t sequence) {
  return {.sequence = sequence, .elements = 1, .kind = CollectiveKind::kAllReduce, .dtype = DType::kInt32};
}

std::size_t rounds_of(int nodes) { return std::bit_width(static_cast<unsigned>(nodes - 1)); }

class RollCalls : public ::testing::TestWithParam<int> {};

TEST_P(RollCalls, SendEightBytesPerRoundWithoutContributions) {
  const auto leaders = leaders_of(nodes_of_members(GetParam(), 1));
  for (const auto& leader : leaders) leader->roll_call->answer(call_of(1), 0);
  hold(leaders);
  for (const auto& leader : leaders) {
    EXPECT_TRUE(leader->roll_call->is_unanimous());
    EXPECT_EQ(leader->transport.messages, rounds_of(GetParam()));
    EXPECT_EQ(leader->transport.bytes, 8 * rounds_of(GetParam()));
  }
}

TEST_P(RollCalls, CarryTheContributionsAndLittleElse) {
  for (const int most : {1, 3}) {
    const std::vector<int> node_of = nodes_of_members(GetParam(), most);
    const auto leaders = leaders_of(node_of);
    for (std::uint64_t call = 0; call < 3; ++call) {
      for (const auto& leader : leaders) {
        leader->transport.bytes = leader->transport.messages = 0;
        std::byte* to = leader->roll_call->answer(call_of(call), sizeof(std::int32_t));
        for (const int rank : leader->topology.local_members()) {
          const auto value = static_cast<std::int32_t>(1000 * call) + rank;
          std::memcpy(to, &value, sizeof value);
          to += sizeof value;
        }
      }
      hold(leaders);
      for (const auto& leader : leaders) {
        EXPECT_EQ(leader->transport.messages, rounds_of(GetParam()));
        if (most == 1) {
          const auto others = static_cast<std::size_t>(GetParam() - 1);
          EXPECT_EQ(leader->transport.bytes, 8 * rounds_of(GetParam()) + 4 * others);
        }
        ASSERT_TRUE(leader->roll_call->is_unanimous());
        for (int node = 0; node < GetParam(); ++node) {
          std::vector<std::int32_t> expected(leader->topology.members_of(node).begin(),
                                             leader->topology.members_of(node).end());
          for (std::int32_t& value : expected) value += static_cast<std::int32_t>(1000 * call);
          const std::span<const std::byte> payload = leader->roll_call->payload_of(node);
          ASSERT_EQ(payload.size(), expected.size() * sizeof(std::int32_t));
          EXPECT_EQ(std::memcmp(payload.data(), expected.data(), payload.size()), 0)
              << "node " << node << " as node " << leader->topology.own_node() << " has it";
        }
      }
    }
  }
}

TEST_P(RollCalls, TellAllLeadersOfADifferenceAnywhere) {
  const int nodes = GetParam();
  const auto leaders = leaders_of(nodes_of_members(nodes, 1));
  const std::size_t longest = kPiggyback / static_cast<std::size_t>(nodes);
  for (int odd = 0; odd < nodes; ++odd) {
    // The odd one contributes more, or less; or the members of its node differ.
    for (const int way : {0, 1, 2}) {
      for (const auto& leader : leaders) {
        const bool is_odd = leader->topology.own_node() == odd;
        if (is_odd && way == 2) {
          leader->roll_call->answer(std::nullopt, 0);
        } else {
          leader->roll_call->answer(call_of(is_odd ? 1 : 2), is_odd == (way == 0) ? longest : 0);
        }
      }
      hold(leaders);
      for (const auto& leader : leaders)
        EXPECT_FALSE(leader->roll_call->is_unanimous()) << odd << " as " << leader->topology.own_node();
    }
  }
  for (const auto& leader : leaders) leader->roll_call->answer(call_of(3), 0);
  hold(leaders);
  for (const auto& leader : leaders) EXPECT_TRUE(leader->roll_call->is_unanimous());
}

TEST_P(RollCalls, AreFollowedByReportsThatNameTheOddOne) {
  const int nodes = GetParam();
  const std::vector<int> node_of = nodes_of_members(nodes, 2);
  const auto leaders = leaders_of(node_of);
  std::vector<MemberInfo> members;
  members.reserve(node_of.size());
  for (const int node : node_of) members.push_back({node, "n" + std::to_string(node)});
  for (int odd = 0; odd < nodes; ++odd) {
    std::vector<std::unique_ptr<CallReport>> reports;
    std::vector<Task<>> tasks;
    int odd_member = -1;
    for (const auto& leader : leaders) {
      NodeCalls calls{.signature = call_of(7)};
      if (leader->topology.own_node() == odd) {
        odd_member = leader->topology.local_members().back();
        for (const int member : leader->topology.local_members())
          calls.by_member.push_back({member, call_of(member == odd_member ? 6 : 7)});
      }
      reports.push_back(std::make_unique<CallReport>(leader->lane(), leader->topology, calls));
    }
    tasks.reserve(reports.size());
    for (const auto& report : reports) tasks.push_back(report->execute());
    drive(std::move(tasks));
    for (const auto& report : reports) {
      const Error error = report->disagreement("all_reduce #7", members);
      EXPECT_STREQ(error.what(), reports.front()->disagreement("all_reduce #7", members).what());
      if (node_of.size() < 3) continue;  // no majority
      EXPECT_EQ(error.origin().member, odd_member);
      EXPECT_THAT(error.what(), HasSubstr("member " + std::to_string(odd_member) + " "));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, RollCalls, ::testing::ValuesIn(kNodes));

TEST(RollCall, ComparesEverythingOnWhichMembersMustAgree) {
  const CallSignature usual = call_of(1);
  std::vector<CallSignature> others(10, usual);
  others[0].sequence = 2;
  others[1].elements = 2;
  others[2].layout = 1;
  others[3].kind = CollectiveKind::kReduce;
  others[4].dtype = DType::kUInt32;
  others[5].op = 3;
  others[6].priority = Priority::kUrgent;
  others[7].root = 1;
  others[8].device = DeviceKind::kCuda;
  others[9].captured = true;
  const auto leaders = leaders_of(nodes_of_members(2, 1));
  for (std::size_t field = 0; field < others.size(); ++field) {
    leaders[0]->roll_call->answer(usual, 0);
    leaders[1]->roll_call->answer(others[field], 0);
    hold(leaders);
    for (const auto& leader : leaders) EXPECT_FALSE(leader->roll_call->is_unanimous()) << "field " << field;
  }
}

}  // namespace
}  // namespace cohort::network
