// The contract that every Communicator fulfils, with members that are GPUs of processes of their own, and
// the strategies that use it.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/cuda/devices.h>
#include <cohort/nccl/communicator.h>

#include "communicator_contracts.h"
#include "gpu_members.h"
#include "mpi_main.h"
#include "thrown.h"

namespace cohort {
namespace {

using testing::session;

/// Ranks share GPUs where there are too few, which NCCL permits if NCCL_HOSTID differs.
Device own_gpu() {
  return {DeviceKind::kCuda, session().self().local_rank % static_cast<int>(cuda::devices().size())};
}

std::unique_ptr<Communicator> make_own_communicator(const CommunicationOptions& options, Device device) {
  const std::vector<std::unique_ptr<Communicator>> hosts = session().make_communicators(options, 1);
  return std::move(nccl::make_communicators(hosts, {&device, 1}).front());
}

std::unique_ptr<Communicator> make_communicator(double timeout_seconds = 30) {
  return testing::on_gpu(make_own_communicator({.timeout_seconds = timeout_seconds}, own_gpu()), own_gpu());
}

TEST(NcclOverRanks, KnowsItsMembers) {
  const auto communicator = make_communicator();
  EXPECT_EQ(communicator->name(), "nccl");
  EXPECT_EQ(communicator->rank(), session().rank());
  EXPECT_EQ(communicator->size(), session().size());
}

TEST(NcclOverRanks, ReducesExactly) { testing::check_reductions(*make_communicator()); }
TEST(NcclOverRanks, MovesData) { testing::check_data_movement(*make_communicator()); }
TEST(NcclOverRanks, PassesMessages) { testing::check_messages(*make_communicator()); }
TEST(NcclOverRanks, KeepsManyInFlight) { testing::check_async(*make_communicator()); }
TEST(NcclOverRanks, NamesTheOddMember) { testing::check_mismatch(*make_communicator()); }
TEST(NcclOverRanks, NamesTheMissingMember) {
  const auto others = session().make_communicator({});
  const auto communicator = make_communicator(0.5);
  testing::check_missing(*communicator);
  others->barrier();  // the last one is missing, and has not left
}
TEST(NcclOverRanks, Splits) { testing::check_split(*make_communicator()); }

TEST(NcclOverRanks, MayEndOneAfterTheOther) {
  const auto others = session().make_communicator({});
  auto communicator = make_communicator(1);
  communicator->barrier();
  // The first waits for the last to come here, and NCCL has the last wait for the first.
  if (session().rank() == 0) others->barrier();
  communicator.reset();
  if (session().rank() != 0) others->barrier();
}

TEST(NcclOverRanks, Packs) {
  const std::unique_ptr<Communicator> communicator =
      make_own_communicator({.timeout_seconds = 30}, own_gpu());
  testing::check_cost(*communicator);
  testing::check_batches(*communicator);
  testing::check_buckets(*communicator);
}

TEST(NcclOverRanks, RefusesToShareAGpu) {
  if (session().size() == 1 || std::getenv("NCCL_HOSTID") != nullptr) GTEST_SKIP();
  const std::string text = testing::message_of(ErrorCode::kUnavailable, [] {
    static_cast<void>(make_own_communicator({}, Device(DeviceKind::kCuda, 0)));
  });
  EXPECT_THAT(text, ::testing::HasSubstr("member 0 (worker 0, host"));
  EXPECT_THAT(text, ::testing::HasSubstr("and member 1 (worker 1, host"));
  EXPECT_THAT(text, ::testing::HasSubstr("share a GPU"));
  EXPECT_NO_THROW(make_communicator()->barrier());
}

}  // namespace
}  // namespace cohort
