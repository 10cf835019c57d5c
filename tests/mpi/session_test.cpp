// The Session as Bootstrap: the list of workers, the exchange of blobs, and its refusals.
#include <cohort/mpi/session.h>

#include <unistd.h>

#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>

#include "cluster/agreement.h"
#include "mpi/agreement.h"
#include "mpi/transport/shared_comms.h"
#include "mpi_main.h"

namespace cohort::mpi {
namespace {

using cohort::testing::session;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

TEST(Session, ListsAllWorkers) {
  ASSERT_GE(session().size(), 1);
  EXPECT_EQ(session().self().rank, session().rank());
  EXPECT_EQ(session().self().pid, ::getpid());
  EXPECT_EQ(session().is_chief(), session().rank() == 0);
  std::map<std::string, std::vector<WorkerInfo>> by_host;
  int nodes = 0;
  for (int rank = 0; rank < session().size(); ++rank) {
    const WorkerInfo& worker = session().workers()[static_cast<std::size_t>(rank)];
    std::vector<WorkerInfo>& neighbours = by_host[worker.host];
    EXPECT_EQ(worker.rank, rank);
    EXPECT_EQ(worker.node, neighbours.empty() ? nodes++ : neighbours.front().node);
    EXPECT_EQ(worker.local_rank, static_cast<int>(neighbours.size()));
    for (const WorkerInfo& neighbour : neighbours) EXPECT_NE(worker.pid, neighbour.pid);
    neighbours.push_back(worker);
  }
  EXPECT_FALSE(by_host.contains(""));
}

TEST(Session, ExchangesBlobsOfDifferentSizes) {
  const auto blob_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * rank * 1000), static_cast<char>('a' + rank));
  };
  const std::vector<std::string> blobs = session().exchange(blob_of(session().rank()));
  ASSERT_EQ(blobs.size(), session().workers().size());
  for (int rank = 0; rank < session().size(); ++rank)
    EXPECT_EQ(blobs[static_cast<std::size_t>(rank)], blob_of(rank));
}

TEST(EagerLimit, IsReadFromTheLibrary) {
  const char* limit = std::getenv("OMPI_MCA_btl_tcp_eager_limit");
  if (limit == nullptr) GTEST_SKIP() << "the library's own choice";
  EXPECT_EQ(longest_eager_message(), longest_message_below(std::strtoul(limit, nullptr, 10)));
}

TEST(EagerLimit, LeavesRoomForHeadersAndStaysWithinSense) {
  EXPECT_EQ(longest_message_below(std::size_t{64} << 10), std::size_t{56} << 10);
  EXPECT_EQ(longest_message_below(10'240), 8192u);
  EXPECT_EQ(longest_message_below(0), 4096u);
  EXPECT_EQ(longest_message_below(~std::size_t{0}), std::size_t{256} << 10);
}

TEST(Session, ExchangesEmptyBlobsAndEveryByte) {
  EXPECT_THAT(session().exchange(""), ::testing::Each(""));
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  EXPECT_THAT(session().exchange(all_bytes), ::testing::Each(all_bytes));
}

TEST(Session, IsAloneInItsProcess) { EXPECT_THROW(Session(), WrongContext); }

TEST(Session, RefusesWrongOptionsBeforeAnyoneIsWaitedFor) {
  if (session().rank() == 0) {
    EXPECT_THROW(static_cast<void>(session().make_communicator({.timeout_seconds = -1.0})), InvalidArgument);
  }
  EXPECT_NO_THROW(session().make_communicator({})->barrier());
}

TEST(Session, TellsTheLibraryVersion) { EXPECT_THAT(library_version(), HasSubstr("MPI")); }

const std::vector<WorkerInfo> kThree{{0, 0, 0, "n0", 10}, {1, 0, 1, "n0", 11}, {2, 1, 0, "n1", 12}};

TEST(LaunchAgreement, NamesThoseWithAnotherVersion) {
  EXPECT_NO_THROW(require_same_version(kThree, std::vector<std::string>(3, "1.0.0")));
  EXPECT_THAT(
      [] {
        require_same_version(kThree, std::vector<std::string>{"1.0.0", "1.0.0", "0.9.0"});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("worker 2 (host n1, pid 12) runs 0.9.0"),
                                           HasSubstr("the other 2 run 1.0.0"), Not(HasSubstr("worker 1")))));
}

TEST(LaunchAgreement, NamesThoseWithOtherDevices) {
  EXPECT_NO_THROW(require_same_devices(kThree, std::vector<int>{2, 2, 2}));
  EXPECT_THAT(
      [] {
        require_same_devices(kThree, std::vector<int>{2, 1, 2});
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("worker 1 (host n0, pid 11) has 1"), HasSubstr("the other 2 have 2"))));
}

TEST(LaunchAgreement, NamesThoseWhoWatchTheOthersInAnotherWay) {
  EXPECT_NO_THROW(require_same_watch(kThree, std::vector<std::string>(3, "a heartbeat of 1 s")));
  EXPECT_THAT(
      [] {
        require_same_watch(kThree, std::vector<std::string>{"a heartbeat of 1 s", "a heartbeat of 1 s",
                                                            "a heartbeat of 10 s"});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("worker 2 (host n1, pid 12) has a heartbeat of 10 s"),
                                           HasSubstr("the other 2 have a heartbeat of 1 s"),
                                           HasSubstr("COHORT_HEARTBEAT_SECONDS"))));
}

TEST(LaunchAgreement, WarnsOfThoseWithOtherGpus) {
  using Gpus = std::vector<std::optional<int>>;
  EXPECT_EQ(warning_of_other_gpus(kThree, Gpus{2, 2, 2}), "");
  EXPECT_EQ(warning_of_other_gpus(kThree, Gpus(3)), "");
  EXPECT_THAT(warning_of_other_gpus(kThree, Gpus{2, 2, 0}),
              AllOf(HasSubstr("worker 2 (host n1, pid 12) has 0 GPUs, while the other 2 have 2 GPUs"),
                    HasSubstr("CUDA_VISIBLE_DEVICES"), Not(HasSubstr("worker 0"))));
  EXPECT_THAT(
      warning_of_other_gpus(kThree, Gpus{1, 1, {}}),
      HasSubstr(
          "worker 2 (host n1, pid 12) has no variable that names its GPUs, while the other 2 have 1 GPU."));
}

using Places = std::vector<std::optional<LauncherPlace>>;

LauncherPlace place(int rank, int size) { return {"srun", "SLURM_STEP_NUM_TASKS", rank, size}; }

TEST(LaunchAgreement, LetsPassWhatAgrees) {
  EXPECT_NO_THROW(require_places_of_launcher(kThree, Places{place(0, 3), place(1, 3), place(2, 3)}));
  EXPECT_NO_THROW(require_places_of_launcher(kThree, Places(3)));
  EXPECT_NO_THROW(require_places_of_launcher(kThree, Places{{}, LauncherPlace{"PMIx", "", 1, {}}, {}}));
  EXPECT_NO_THROW(require_places_of_launcher(std::span(kThree).first(1), Places{place(0, 1)}));
}

TEST(LaunchAgreement, NamesThoseWhoseLauncherSaysOtherwise) {
  EXPECT_THAT(
      [] {
        require_places_of_launcher(kThree, Places{place(0, 3), place(1, 3), place(2, 4)});
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("worker 2 (host n1, pid 12): SLURM_STEP_NUM_TASKS says that there are 4 workers"),
                HasSubstr("MPI has 3"))));
  EXPECT_THAT(
      [] {
        require_places_of_launcher(kThree, Places{place(0, 3), place(2, 3), {}});
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("worker 1 (host n0, pid 11)"), HasSubstr("rank 2, but MPI numbers it 1"))));
}

TEST(LaunchAgreement, RefusesAWorkerThatMpiDoesNotKnowTheOthersOf) {
  EXPECT_THAT([] { require_places_of_launcher(std::span(kThree).first(1), Places{place(1, 4)}); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("host n0, pid 10: srun started this process as rank 1 of 4"),
                        HasSubstr("does not belong to this MPI library"))));
}

}  // namespace
}  // namespace cohort::mpi
