// The main of tests that run on every rank. Rank 0 prints as GoogleTest does; the others
// only what fails, marked with their rank. Each names the test that it hangs in before
// `bounded` ends them all, and a collective that others never reach ends after a short
// deadline.
#include "mpi_main.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cohort::testing {
namespace {

constexpr const char* kCollectiveTimeoutSeconds = "15";

std::optional<mpi::Session> the_session;

/// Nine tenths of what `bounded` allows.
std::chrono::milliseconds long_time() {
  const char* seconds = ::getenv("TEST_TIME_LIMIT_SECONDS");
  return std::chrono::milliseconds((seconds == nullptr ? 60 : std::atoi(seconds)) * 900);
}

void print(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// Names the test that still runs after a long time: stacks alone do not tell it.
class Watchdog {
 public:
  explicit Watchdog(int rank) : rank_(rank), thread_([this] { run(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void enter(const std::string& test) {
    const std::lock_guard lock(mutex_);
    test_ = test;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, long_time(), [this] { return stopped_; })) return;
    print(fmt::format("[rank {}] still in {} after {} s\n", rank_, test_, long_time().count() / 1000));
  }

  int rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_ = "the start";
  bool stopped_ = false;
  std::thread thread_;
};

class Printer final : public ::testing::EmptyTestEventListener {
 public:
  Printer(int rank, std::unique_ptr<::testing::TestEventListener> usual, Watchdog& watchdog)
      : rank_(rank),
        usual_(rank == 0 ? std::move(usual) : std::make_unique<EmptyTestEventListener>()),
        watchdog_(watchdog) {}

  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    print(fmt::format("[rank {}] {}:{}: Failure\n{}\n", rank_,
                      result.file_name() ? result.file_name() : "unknown file", result.line_number(),
                      result.message()));
  }
  void OnTestStart(const ::testing::TestInfo& test) override {
    watchdog_.enter(fmt::format("{}.{}", test.test_suite_name(), test.name()));
    usual_->OnTestStart(test);
  }
  void OnTestEnd(const ::testing::TestInfo& test) override { usual_->OnTestEnd(test); }
  void OnTestIterationStart(const ::testing::UnitTest& all, int iteration) override {
    usual_->OnTestIterationStart(all, iteration);
  }
  void OnTestIterationEnd(const ::testing::UnitTest& all, int iteration) override {
    watchdog_.enter("the end");
    usual_->OnTestIterationEnd(all, iteration);
  }

 private:
  int rank_;
  std::unique_ptr<::testing::TestEventListener> usual_;
  Watchdog& watchdog_;
};

int run(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::setenv("COHORT_COLLECTIVE_TIMEOUT_SECONDS", kCollectiveTimeoutSeconds, 0);
  const char* rank_of_launcher = ::getenv("OMPI_COMM_WORLD_RANK");
  Watchdog watchdog(rank_of_launcher == nullptr ? 0 : std::atoi(rank_of_launcher));
  the_session.emplace(argc, argv);
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  std::unique_ptr<::testing::TestEventListener> usual(listeners.Release(listeners.default_result_printer()));
  listeners.Append(new Printer(the_session->rank(), std::move(usual), watchdog));
  const int status = RUN_ALL_TESTS();
  the_session.reset();
  return status;
}

}  // namespace

mpi::Session& session() { return *the_session; }

}  // namespace cohort::testing

int main(int argc, char** argv) { return cohort::testing::run(argc, argv); }
