// Sessions of processes that have nothing in common but a store: who they are, their groups, and their ends.
#include <cohort/rendezvous/session.h>

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>

#include "thrown.h"
#include "worker_processes.h"

namespace cohort::rendezvous {
namespace {

using namespace std::chrono_literals;
using cohort::testing::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The sum of `value` over the members, as all of them have it.
double sum_over(Communicator& communicator, double value) {
  const Tensor tensor = Tensor::full({1000}, DType::kFloat64, value);
  communicator.all_reduce(tensor, ReduceOp::kSum);
  return tensor.row(999).item<double>();
}

class SessionOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SessionOf, ::testing::Values(1, 2, 3, 5));

TEST_P(SessionOf, KnowsAllWorkersAndExchangesBlobs) {
  run_workers(GetParam(), [](Worker& self) {
    Session session(self.options());
    EXPECT_EQ(session.rank(), self.rank);
    ASSERT_EQ(session.size(), self.size);
    EXPECT_EQ(session.self().pid, ::getpid());
    EXPECT_EQ(session.self().local_rank, self.rank);
    EXPECT_EQ(session.workers().back().node, 0);
    const auto blob_of = [](int rank) {
      return std::string(static_cast<std::size_t>(rank) * 100'000, static_cast<char>('a' + rank));
    };
    for (int round = 0; round < 3; ++round) {
      const std::vector<std::string> blobs = session.exchange(blob_of(self.rank));
      ASSERT_EQ(blobs.size(), static_cast<std::size_t>(self.size));
      for (int rank = 0; rank < self.size; ++rank)
        EXPECT_EQ(blobs[static_cast<std::size_t>(rank)], blob_of(rank));
    }
  });
}

TEST_P(SessionOf, MakesCommunicators) {
  run_workers(GetParam(), [](Worker& self) {
    Session session(self.options());
    const auto communicator = session.make_communicator({});
    EXPECT_EQ(communicator->rank(), self.rank);
    EXPECT_EQ(sum_over(*communicator, self.rank), self.size * (self.size - 1) / 2);
    EXPECT_EQ(session.fault(), nullptr);
  });
}

TEST(Session, AsksLittleOfItsStore) {
  run_workers(3, [](Worker& self) {
    Session session(self.options());
    static_cast<void>(session.make_communicator({}));
    static_cast<void>(session.make_group(std::vector<int>{0, 1, 2}, "all"));
    if (self.rank == 0)
      EXPECT_THAT(self.store->calls(), ElementsAre("get", "set", "erase"));
    else
      EXPECT_THAT(self.store->calls(), ElementsAre("wait", "get"));
    EXPECT_EQ(self.store->keys(), 0U);
  });
}

TEST(Session, NamesTheWorkerThatNeverComes) {
  run_workers(3, [](Worker& self) {
    if (self.rank == 2) return;
    SessionOptions options = self.options();
    options.timeout = 0.5s;
    const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] { Session session(options); });
    EXPECT_THAT(text, AllOf(HasSubstr("'test/': deadline of 0.5 s passed; missing: worker 2."),
                            Not(HasSubstr("worker 1"))));
  });
}

TEST(Session, NamesTheFirstWorkerIfThatNeverComes) {
  run_workers(3, [](Worker& self) {
    if (self.rank == 0) return;
    SessionOptions options = self.options();
    options.timeout = 0.3s;
    const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] { Session session(options); });
    EXPECT_THAT(text, HasSubstr("missing: worker 0"));
  });
}

TEST(Session, SaysThatSizesDiffer) {
  run_workers(3, [](Worker& self) {
    SessionOptions options = self.options();
    if (self.rank == 1) options.size = 2;
    const std::string text = message_of(ErrorCode::kInvalidArgument, [&] { Session session(options); });
    EXPECT_THAT(text, AllOf(HasSubstr("worker 1 (host "), HasSubstr("is of 2, while worker 0 is of 3")));
  });
}

TEST(Session, SaysThatTwoWorkersHaveTheSameRank) {
  for (const int rank : {1, 0}) {
    run_workers(3, [rank](Worker& self) {
      SessionOptions options = self.options();
      if (self.rank == 2) options.rank = rank;
      const std::string text = message_of(ErrorCode::kInvalidArgument, [&] { Session session(options); });
      EXPECT_THAT(text, HasSubstr(rank == 0 ? "two workers have rank 0"
                                            : "two workers have the same rank: worker 1 (host"));
    });
  }
}

TEST(Session, TellsAllOfTheWrongSettingOfOne) {
  for (const int odd : {0, 1}) {
    run_workers(3, [odd](Worker& self) {
      if (self.rank == odd) ::setenv("COHORT_HEARTBAET_SECONDS", "1", 1);
      const std::string text =
          message_of(ErrorCode::kInvalidArgument, [&] { Session session(self.options()); });
      EXPECT_THAT(text, HasSubstr("COHORT_HEARTBAET_SECONDS"));
      const std::string who = "worker " + std::to_string(odd) + " (host ";
      EXPECT_THAT(text, HasSubstr(self.rank == odd ? "" : who));
    });
  }
}

TEST(Session, RefusesWorkersThatWatchInOtherWays) {
  run_workers(3, [](Worker& self) {
    if (self.rank == 2) ::setenv("COHORT_SILENCE_SECONDS", "7", 1);
    const std::string text =
        message_of(ErrorCode::kInvalidArgument, [&] { Session session(self.options()); });
    EXPECT_THAT(text, HasSubstr("a silence of 7 s"));
  });
}

TEST(Session, RefusesArgumentsThatMakeNoSense) {
  EXPECT_THROW(Session({.store = nullptr, .rank = 0, .size = 2}), InvalidArgument);
  EXPECT_THROW(Session({.rank = 1, .size = 1}), InvalidArgument);
  EXPECT_THROW(Session({.rank = 0, .size = 0}), InvalidArgument);
}

TEST(Session, FindsOutThatWorkersUseItInDifferentWays) {
  run_workers(3, [](Worker& self) {
    Session session(self.options());
    const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
      if (self.rank == 1)
        static_cast<void>(session.split(0, 0));
      else
        static_cast<void>(session.exchange("data"));
    });
    EXPECT_THAT(text, AllOf(HasSubstr("worker 1"), HasSubstr("splits its group")));
    EXPECT_THROW(static_cast<void>(session.exchange("again")), InvalidArgument);
  });
}

TEST(Session, RefusesCommunicatorsThatDiffer) {
  run_workers(2, [](Worker& self) {
    Session session(self.options());
    CommunicationOptions options;
    options.reproducible = self.rank == 1;
    const std::string text = message_of(ErrorCode::kInvalidArgument,
                                        [&] { static_cast<void>(session.make_communicator(options)); });
    EXPECT_THAT(text, HasSubstr("asks for reproducible"));
    EXPECT_EQ(sum_over(*session.make_communicator({}), 1), 2) << "nothing was changed";
  });
}

TEST(Session, NamesTheWorkerThatIsMissingInAnExchange) {
  run_workers(3, [](Worker& self) {
    SessionOptions options = self.options();
    options.timeout = 2s;
    Session session(options);
    const auto meet = session.make_communicator({});
    if (self.rank != 1) {
      const std::string text =
          message_of(ErrorCode::kDeadlineExceeded, [&] { static_cast<void>(session.exchange("")); });
      EXPECT_THAT(text, HasSubstr("missing: worker 1 (host "));
    }
    meet->barrier();
  });
}

TEST(Session, SplitsByColorAndKey) {
  run_workers(5, [](Worker& self) {
    Session session(self.options());
    for (int times = 0; times < 2; ++times) {
      const auto group = session.split(self.rank % 2, -self.rank);
      ASSERT_EQ(group->size(), self.rank % 2 == 0 ? 3 : 2);
      EXPECT_EQ(group->self().pid, ::getpid());
      EXPECT_EQ(group->rank(), group->size() - 1 - self.rank / 2);
      EXPECT_EQ(sum_over(*group->make_communicator({}), self.rank), self.rank % 2 == 0 ? 6 : 4);
      const auto within = group->split(0, 0);
      EXPECT_EQ(within->size(), group->size());
      EXPECT_EQ(within->exchange(std::to_string(self.rank)).front(), self.rank % 2 == 0 ? "4" : "3");
    }
  });
}

TEST(Session, MakesGroupsThatOverlapWithTheirMembersAlone) {
  run_workers(4, [](Worker& self) {
    Session session(self.options());
    const std::vector<std::vector<int>> lists = {{3, 1}, {1, 2, 3}, {0, 1}, {2}, {0, 3, 2, 1}};
    std::vector<std::unique_ptr<Group>> groups;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (std::ranges::find(lists[i], self.rank) == lists[i].end()) continue;
      groups.push_back(session.make_group(lists[i], std::to_string(i)));
      EXPECT_EQ(lists[i][static_cast<std::size_t>(groups.back()->rank())], self.rank);
      const auto communicator = groups.back()->make_communicator({});
      EXPECT_EQ(sum_over(*communicator, self.rank), std::accumulate(lists[i].begin(), lists[i].end(), 0));
    }
    // They last, in any order.
    while (!groups.empty()) {
      EXPECT_EQ(groups.back()->exchange("").size(), static_cast<std::size_t>(groups.back()->size()));
      groups.pop_back();
    }
  });
}

TEST(Session, RefusesGroupsThatMakeNoSense) {
  run_workers(3, [](Worker& self) {
    Session session(self.options());
    const auto refused = [&](std::vector<int> ranks, const char* why) {
      const std::string text = message_of(ErrorCode::kInvalidArgument,
                                          [&] { static_cast<void>(session.make_group(ranks, "group")); });
      EXPECT_THAT(text, HasSubstr(why));
    };
    refused({self.rank, 3}, "cannot have rank 3");
    refused({self.rank, self.rank}, "twice");
    refused({(self.rank + 1) % 3}, "without being one of them");
    // The members agree on their first, and not on the others.
    refused(self.rank == 2 ? std::vector<int>{0, 2, 1} : std::vector<int>{0, 1, 2}, "makes one of 0, 2, 1");
  });
}

TEST(Session, NamesTheMemberThatDoesNotComeToAGroup) {
  run_workers(3, [](Worker& self) {
    SessionOptions options = self.options();
    options.timeout = 0.5s;
    Session session(options);
    const auto meet = session.make_communicator({});
    if (self.rank != 2) {
      const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
        static_cast<void>(session.make_group(std::vector<int>{0, 1, 2}, "late"));
      });
      EXPECT_THAT(text, AllOf(HasSubstr("late"), HasSubstr("missing: worker 2 (host ")));
    }
    meet->barrier();
  });
}

TEST(Session, MayFollowAnotherInTheSameProcess) {
  run_workers(3, [](Worker& self) {
    for (const char* prefix : {"first/", "second/", "second/"}) {
      Session session(self.options(prefix));
      EXPECT_EQ(sum_over(*session.make_communicator({}), 1), 3);
    }
    Session one(self.options("one/"));
    Session two(self.options("two/"));
    EXPECT_EQ(sum_over(*one.make_communicator({}), 1) + sum_over(*two.make_communicator({}), 2), 9);
  });
}

TEST(Session, EndsBeforeOrAfterItsGroupsAndCommunicators) {
  for (int order = 0; order < 6; ++order) {
    run_workers(3, [order](Worker& self) {
      auto session = std::make_unique<Session>(self.options());
      auto group = session->make_group(std::vector<int>{2, 1, 0}, "group");
      auto communicator = group->make_communicator({});
      EXPECT_EQ(sum_over(*communicator, 1), 3);
      // Each worker in another order.
      for (int i = 0; i < 3; ++i) {
        switch ((order * (i + 1) + self.rank + i) % 3) {
          case 0: session.reset(); break;
          case 1: group.reset(); break;
          default: communicator.reset();
        }
      }
    });
  }
}

TEST(Session, OfOneThatLeavesIsNoDeathToTheOthers) {
  // Worker 0 passes on whether the others live, the others do not.
  for (const int leaver : {0, 2}) {
    run_workers(3, [leaver](Worker& self) {
      std::array<int, 2> others{};
      std::iota(others.begin(), others.end(), leaver == 0 ? 1 : 0);
      SessionOptions options = self.options();
      options.leave_timeout = 50ms;
      auto session = std::make_unique<Session>(options);
      if (self.rank == leaver) {
        const auto start = std::chrono::steady_clock::now();
        session.reset();
        EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
        self.store->set("left", "");
        return;
      }
      const std::string left = "left";
      const auto group = session->make_group(others, "others");
      const auto communicator = group->make_communicator({});
      ASSERT_TRUE(self.store->wait({&left, 1}, 30s));
      for (int i = 0; i < 100; ++i) EXPECT_EQ(sum_over(*communicator, 1), 2);
      EXPECT_EQ(session->fault(), nullptr);
    });
  }
}

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  DIR* const all = ::opendir(folder);
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

TEST(Session, LeavesNothingBehind) {
  run_workers(2, [](Worker& self) {
    std::size_t descriptors = 0;
    std::size_t maps = 0;
    for (int i = 0; i < 110; ++i) {
      {
        Session session(self.options("session " + std::to_string(i) + "/"));
        const auto group = session.make_group(std::vector<int>{1, 0}, "group");
        EXPECT_EQ(sum_over(*group->make_communicator({}), 1), 2);
      }
      if (i == 10) {  // what a process has once is there
        descriptors = entries_of("/proc/self/fd");
        maps = mappings();
      }
    }
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
    EXPECT_LE(mappings(), maps + 2);
    EXPECT_EQ(entries_of("/proc/self/task"), 3U) << "one thread, and two for the folder itself";
  });
}

TEST(Session, OfHostsWithOtherNamesIsOnSeveralNodes) {
  run_workers(3, [](Worker& self) {
    SessionOptions options = self.options();
    options.host = self.rank == 1 ? "b" : "a";
    Session session(options);
    EXPECT_EQ(session.self().host, options.host);
    EXPECT_EQ(session.self().node, self.rank == 1 ? 1 : 0);
    EXPECT_EQ(sum_over(*session.make_communicator({}), self.rank), 3);
    const auto group = session.split(session.self().node, 0);
    EXPECT_EQ(sum_over(*group->make_communicator({}), 1), group->size());
  });
}

}  // namespace
}  // namespace cohort::rendezvous
