// The communicators of Sessions do what those of all others do.
#include <functional>

#include <gtest/gtest.h>

#include <cohort/collective/communicator.h>
#include <cohort/rendezvous/session.h>

#include "communicator_contracts.h"
#include "worker_processes.h"

namespace cohort::rendezvous {
namespace {

using Check = void (*)(Communicator&);

struct Contract {
  const char* name;
  Check check;
};

class CommunicatorOfSession : public ::testing::TestWithParam<std::tuple<int, Contract>> {};

INSTANTIATE_TEST_SUITE_P(
    Contracts, CommunicatorOfSession,
    ::testing::Combine(::testing::Values(2, 3),
                       ::testing::Values(Contract{"Reductions", testing::check_reductions},
                                         Contract{"Arithmetic", testing::check_arithmetic},
                                         Contract{"DataMovement", testing::check_data_movement},
                                         Contract{"SizesAndMemory", testing::check_sizes_and_memory},
                                         Contract{"Messages", testing::check_messages},
                                         Contract{"Async", testing::check_async},
                                         Contract{"Packed", testing::check_packed},
                                         Contract{"Arguments", testing::check_arguments},
                                         Contract{"Mismatch", testing::check_mismatch})),
    [](const auto& of) {
      return std::string(std::get<1>(of.param).name) + "Of" + std::to_string(std::get<0>(of.param));
    });

TEST_P(CommunicatorOfSession, KeepsTheContract) {
  const auto [size, contract] = GetParam();
  run_workers(size, [check = contract.check](Worker& self) {
    Session session(self.options());
    check(*session.make_communicator({.timeout_seconds = 60}));
    // As members of a group.
    const auto group = session.split(0, -self.rank);
    check(*group->make_communicator({.timeout_seconds = 60}));
  });
}

}  // namespace
}  // namespace cohort::rendezvous
