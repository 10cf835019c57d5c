// What becomes of a Session's workers when one of them dies: the others hear of it at once, and live on.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>
#include <cohort/rendezvous/session.h>

#include "rendezvous/links.h"
#include "thrown.h"
#include "worker_processes.h"

namespace cohort::rendezvous {
namespace {

using namespace std::chrono_literals;
using cohort::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Case {
  int victim = 0;
  int workers_per_node = 0;  ///< 0: all are on one
};

class AfterTheDeathOf : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Victims, AfterTheDeathOf,
                         ::testing::Values(Case{0, 0}, Case{1, 0}, Case{3, 0}, Case{0, 1}, Case{3, 1},
                                           Case{0, 2}, Case{2, 2}, Case{3, 2}));

/// Runs four workers on such nodes.
void run_four(const Case& of, const std::function<void(Worker&)>& body) {
  run_workers(4, [&](Worker& self) {
    ::setenv("COHORT_WORKERS_PER_NODE", std::to_string(of.workers_per_node).c_str(), 1);
    body(self);
  });
}

/// Waits for it, since another worker may have told the call before the session knows.
const Error* fault_of(const Session& session) {
  const Deadline deadline = Deadline::after(10s);
  while (session.fault() == nullptr && !deadline.expired()) std::this_thread::yield();
  return session.fault();
}

TEST_P(AfterTheDeathOf, OneInAnAllReduceTheOthersNameItAndLiveOn) {
  run_four(GetParam(), [victim = GetParam().victim](Worker& self) {
    ::setenv("COHORT_FAULT_GRACE_SECONDS", "0.1", 1);
    std::optional<Session> session(std::in_place, self.options());
    const auto communicator = session->make_communicator({});
    communicator->barrier();
    const WorkerInfo lost = session->workers()[static_cast<std::size_t>(victim)];
    if (self.rank == victim) ::raise(SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    const Tensor tensor = Tensor::full({100'000}, DType::kFloat32, 1);
    const std::string text =
        message_of(ErrorCode::kUnavailable, [&] { communicator->all_reduce(tensor, ReduceOp::kSum); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
    EXPECT_THAT(text, HasSubstr(describe(lost) + " is gone"));
    const Error* const fault = fault_of(*session);
    ASSERT_NE(fault, nullptr);
    EXPECT_EQ(fault->origin().member, victim);
    EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { static_cast<void>(session->exchange("")); }),
                HasSubstr(describe(lost)));
    // What would end a process of mpi::Session.
    const std::string never = "never";
    EXPECT_FALSE(self.store->wait({&never, 1}, 500ms));
    const auto end = std::chrono::steady_clock::now();
    session.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - end, 2s) << "nobody is waited for";

    // Those that are left begin anew.
    SessionOptions anew = self.options("after/");
    anew.rank = self.rank - (self.rank > victim ? 1 : 0);
    anew.size = self.size - 1;
    Session next(anew);
    const Tensor ones = Tensor::full({3}, DType::kFloat32, 1);
    next.make_communicator({})->all_reduce(ones, ReduceOp::kSum);
    EXPECT_EQ(ones.row(0).item<float>(), 3);
  });
}

TEST_P(AfterTheDeathOf, OneInAnExchangeTheOthersNameIt) {
  run_four(GetParam(), [victim = GetParam().victim](Worker& self) {
    Session session(self.options());
    static_cast<void>(session.exchange("all have started"));
    const WorkerInfo lost = session.workers()[static_cast<std::size_t>(victim)];
    if (self.rank == victim) ::raise(SIGKILL);
    const std::string text =
        message_of(ErrorCode::kUnavailable, [&] { static_cast<void>(session.exchange("")); });
    EXPECT_THAT(text, HasSubstr(describe(lost)));
  });
}

TEST_P(AfterTheDeathOf, OneWhileOthersMakeAGroupTheseNameIt) {
  run_four(GetParam(), [victim = GetParam().victim](Worker& self) {
    Session session(self.options());
    static_cast<void>(session.exchange("all have started"));
    const WorkerInfo lost = session.workers()[static_cast<std::size_t>(victim)];
    if (self.rank == victim) ::raise(SIGKILL);
    const std::string text = message_of(ErrorCode::kUnavailable, [&] {
      static_cast<void>(session.make_group(std::vector<int>{1, 3, 0, 2}, "all"));
    });
    EXPECT_THAT(text, HasSubstr(describe(lost)));
  });
}

TEST(AfterTheDeathOfOne, DuringTheStartTheOthersNameIt) {
  run_workers(3, [](Worker& self) {
    SessionOptions options = self.options();
    if (self.rank == 2) return;  // never comes
    if (self.rank == 1) {
      // Dies as soon as it has come.
      class Suicidal final : public Store {
       public:
        explicit Suicidal(std::shared_ptr<Store> store) : store_(std::move(store)) {}
        void set(const std::string& key, std::string_view value) override { store_->set(key, value); }
        std::optional<std::string> get(const std::string& key) override {
          ::alarm(1);
          return store_->get(key);
        }
        bool wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override {
          return store_->wait(keys, timeout);
        }

       private:
        std::shared_ptr<Store> store_;
      };
      struct sigaction die {};
      die.sa_handler = [](int) { ::raise(SIGKILL); };
      ::sigaction(SIGALRM, &die, nullptr);
      options.store = std::make_shared<Suicidal>(self.store);
      Session session(options);
    }
    const std::string text = message_of(ErrorCode::kUnavailable, [&] { Session session(options); });
    EXPECT_THAT(text, AllOf(HasSubstr("worker 1 (host "), HasSubstr("has ended")));
  });
}

TEST(AChildOfAWorker, MayEndWithoutAnyEffect) {
  run_workers(2, [](Worker& self) {
    auto session = std::make_unique<Session>(self.options());
    auto group = session->split(0, 0);
    const pid_t child = ::fork();
    if (child == 0) {
      group.reset();
      session.reset();
      ::_exit(0);
    }
    int status = 1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(session->exchange("").size(), 2U);
    EXPECT_EQ(group->exchange("").size(), 2U);
    EXPECT_EQ(session->fault(), nullptr);
  });
}

TEST(AChildOfAWorker, ThatLivesOnDoesNotHideItsDeath) {
  run_workers(3, [](Worker& self) {
    Session session(self.options());
    const auto communicator = session.make_communicator({});
    if (self.rank == 1) {
      if (::fork() == 0) {
        ::alarm(3);  // with copies of all descriptors
        ::pause();
      }
      ::raise(SIGKILL);
    }
    const std::string text = message_of(ErrorCode::kUnavailable, [&] { communicator->barrier(); });
    EXPECT_THAT(text, HasSubstr("worker 1 (host "));
  });
}

/// A worker 1 that connects to `first`, which is polled meanwhile, and closes the connection once `stays` is
/// over.
std::jthread connects_to(Links& first, const std::string& secret, std::atomic<bool>& stays) {
  return std::jthread([address = first.address(), &secret, &stays] {
    Links links(1, secret);
    links.connect(address, Deadline::after(60s));
    stays.wait(true);
  });
}

/// Whoever loses patience with a handshake closes a connection that the other end may have accepted already.
TEST(Links, OfAWorkerThatConnectsAgainAreNotLost) {
  const std::string secret(32, 's');
  Links first(0, secret);
  std::atomic<bool> stays{false};
  {
    const std::jthread impatient = connects_to(first, secret, stays);
    first.wait("", Deadline::after(60s));  // for the loss
  }
  ASSERT_NE(first.name(1), "worker 1") << "it had connected";
  EXPECT_EQ(first.loss(1), std::nullopt);
  stays = true;
  {
    const std::jthread again = connects_to(first, secret, stays);
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < 3s) {
      first.wait("", Deadline::after(10ms));
      EXPECT_EQ(first.loss(1), std::nullopt);
    }
    stays = false;
    stays.notify_all();
  }
  const Deadline patience = Deadline::after(60s);
  while (!first.loss(1) && !patience.expired()) first.wait("", Deadline::after(10ms));
  EXPECT_NE(first.loss(1), std::nullopt);
}

}  // namespace
}  // namespace cohort::rendezvous
