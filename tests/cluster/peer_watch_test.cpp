// Workers of a PeerWatch as threads of one process: which worker learns what, in every shape of cluster. What
// only processes can do (be killed, stopped, signalled) is tested in peer_watch_processes_test.cpp.
#include "cluster/peer_watch.h"

#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <future>
#include <latch>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blob_meeting.h"
#include "cluster/watch_link.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

/// The number of workers on each node.
using Layout = std::vector<int>;

std::vector<WorkerInfo> make_workers(const Layout& layout) {
  std::vector<WorkerInfo> workers;
  for (std::size_t node = 0; node < layout.size(); ++node) {
    for (int local = 0; local < layout[node]; ++local) {
      workers.push_back({static_cast<int>(workers.size()), static_cast<int>(node), local,
                         fmt::format("n{}", node), 1000 + static_cast<int>(workers.size())});
    }
  }
  return workers;
}

using Tamper = std::function<void(int rank, std::vector<std::string>& blobs)>;

/// A cluster of threads; each has a watch, and does what the test says.
class Cluster {
 public:
  explicit Cluster(const Layout& layout, Tamper tamper = {})
      : workers(make_workers(layout)),
        lines(workers.size()),
        exchange_(workers.size()),
        tamper_(std::move(tamper)) {}

  void run(const std::function<void(int rank, std::optional<PeerWatch>& watch)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      threads.emplace_back([this, &body, rank = static_cast<int>(i)] {
        std::optional<PeerWatch> watch(std::in_place, options(rank));
        body(rank, watch);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] int size() const { return static_cast<int>(workers.size()); }

  std::vector<WorkerInfo> workers;
  std::vector<std::promise<std::string>> lines;  ///< what each process would have ended with
  std::optional<std::chrono::duration<double>> grace{60};
  std::chrono::milliseconds connect{300};

 private:
  PeerWatchOptions options(int rank) {
    PeerWatchOptions options;
    options.rank = rank;
    options.workers = workers;
    options.exchange = [this, rank](std::string_view blob) {
      std::vector<std::string> blobs = exchange_(rank, blob);
      if (tamper_) tamper_(rank, blobs);
      return blobs;
    };
    options.grace = grace;
    options.connect = connect;
    options.handle_signals = false;
    options.end_process = [this, rank](const std::string& line) {
      lines[static_cast<std::size_t>(rank)].set_value(line);
    };
    return options;
  }

  BlobMeeting exchange_;
  Tamper tamper_;
};

class PeerWatchIn : public testing::TestWithParam<Layout> {};

INSTANTIATE_TEST_SUITE_P(Layouts, PeerWatchIn,
                         testing::Values(Layout{2}, Layout{4}, Layout{1, 1}, Layout{2, 1}, Layout{1, 3},
                                         Layout{2, 2, 2}, Layout{1, 1, 1, 1}, Layout{3, 2}));

TEST_P(PeerWatchIn, LetsAllLeaveTogether) {
  Cluster cluster(GetParam());
  std::atomic<int> ready = 0;
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    EXPECT_TRUE(watch->unwatched().empty());
    if (rank == cluster.size() - 1) std::this_thread::sleep_for(30ms);
    ++ready;
    EXPECT_TRUE(watch->leave());
    EXPECT_EQ(ready, cluster.size()) << "worker " << rank << " got away before all were ready";
    EXPECT_EQ(watch->fault(), nullptr);
  });
}

TEST_P(PeerWatchIn, LetsEachLeaveWhenItWants) {
  Cluster cluster(GetParam());
  std::barrier all_have_left(cluster.size());
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    // Some find that those below them are gone, the others that nobody waits for them.
    static_cast<void>(watch->leave_within(rank % 2 == 0 ? 0ms : 20ms));
    EXPECT_EQ(watch->fault(), nullptr);
    const std::shared_ptr<const FaultRecord> record = watch->record();
    watch.reset();
    all_have_left.arrive_and_wait();
    EXPECT_EQ(record->fault(), nullptr) << "worker " << rank << " took a leave for a death";
  });
}

TEST_P(PeerWatchIn, GoesOnBelowWorkersThatOthersNeedNot) {
  // The last one watches on behalf of nobody.
  Cluster cluster(GetParam());
  std::latch has_left(1);
  std::barrier ends(cluster.size() - 1);
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    if (rank == cluster.size() - 1) {
      const bool below = watch->leave_within(10s);
      EXPECT_TRUE(below);
      watch.reset();
      return has_left.count_down();
    }
    has_left.wait();
    EXPECT_EQ(watch->record()->wait_for_fault(50ms), nullptr);
    ends.arrive_and_wait();
    EXPECT_TRUE(watch->leave());
  });
}

TEST_P(PeerWatchIn, EndsNoProcessThatWantsToDecideForItself) {
  Cluster cluster(GetParam());
  cluster.grace = std::nullopt;
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    if (rank == cluster.size() - 1) return watch->announce_failure("it has had enough");
    ASSERT_NE(watch->record()->wait_for_fault(5s), nullptr);
    std::future<std::string> line = cluster.lines[static_cast<std::size_t>(rank)].get_future();
    EXPECT_EQ(line.wait_for(50ms), std::future_status::timeout);
  });
}

TEST_P(PeerWatchIn, NamesTheWorkerThatVanished) {
  for (int victim = 0; victim < static_cast<int>(make_workers(GetParam()).size()); ++victim) {
    Cluster cluster(GetParam());
    cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
      if (rank == victim) return watch.reset();
      const Error* fault = watch->record()->wait_for_fault(5s);
      ASSERT_NE(fault, nullptr) << "worker " << rank << " does not know that " << victim << " is gone";
      EXPECT_EQ(fault->what(), describe(cluster.workers[static_cast<std::size_t>(victim)]) +
                                   " is gone: its process ended without leaving the session");
      EXPECT_EQ(fault->code(), ErrorCode::kUnavailable);
      EXPECT_EQ(fault->origin().member, victim);
      EXPECT_EQ(fault->origin().host, cluster.workers[static_cast<std::size_t>(victim)].host);
      EXPECT_FALSE(watch->leave());
    });
  }
}

TEST_P(PeerWatchIn, SpreadsTheReasonOfAFailure) {
  const int victim = static_cast<int>(make_workers(GetParam()).size()) - 1;
  Cluster cluster(GetParam());
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    if (rank == victim) {
      watch->announce_failure("division by zero");
      return watch.reset();
    }
    const Error* fault = watch->record()->wait_for_fault(5s);
    ASSERT_NE(fault, nullptr);
    EXPECT_THAT(fault->what(), AllOf(HasSubstr(describe(cluster.workers[static_cast<std::size_t>(victim)])),
                                     HasSubstr("failed: division by zero")));
    EXPECT_EQ(fault->code(), ErrorCode::kAborted);
  });
}

TEST_P(PeerWatchIn, BringsNotesToOneWorkerAndToAll) {
  Cluster cluster(GetParam());
  std::atomic<int> content = 0;  // workers that have heard all others in both ways
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    std::mutex mutex;
    std::set<std::string> heard;
    watch->hear_notes([&](std::string_view note) {
      const std::lock_guard lock(mutex);
      heard.emplace(note);
    });
    std::set<std::string> expected;
    for (const WorkerInfo& other : cluster.workers) {
      if (other.rank == rank) continue;
      expected.insert(fmt::format("from {} to {}", other.rank, rank));
      expected.insert(fmt::format("from {} to all", other.rank));
    }
    // Again and again, for a note to a worker that does not listen yet is lost.
    const auto end = std::chrono::steady_clock::now() + 10s;
    for (bool counted = false; content < cluster.size() && std::chrono::steady_clock::now() < end;) {
      for (const WorkerInfo& other : cluster.workers) {
        if (other.rank != rank) watch->tell(other.rank, fmt::format("from {} to {}", rank, other.rank));
      }
      watch->tell_all(fmt::format("from {} to all", rank));
      std::this_thread::sleep_for(2ms);
      const std::lock_guard lock(mutex);
      if (!counted && heard == expected) {
        counted = true;
        ++content;
      }
    }
    EXPECT_TRUE(watch->leave());
    EXPECT_EQ(heard, expected) << "worker " << rank;
    watch.reset();  // before what it hears with
  });
}

TEST_P(PeerWatchIn, NoticesADeathWhileTheOthersAreLeaving) {
  const int victim = static_cast<int>(make_workers(GetParam()).size()) - 1;
  Cluster cluster(GetParam());
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    if (rank == victim) {
      std::this_thread::sleep_for(30ms);
      return watch.reset();
    }
    EXPECT_FALSE(watch->leave());
    ASSERT_NE(watch->fault(), nullptr);
    EXPECT_EQ(watch->fault()->origin().member, victim);
  });
}

TEST(PeerWatch, MakesRoomForTheLinksOfManyWorkers) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 150, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Cluster cluster({20, 20});  // of which the ends of all links are in this one process
  std::atomic<int> left{0};
  cluster.run([&](int, std::optional<PeerWatch>& watch) {
    EXPECT_TRUE(watch->unwatched().empty());
    left += watch->leave() ? 1 : 0;
  });
  EXPECT_EQ(left, cluster.size());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// All of them connect at the same time; each has four descriptors here, and a fifth at the chief.
TEST(PeerWatch, LinksAThousandNodes) {
  constexpr int kNodes = 1000;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit many{.rlim_cur = 6 * kNodes, .rlim_max = before.rlim_max};
  if (before.rlim_max < many.rlim_cur) GTEST_SKIP() << "only " << before.rlim_max << " descriptors allowed";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &many), 0);
  Cluster cluster(Layout(kNodes, 1));
  cluster.connect = 5s;  // as in a job
  std::atomic<int> left{0};
  cluster.run([&](int, std::optional<PeerWatch>& watch) {
    EXPECT_TRUE(watch->unwatched().empty());
    left += watch->leave() ? 1 : 0;
  });
  EXPECT_EQ(left, kNodes);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(PeerWatch, LeavesItsRecordToThoseWhoStillLook) {
  Cluster cluster({2});
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    if (rank == 1) return watch.reset();
    ASSERT_NE(watch->record()->wait_for_fault(5s), nullptr);
    const std::shared_ptr<const FaultRecord> record = watch->record();
    watch.reset();
    ASSERT_NE(record->fault(), nullptr);
    EXPECT_EQ(record->fault()->origin().member, 1);
  });
}

TEST(PeerWatch, EndsTheProcessWhenTheGraceIsOver) {
  Cluster cluster({2, 1});
  cluster.grace = 0.2s;
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    if (rank == 2) return watch.reset();
    const auto start = std::chrono::steady_clock::now();
    const std::string line = cluster.lines[static_cast<std::size_t>(rank)].get_future().get();
    EXPECT_GE(std::chrono::steady_clock::now() - start, 0.1s);
    EXPECT_EQ(line, "cohort: " + describe(cluster.workers[static_cast<std::size_t>(rank)]) +
                        " ends because " + describe(cluster.workers[2]) +
                        " is gone: its process ended without leaving the session"
                        " (cohort-info --explain unavailable)");
  });
}

TEST(PeerWatch, EndsAFailedProcessThatDoesNotEndItself) {
  Cluster cluster({2});
  cluster.grace = 0.2s;
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    if (rank == 1) watch->announce_failure("out of luck");
    const std::string line = cluster.lines[static_cast<std::size_t>(rank)].get_future().get();
    EXPECT_THAT(line, HasSubstr("out of luck"));
  });
}

TEST(PeerWatch, FallsBackToTcpWhereLocalSocketsAreRefused) {
  // Worker 3 sees another name than the one its hub listens on, as in a network namespace of its own.
  const auto hide_local_name = [](int rank, std::vector<std::string>& blobs) {
    if (rank == 3 && blobs[2].starts_with("cohort-")) blobs[2].front() = 'x';
  };
  Cluster cluster({2, 2}, hide_local_name);
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    EXPECT_TRUE(watch->unwatched().empty());
    if (rank == 3) return watch.reset();
    const Error* fault = watch->record()->wait_for_fault(5s);
    ASSERT_NE(fault, nullptr);
    EXPECT_EQ(fault->origin().member, 3);
  });
}

TEST(PeerWatch, OpensTcpForTheFallbackEvenOnOneNode) {
  const auto hide_local_name = [](int rank, std::vector<std::string>& blobs) {
    if (rank == 1 && blobs[0].starts_with("cohort-")) blobs[0].front() = 'x';
  };
  Cluster cluster({3}, hide_local_name);
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    EXPECT_TRUE(watch->unwatched().empty());
    if (rank == 0) return watch.reset();
    EXPECT_NE(watch->record()->wait_for_fault(5s), nullptr);
  });
}

TEST(PeerWatch, DoesWithoutAWorkerThatCannotBeReached) {
  // A wrong secret is what a stranger would have: the chief must not let it in.
  const auto spoil_secret = [](int rank, std::vector<std::string>& blobs) {
    watch::Address address = watch::parse_address(blobs[0]);
    if (rank != 2 || address.network.empty()) return;
    address.secret = "a guess";
    blobs[0] = watch::to_blob(address);
  };
  Cluster cluster({2, 2}, spoil_secret);
  cluster.run([&](int rank, std::optional<PeerWatch>& watch) {
    EXPECT_EQ(watch->unwatched(), std::vector<int>{2});
    if (rank == 3) return watch.reset();
    if (rank == 2) {
      ASSERT_NE(watch->record()->wait_for_fault(5s), nullptr) << "its own node is still watched";
      return;
    }
    EXPECT_TRUE(watch->leave()) << "the other half is not waited for";
    EXPECT_EQ(watch->fault(), nullptr);
  });
}

}  // namespace
}  // namespace cohort
