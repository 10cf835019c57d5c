// The communicators of Sessions do what those of all others do, on one host and between nodes: workers of
// this machine in groups (COHORT_WORKERS_PER_NODE), which have the network alone in common.
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cohort/collective/communicator.h>
#include <cohort/rendezvous/session.h>

#include "communicator_contracts.h"
#include "thrown.h"
#include "worker_processes.h"

namespace cohort::rendezvous {
namespace {

struct Layout {
  int hosts = 1;
  int workers = 1;  ///< of each
  [[nodiscard]] int size() const { return hosts * workers; }
};

struct Contract {
  const char* name;
  void (*check)(Communicator&);
  /// Of the communicator; 0 for one that no member lets pass.
  double (*timeout)(int members) = nullptr;
};

/// In a worker, before it looks at its settings.
void pretend(const Layout& layout) {
  ::setenv("COHORT_WORKERS_PER_NODE", std::to_string(layout.workers).c_str(), 1);
}

class CommunicatorOfSession : public ::testing::TestWithParam<std::tuple<Layout, Contract>> {};

std::string name_of_case(const ::testing::TestParamInfo<std::tuple<Layout, Contract>>& of) {
  const auto& [layout, contract] = of.param;
  return fmt::format("{}Of{}x{}", contract.name, layout.hosts, layout.workers);
}

/// Sent without a receive, it would turn up in a later group.
void check_messages_of_a_group(Communicator& communicator) {
  testing::check_messages_stay_in_their_group(communicator, 1000);
}

INSTANTIATE_TEST_SUITE_P(
    Contracts, CommunicatorOfSession,
    ::testing::Combine(
        ::testing::Values(Layout{1, 2}, Layout{1, 3}, Layout{2, 1}, Layout{2, 2}, Layout{3, 1}, Layout{6, 1}),
        ::testing::Values(Contract{"Reductions", testing::check_reductions},
                          Contract{"Arithmetic", testing::check_arithmetic},
                          Contract{"DataMovement", testing::check_data_movement},
                          Contract{"SizesAndMemory", testing::check_sizes_and_memory},
                          Contract{"Messages", testing::check_messages},
                          Contract{"Async", testing::check_async}, Contract{"Packed", testing::check_packed},
                          Contract{"Arguments", testing::check_arguments},
                          Contract{"Mismatch", testing::check_mismatch},
                          Contract{"Missing", testing::check_missing, testing::short_timeout},
                          Contract{"AgreementOnDifferentCalls", testing::check_agreement_on_different_calls},
                          Contract{"AgreementWithAMissingMember",
                                   testing::check_agreement_with_a_missing_member, testing::short_timeout},
                          Contract{"ShorterDeadline", testing::check_shorter_deadline},
                          Contract{"Split", testing::check_split},
                          Contract{"GroupsBesideEachOther", testing::check_groups_beside_each_other},
                          Contract{"SplitWithoutAgreement", testing::check_split_without_agreement},
                          Contract{"ErrorsInAGroup", testing::check_errors_stay_in_their_group},
                          Contract{"LeavingAGroup", testing::check_leaving_a_group},
                          Contract{"MessagesOfAGroup", check_messages_of_a_group},
                          Contract{"Batches", testing::check_batches},
                          Contract{"Buckets", testing::check_buckets})),
    name_of_case);

TEST_P(CommunicatorOfSession, KeepsTheContract) {
  const auto& [layout, contract] = GetParam();
  run_workers(layout.size(), [layout = layout, contract = contract](Worker& self) {
    pretend(layout);
    Session session(self.options());
    EXPECT_EQ(session.workers().back().node, layout.hosts - 1);
    CommunicationOptions options;
    options.timeout_seconds = contract.timeout == nullptr ? 60 : contract.timeout(self.size);
    const auto communicator = session.make_communicator(options);
    contract.check(*communicator);
    // As members of a group, in another order.
    const auto group = session.split(0, -self.rank);
    const auto of_group = group->make_communicator(options);
    contract.check(*of_group);
    static_cast<void>(session.exchange("none leaves before all have finished"));
  });
}

TEST(CommunicatorsOfSession, HaveSeveralMembersInEachWorker) {
  run_workers(4, [](Worker& self) {
    pretend({2, 2});
    Session session(self.options());
    const auto communicators = session.make_communicators({.timeout_seconds = 60}, 3);
    std::vector<std::thread> members;
    members.reserve(communicators.size());
    for (const auto& communicator : communicators) {
      members.emplace_back([&communicator] {
        ASSERT_EQ(communicator->size(), 12);
        testing::check_sizes_and_memory(*communicator);
        testing::check_split(*communicator);
      });
    }
    for (std::thread& member : members) member.join();
  });
}

}  // namespace
}  // namespace cohort::rendezvous
