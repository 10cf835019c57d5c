// Long calls whose data goes between nodes by fewer lanes than the nodes have members: the members without a
// lane send nothing, and all results are the same.
#include <algorithm>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>

#include "collective/choice/tuning_figures.h"
#include "collective/network/cost_model.h"
#include "communicator_contracts.h"
#include "members.h"

namespace cohort::testing {
namespace {

struct Case {
  Layout layout;
  int lanes;
};

class FewLanes : public ::testing::TestWithParam<Case> {
 protected:
  // In place of a probe.
  void SetUp() override {
    TuningTable table;
    table.set(Figure::kLanes, GetParam().lanes, TuningSource::kProbed);
    const Layout& layout = GetParam().layout;
    // Also of groups without one of the members.
    for (const int members : {layout.nodes * layout.members, layout.nodes * layout.members - 1})
      TuningStore::of_this_process().keep(shape_of_network(layout.nodes, members), table);
  }
};

TEST_P(FewLanes, ReduceExactly) { for_each_member(GetParam().layout, check_reductions); }
TEST_P(FewLanes, FollowTheRulesOfArithmetic) { for_each_member(GetParam().layout, check_arithmetic); }
TEST_P(FewLanes, MoveData) { for_each_member(GetParam().layout, check_data_movement); }
TEST_P(FewLanes, WorkAtEverySizeInAnyMemory) { for_each_member(GetParam().layout, check_sizes_and_memory); }
TEST_P(FewLanes, KeepManyInFlight) { for_each_member(GetParam().layout, check_async); }
TEST_P(FewLanes, ReducePackedTensors) { for_each_member(GetParam().layout, check_packed); }
TEST_P(FewLanes, KeepTheOrderOfTheRanks) {
  for_each_member(GetParam().layout, check_rank_order_of_sizes, {.reproducible = true});
}

/// Counts the bytes that each member sends.
class CountingTransport final : public ThreadTransport {
 public:
  CountingTransport(std::shared_ptr<Switchboard> board, int rank, std::size_t& bytes)
      : ThreadTransport(std::move(board), rank), bytes_(bytes) {}
  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    bytes_ += data.size();
    return ThreadTransport::send(to, data);
  }

 private:
  std::size_t& bytes_;
};

constexpr std::int64_t kElements = 1 << 20;

/// The bytes that each member sends in the calls that `make_calls` makes.
std::vector<std::size_t> bytes_sent(const Layout& layout,
                                    const std::function<void(Communicator&, const Tensor&)>& make_calls,
                                    const CommunicationOptions& options = {}) {
  std::vector<std::size_t> sent(static_cast<std::size_t>(layout.nodes * layout.members));
  for_each_member(
      layout,
      [&](Communicator& communicator) {
        const Tensor tensor = Tensor::full({kElements}, DType::kFloat32, communicator.rank() == 0 ? 2 : 1);
        make_calls(communicator, tensor);
      },
      options,
      [&](std::shared_ptr<Switchboard> board, int rank) {
        return std::make_unique<CountingTransport>(std::move(board), rank,
                                                   sent[static_cast<std::size_t>(rank)]);
      });
  return sent;
}

void expect_sent_by_lanes_alone(const Case& of, const std::vector<std::size_t>& sent) {
  const int lanes = std::min(of.lanes, of.layout.members);
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    const bool has_lane = static_cast<int>(rank) % of.layout.members < lanes;
    // The leaders also hold roll calls.
    const std::size_t share = kElements * sizeof(float) / static_cast<std::size_t>(lanes);
    if (has_lane) {
      EXPECT_GE(sent[rank], share * 9 / 10) << "member " << rank;
      EXPECT_LE(sent[rank], share * 5) << "member " << rank;
    } else {
      EXPECT_EQ(sent[rank], 0) << "member " << rank;
    }
  }
}

TEST_P(FewLanes, AreTheOnesThatSend) {
  const Layout& layout = GetParam().layout;
  const float sum = static_cast<float>(layout.nodes * layout.members + 1);
  expect_sent_by_lanes_alone(GetParam(),
                             bytes_sent(layout, [&](Communicator& communicator, const Tensor& tensor) {
                               communicator.all_reduce(tensor, ReduceOp::kSum);
                               EXPECT_EQ(tensor.span<float>().front(), sum);
                               EXPECT_EQ(tensor.span<float>().back(), sum);
                               EXPECT_EQ(std::ranges::count(tensor.span<float>(), sum), kElements);
                             }));
}

TEST_P(FewLanes, AreTheOnesThatSendReproducibleSums) {
  const Layout& layout = GetParam().layout;
  expect_sent_by_lanes_alone(GetParam(), bytes_sent(layout,
                                                    [](Communicator& communicator, const Tensor& tensor) {
                                                      communicator.all_reduce(tensor, ReduceOp::kSum);
                                                    },
                                                    {.reproducible = true}));
}

TEST_P(FewLanes, AreTheOnesThatSendABroadcast) {
  const Layout& layout = GetParam().layout;
  for (const int root : {0, layout.members - 1}) {
    const std::vector<std::size_t> sent =
        bytes_sent(layout, [&](Communicator& communicator, const Tensor& tensor) {
          const Tensor data =
              communicator.rank() == root ? Tensor::full({kElements}, DType::kFloat32, 5) : tensor;
          communicator.broadcast(data, root);
          EXPECT_EQ(std::ranges::count(data.span<float>(), 5.0F), kElements);
        });
    for (std::size_t rank = 0; rank < sent.size(); ++rank) {
      if (static_cast<int>(rank) % layout.members >= GetParam().lanes) {
        EXPECT_EQ(sent[rank], 0) << "member " << rank;
      }
    }
  }
}

TEST_P(FewLanes, AreEnoughForGroupsOfUnevenNodes) {
  for_each_member(GetParam().layout, [&](Communicator& world) {
    // All but one member of the first node, from the last to the first.
    const bool left_out = world.rank() == 1;
    const auto group = world.split(left_out ? std::nullopt : std::optional<int>(0), -world.rank());
    if (group == nullptr) return;
    check_data_movement(*group);
    const Tensor tensor = Tensor::full({100'003}, DType::kFloat32, 1);
    group->all_reduce(tensor, ReduceOp::kSum);
    EXPECT_EQ(std::ranges::count(tensor.span<float>(), static_cast<float>(group->size())), 100'003);
    const Tensor result = Tensor::full({100'003}, DType::kFloat32, 0);
    group->reduce(tensor, result, ReduceOp::kMax, group->size() - 1);
    if (group->rank() == group->size() - 1) {
      EXPECT_EQ(std::ranges::count(result.span<float>(), static_cast<float>(group->size())), 100'003);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, FewLanes,
                         ::testing::Values(Case{{2, 3}, 1}, Case{{2, 4}, 2}, Case{{3, 4}, 1}, Case{{4, 5}, 3},
                                           Case{{2, 10}, 2}, Case{{3, 2}, 8}),
                         [](const auto& instance) {
                           const Layout& layout = instance.param.layout;
                           return fmt::format("{}x{}by{}", layout.nodes, layout.members,
                                              instance.param.lanes);
                         });

}  // namespace
}  // namespace cohort::testing
