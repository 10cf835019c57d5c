// SummaryWriter: what it records, in which replica, and what it says when it cannot.
#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/summary/summary_writer.h>

#include "../../benchmarks/dispatch/allocations.h"
#include "../strategy/strategies.h"
#include "event_file.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

/// Keeps what it is given, or fails as asked.
class MemorySink final : public SummarySink {
 public:
  struct Seen {
    std::vector<std::string> written = {};
    int flushes = 0;
    bool fails = false;
    bool fails_to_close = false;
    int closes = 0;
  };
  explicit MemorySink(Seen& seen) : seen_(seen) {}

  void write(const SummaryValue& value) override { waiting_.push_back(value.tag); }
  void restart(std::int64_t step, double /*time*/) override {
    waiting_.push_back("restart " + std::to_string(step));
  }
  void flush() override {
    ++seen_.flushes;
    if (seen_.fails) throw Unavailable("no space in memory");
    seen_.written.insert(seen_.written.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  void close() override {
    ++seen_.closes;
    if (seen_.fails_to_close) throw Unavailable("the quota is used up");
  }

 private:
  Seen& seen_;
  std::vector<std::string> waiting_;
};

template <class... Seen>
SummaryWriter::MakeSinks sinks(Seen&... seen) {
  return [&] {
    std::vector<std::unique_ptr<SummarySink>> made;
    (made.push_back(std::make_unique<MemorySink>(seen)), ...);
    return made;
  };
}

TEST(SummaryWriter, RecordsNothingWithoutAFolder) {
  SummaryWriter writer;
  EXPECT_FALSE(writer.scalar("loss", 1, 0));
  writer.flush();
  writer.close();
}

TEST(SummaryWriter, WritesWhatEveryThreadRecords) {
  MemorySink::Seen seen;
  SummaryWriter writer(sinks(seen), {.max_queue = 3});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int step = 0; step < 500; ++step) EXPECT_TRUE(writer.scalar("loss", step, step));
    });
  for (std::thread& thread : threads) thread.join();
  writer.close();
  EXPECT_EQ(seen.written.size(), 2000U);
}

TEST(SummaryWriter, EachSinkHasItAll) {
  MemorySink::Seen first;
  MemorySink::Seen second{.fails = true};
  MemorySink::Seen third;
  SummaryWriter writer(sinks(first, second, third));
  writer.scalar("loss", 1, 0);
  EXPECT_THROW(writer.flush(), Unavailable);
  EXPECT_THAT(first.written, ::testing::ElementsAre("loss"));
  EXPECT_THAT(third.written, ::testing::ElementsAre("loss"));
}

TEST(SummaryWriter, AFailureIsAnErrorOfTheNextCall) {
  MemorySink::Seen seen{.fails = true};
  SummaryWriter writer(sinks(seen));
  writer.scalar("loss", 1, 0);
  EXPECT_THROW(writer.flush(), Unavailable);
  try {
    writer.scalar("loss", 1, 1);
    FAIL() << "recorded";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("no space in memory"));
  }
  writer.close();  // told already
}

TEST(SummaryWriter, AFailureOfTheLastValuesIsAnErrorOfClose) {
  MemorySink::Seen seen{.fails = true};
  SummaryWriter writer(sinks(seen));
  writer.scalar("loss", 1, 0);
  EXPECT_THROW(writer.close(), Unavailable);
}

TEST(SummaryWriter, AFailureOfClosingAFileIsAnErrorOfClose) {
  MemorySink::Seen first{.fails_to_close = true};
  MemorySink::Seen second;
  SummaryWriter writer(sinks(first, second));
  writer.scalar("loss", 1, 0);
  EXPECT_THROW(writer.close(), Unavailable);
  EXPECT_EQ(first.closes, 1);
  EXPECT_EQ(second.closes, 1);
}

TEST(SummaryWriter, ARestartInTheMidstOfAFullQueueStopsNothing) {
  MemorySink::Seen seen;
  SummaryWriter writer(sinks(seen), {.max_queue = 2, .flush_seconds = 1e6});
  writer.scalar("before", 1, 0);
  writer.restart(1);  // the queue is due with it
  for (int step = 1; step < 50; ++step) writer.scalar("after", 1, step);
  writer.close();
  EXPECT_EQ(seen.written.size(), 51U);
}

TEST(SummaryWriter, IsOfNoUseAfterClose) {
  MemorySink::Seen seen;
  SummaryWriter writer(sinks(seen));
  writer.close();
  writer.close();
  EXPECT_THROW(writer.scalar("loss", 1, 0), WrongContext);
  EXPECT_THROW(writer.flush(), WrongContext);
}

TEST(SummaryWriter, WaitsUntilItsQueueIsFull) {
  MemorySink::Seen seen;
  SummaryWriter writer(sinks(seen), {.max_queue = 100, .flush_seconds = 1e6});
  for (int step = 0; step < 99; ++step) writer.scalar("loss", step, step);
  EXPECT_EQ(seen.flushes, 0);
  writer.flush();
  EXPECT_EQ(seen.flushes, 1);
  EXPECT_EQ(seen.written.size(), 99U);
}

TEST(SummaryWriter, StepsAndConditions) {
  MemorySink::Seen seen;
  SummaryWriter writer(sinks(seen));
  EXPECT_THROW(writer.scalar("none", 1), InvalidArgument);
  writer.set_step(42);
  bool is_wanted = false;
  writer.record_if([&] { return is_wanted; });
  EXPECT_FALSE(writer.scalar("no", 1));
  is_wanted = true;
  EXPECT_TRUE(writer.scalar("yes", 1));
  writer.restart(7);
  writer.close();
  EXPECT_THAT(seen.written, ::testing::ElementsAre("yes", "restart 7"));
}

TEST(SummaryWriter, RefusesWhatCannotBe) {
  MemorySink::Seen seen;
  EXPECT_THROW(SummaryWriter{sinks()}, InvalidArgument);
  EXPECT_THROW(SummaryWriter(sinks(seen), {.max_queue = 0}), InvalidArgument);
  EXPECT_THROW(SummaryWriter(sinks(seen), {.flush_seconds = 0}), InvalidArgument);
  EXPECT_THROW(SummaryWriter(sinks(seen), {.flush_seconds = NAN}), InvalidArgument);
  EXPECT_NO_THROW(SummaryWriter(sinks(seen), {.flush_seconds = HUGE_VAL}));
  EXPECT_THROW(SummaryWriter("/proc/nope"), Unavailable);
  SummaryWriter writer(sinks(seen));
  EXPECT_THROW(writer.scalar("loss", Tensor::from({1.0F}), 0), InvalidArgument);
}

TEST(SummaryWriter, AScalarAsksForNoMemory) {
  MemorySink::Seen seen;
  SummaryWriter writer(sinks(seen), {.max_queue = 1000, .flush_seconds = 1e6});
  const std::string_view tag = "a tag that is too long for a small string";
  const std::size_t before = bench::allocations();
  for (int step = 0; step < 900; ++step) writer.scalar(tag, step, step);
  EXPECT_EQ(bench::allocations(), before);
}

class SummaryReplicas : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(SummaryReplicas);

TEST_P(SummaryReplicas, TheFirstOneWrites) {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path("logs"));
  const auto recorded = strategy_.run([&](ReplicaContext& replica) {
    return writer.scalar("id", replica.replica_id_in_sync_group(), 1) ? 1 : 0;
  });
  writer.close();
  const std::vector<int> ones(recorded.components().begin(), recorded.components().end());
  EXPECT_EQ(std::ranges::count(ones, 1), 1);
  EXPECT_EQ(ones.front(), 1);
  EXPECT_EQ(scalars_of(folder.path("logs")), Json::array({{"id", 1, 0.0}}));
}

}  // namespace
}  // namespace cohort::testing
