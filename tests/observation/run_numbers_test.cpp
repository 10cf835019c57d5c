// What the numbers of a run add up: calls that nobody saw are counted, what readers tell again replaces what
// they told before, and files for Prometheus have the same series whatever the job does.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "collective/host_communicators.h"
#include "collective/record/call_record.h"
#include "observation/arrival_reader.h"
#include "observation/numbers_keeper.h"
#include "observation/run_numbers.h"
#include "temporary_folder.h"

namespace cohort {
namespace {

constexpr std::size_t kAllReduceIndex = static_cast<std::size_t>(CollectiveKind::kAllReduce);
constexpr std::size_t kBarrierIndex = static_cast<std::size_t>(CollectiveKind::kBarrier);

/// The records of a node's members, each a worker of its own unless `of_worker` says otherwise.
struct Members {
  explicit Members(int count, const std::vector<int>& of_worker = {}) {
    for (int rank = 0; rank < count; ++rank) {
      const int worker = of_worker.empty() ? rank : of_worker[static_cast<std::size_t>(rank)];
      records.push_back(std::make_unique<MemberRecord>());
      recorders.emplace_back(*records.back(), RecordOwner{.rank = rank, .worker = worker});
      group.records.push_back(records.back().get());
      group.workers.push_back(worker);
    }
  }

  std::vector<std::unique_ptr<MemberRecord>> records;
  std::vector<CallRecorder> recorders;
  ObservedGroup group = {.communicator = "1"};
};

ObservedCall observed(int worker, std::uint64_t number, CollectiveKind kind, std::int64_t milliseconds,
                      bool is_async = false) {
  CollectiveCall call;
  call.kind = kind;
  call.dtype = DType::kFloat32;
  call.elements = kind == CollectiveKind::kBarrier ? 0 : 100;
  ObservedCall seen{
      .worker = worker, .number = number, .call = pack(call, number), .end = milliseconds * 1'000'000};
  seen.call.what |= AsyncField::pack(is_async ? 1 : 0);
  return seen;
}

TEST(GroupTally, AddsUpWhatMembersDo) {
  for (const int count : {1, 2, 3, 4, 5}) {
    const Members members(count);
    GroupTally tally(members.group);
    for (std::uint64_t number = 0; number < 10; ++number) {
      for (int worker = 0; worker < count; ++worker)
        tally.add(observed(worker, number, CollectiveKind::kAllReduce, worker + 1));
    }
    tally.end_reading({}, 1e-9);
    tally.finish();
    const RunNumbers& numbers = tally.numbers();
    EXPECT_DOUBLE_EQ(numbers.calls, 10.0 * count);
    EXPECT_DOUBLE_EQ(numbers.seen, 10.0 * count);
    EXPECT_DOUBLE_EQ(numbers.kinds[kAllReduceIndex].calls, 10.0 * count);
    EXPECT_DOUBLE_EQ(numbers.kinds[kAllReduceIndex].bytes, 4000.0 * count);
    ASSERT_EQ(numbers.workers.size(), static_cast<std::size_t>(count));
    for (const auto& [worker, of_worker] : numbers.workers)
      EXPECT_NEAR(of_worker.communication, 0.01 * (worker + 1), 1e-12);
  }
}

TEST(GroupTally, CountsCallsThatNobodySaw) {
  Members members(2);
  GroupTally tally(members.group);
  const auto see = [&](std::uint64_t number, CollectiveKind kind) {
    for (int worker = 0; worker < 2; ++worker) tally.add(observed(worker, number, kind, 1));
  };
  see(0, CollectiveKind::kAllReduce);
  tally.end_reading({}, 1e-9);
  see(90, CollectiveKind::kAllReduce);  // and 89 before it
  see(91, CollectiveKind::kBarrier);
  see(100, CollectiveKind::kAllReduce);
  tally.end_reading({}, 1e-9);
  EXPECT_DOUBLE_EQ(tally.numbers().calls, 2 * 101);
  EXPECT_DOUBLE_EQ(tally.numbers().seen, 2 * 4);
  EXPECT_NEAR(tally.numbers().kinds[kAllReduceIndex].calls, 2 * (1 + 100 * 2.0 / 3), 1e-9);
  EXPECT_NEAR(tally.numbers().kinds[kBarrierIndex].calls, 2 * 100 / 3.0, 1e-9);
  EXPECT_NEAR(tally.numbers().kinds[kAllReduceIndex].seconds, 2 * 1e-3 * (1 + 100 * 2.0 / 3), 1e-9);
  EXPECT_NEAR(tally.numbers().workers.at(1).communication, 0.101, 1e-9);
  // One member has begun 9 more.
  members.records.front()->begun = 110;
  tally.finish();
  EXPECT_DOUBLE_EQ(tally.numbers().calls, 2 * 110);
  EXPECT_DOUBLE_EQ(tally.numbers().seen, 2 * 4);
}

TEST(GroupTally, HasOfAsynchronousCallsTheWaitsAlone) {
  const Members members(1);
  GroupTally tally(members.group);
  tally.add(observed(0, 0, CollectiveKind::kAllReduce, 5, true));
  tally.end_reading({}, 1e-9);
  EXPECT_DOUBLE_EQ(tally.numbers().workers.at(0).communication, 0);
  EXPECT_DOUBLE_EQ(tally.numbers().kinds[kAllReduceIndex].seconds, 0.005);
  members.records.front()->waited += 2'000'000;
  tally.end_reading({}, 1e-9);
  tally.end_reading({}, 1e-9);
  EXPECT_DOUBLE_EQ(tally.numbers().workers.at(0).communication, 0.002);
}

TEST(GroupTally, TakesTheMeanOfAWorkersMembers) {
  const Members members(3, {0, 0, 1});
  GroupTally tally(members.group);
  tally.add(observed(0, 0, CollectiveKind::kAllReduce, 2));
  tally.add(observed(0, 0, CollectiveKind::kAllReduce, 4));
  tally.add(observed(1, 0, CollectiveKind::kAllReduce, 4));
  tally.end_reading({}, 1e-9);
  EXPECT_DOUBLE_EQ(tally.numbers().workers.at(0).communication, 0.003);
  EXPECT_DOUBLE_EQ(tally.numbers().workers.at(1).communication, 0.004);
  EXPECT_DOUBLE_EQ(tally.numbers().calls, 3);
}

TEST(GroupTally, HasInputAsItWasAtTheLatestCall) {
  const Members members(1);
  GroupTally tally(members.group);
  for (std::uint64_t number = 0; number < 3; ++number) {
    ObservedCall call = observed(0, number, CollectiveKind::kBarrier, 1);
    call.input = static_cast<std::int64_t>(number) * 1'000'000'000;
    tally.add(call);
    tally.end_reading({}, 1e-9);
  }
  EXPECT_DOUBLE_EQ(tally.numbers().workers.at(0).input, 2);
}

/// All that comes before the end of the run counts, though a record keeps 256 calls.
TEST(GroupTally, IsRightAboutAFastLoopThatARecordReaderFollows) {
  for (const int count : {1, 2, 3, 4, 5}) {
    Members members(count);
    ArrivalReader reader(members.group);
    GroupTally tally(members.group);
    CollectiveCall call;
    call.kind = CollectiveKind::kAllReduce;
    call.dtype = DType::kFloat64;
    call.elements = 3;
    CollectiveCall message = call;
    message.kind = CollectiveKind::kSend;
    constexpr std::uint64_t kCalls = 1777;
    for (std::uint64_t number = 0; number < kCalls; ++number) {
      for (CallRecorder& recorder : members.recorders) recorder.end_at_once(recorder.begin(call, number));
      if (number % 2 == 0)
        for (CallRecorder& recorder : members.recorders) recorder.end(recorder.begin(message, 7));
      if (number % 700 != 0) continue;
      static_cast<void>(
          reader.read(StampScale::at_this_moment(), 0, [&](const ObservedCall& seen) { tally.add(seen); }));
      tally.end_reading(reader.take_messages(), 1e-9);
    }
    static_cast<void>(
        reader.read(StampScale::at_this_moment(), 0, [&](const ObservedCall& seen) { tally.add(seen); }));
    tally.end_reading(reader.take_messages(), 1e-9);
    tally.finish();
    const RunNumbers& numbers = tally.numbers();
    EXPECT_NEAR(numbers.kinds[kAllReduceIndex].calls, static_cast<double>(kCalls) * count, 1e-6);
    EXPECT_NEAR(numbers.kinds[kAllReduceIndex].bytes, 24.0 * kCalls * count, 1e-3);
    EXPECT_LT(numbers.seen, numbers.calls / 2);
    EXPECT_GT(numbers.seen, 0);
    const double sends = numbers.kinds[static_cast<std::size_t>(CollectiveKind::kSend)].calls;
    EXPECT_NEAR(sends, 0.5 * kCalls * count, 0.05 * kCalls * count);
  }
}

/// Keeps the records that a communicator shows.
struct Showing final : RecordObserver {
  void add(ObservedGroup shown) override { group = std::move(shown); }
  void remove(const void* /*id*/) noexcept override {}
  [[nodiscard]] std::vector<std::string> slow_workers() const override { return {}; }
  [[nodiscard]] std::uint64_t waited() const {
    std::uint64_t sum = 0;
    for (const MemberRecord* record : group.records) sum += record->waited;
    return sum;
  }
  ObservedGroup group;
};

/// Whether a thread that waits comes before the other member is a matter of luck; soon it does.
TEST(WaitedTime, IsThatOfWaitsForCallsThatHaveNotEnded) {
  const auto showing = std::make_shared<Showing>();
  NodeGroupOptions options;
  options.members = 2;
  options.observer = showing;
  const auto communicators = make_node_communicators(options);
  const Tensor tensor = Tensor::zeros({4}, DType::kFloat32);
  Work first = communicators[0]->all_reduce_async(tensor, ReduceOp::kSum);
  Work second = communicators[1]->all_reduce_async(tensor, ReduceOp::kSum);
  while (!first.done() || !second.done()) std::this_thread::yield();
  first.wait();
  second.wait();
  EXPECT_EQ(showing->waited(), 0u) << "they had ended";
  std::thread other([&] { communicators[1]->barrier(); });
  communicators[0]->barrier();
  other.join();
  EXPECT_EQ(showing->waited(), 0u) << "it was blocking";
  const auto& entries = showing->group.records.front()->entries;
  EXPECT_EQ(AsyncField::unpack(entries[0].what), 1u);
  EXPECT_EQ(AsyncField::unpack(entries[1].what), 0u);
  for (int attempt = 0; attempt < 10'000 && showing->waited() == 0; ++attempt) {
    std::thread waiting([&] { communicators[0]->barrier_async().wait(); });
    communicators[1]->barrier_async().wait();
    waiting.join();
  }
  EXPECT_GT(showing->waited(), 0u);
}

RunNumbers numbers_of(int first_worker, int workers) {
  RunNumbers numbers{.calls = 10, .seen = 5};
  numbers.kinds[kAllReduceIndex] = {.calls = 10, .bytes = 4000, .seconds = 0.5};
  for (int worker = first_worker; worker < first_worker + workers; ++worker)
    numbers.workers[worker] = {.elapsed = 10, .communication = 1.0 + worker, .input = 0.5};
  return numbers;
}

TEST(RunNumbers, ComeWholeThroughNotesAndReplaceWhatWasTold) {
  for (const int workers : {0, 1, 118, 119, 1000}) {
    std::map<int, RunNumbers> by_reader;
    for (const RunNumbers& told : {numbers_of(7, workers / 2), numbers_of(7, workers)}) {
      for (const std::string& note : to_notes(told, 7)) {
        EXPECT_LE(note.size(), 4096u);
        EXPECT_TRUE(hear(note, by_reader));
      }
    }
    for (const std::string& note : to_notes(numbers_of(2000, 1), 2000)) EXPECT_TRUE(hear(note, by_reader));
    ASSERT_EQ(by_reader.size(), 2u);
    RunNumbers sum;
    for (const auto& [reader, numbers] : by_reader) sum.add(numbers);
    EXPECT_DOUBLE_EQ(sum.calls, 20);
    EXPECT_DOUBLE_EQ(sum.kinds[kAllReduceIndex].bytes, 8000);
    ASSERT_EQ(sum.workers.size(), static_cast<std::size_t>(workers) + 1);
    for (int worker = 7; worker < 7 + workers; ++worker)
      EXPECT_DOUBLE_EQ(sum.workers.at(worker).communication, 1.0 + worker);
  }
}

TEST(RunNumbers, RefuseOtherNotes) {
  std::map<int, RunNumbers> by_reader;
  std::string note = to_notes(numbers_of(0, 2), 0).front();
  EXPECT_FALSE(hear({}, by_reader));
  EXPECT_FALSE(hear(note.substr(0, note.size() - 1), by_reader));
  note.front() = '\2';
  EXPECT_FALSE(hear(note, by_reader));
  EXPECT_TRUE(by_reader.empty());
}

TEST(RunNumbers, OfAWorkerInSeveralGroupsAddUp) {
  RunNumbers sum = numbers_of(0, 2);
  sum.add(numbers_of(1, 2));
  EXPECT_DOUBLE_EQ(sum.workers.at(1).communication, 4);
  EXPECT_DOUBLE_EQ(sum.workers.at(1).input, 0.5);
  EXPECT_DOUBLE_EQ(sum.workers.at(1).elapsed, 10);
  EXPECT_DOUBLE_EQ(sum.workers.at(1).compute(), 5.5);
}

std::vector<WorkerInfo> workers_on_nodes(int workers, int per_node) {
  std::vector<WorkerInfo> infos;
  infos.reserve(static_cast<std::size_t>(workers));
  for (int rank = 0; rank < workers; ++rank)
    infos.push_back({.rank = rank,
                     .node = rank / per_node,
                     .local_rank = rank % per_node,
                     .host = fmt::format("n{}", rank / per_node)});
  return infos;
}

TEST(RunNumbersTable, HasALineForEachOfFewWorkers) {
  const std::vector<WorkerInfo> workers = workers_on_nodes(2, 1);
  const std::vector<LoggedChoice> choices{{.kind = CollectiveKind::kAllReduce,
                                           .algorithm = "direct",
                                           .reason = ChoiceReason::kProbe,
                                           .calls = 4,
                                           .least_bytes = 16384,
                                           .most_bytes = 1 << 20}};
  EXPECT_EQ(table_of(numbers_of(0, 2), workers, 10, choices),
            "cohort numbers: 2 workers on 2 nodes, 10 s\n"
            "  worker                         compute   communication    input wait\n"
            "  0 (host n0)                     85.0 %          10.0 %         5.0 %\n"
            "  1 (host n1)                     75.0 %          20.0 %         5.0 %\n"
            "  kind, of a worker on average     calls           bytes time in calls     mean call\n"
            "  all_reduce                           5        1.95 KiB        0.25 s         50 ms\n"
            "  calls are exact; bytes and times are estimated from 50 % of the calls\n"
            "  algorithm, on the chief                        calls        bytes of a call   chosen by\n"
            "  all_reduce: direct                                 4   16.0 KiB to 1.00 MiB   probe\n");
}

TEST(RunNumbersTable, IsAsLongForAThousandWorkersAsForNine) {
  const auto lines = [](int count) {
    const std::string text = table_of(numbers_of(0, count), workers_on_nodes(count, 8), 10, {});
    return std::ranges::count(text, '\n');
  };
  EXPECT_EQ(lines(9), lines(1000));
  const std::string text = table_of(numbers_of(0, 9), workers_on_nodes(9, 8), 10, {});
  EXPECT_NE(text.find("least"), std::string::npos);
  EXPECT_NE(text.find("  most                            85.0 %          90.0 %         5.0 %\n"),
            std::string::npos)
      << text;
}

TEST(RunNumbersTable, CountsInWholeNumbersWhatSumsMissByARounding) {
  RunNumbers numbers = numbers_of(0, 3);
  numbers.kinds[static_cast<std::size_t>(CollectiveKind::kAllReduce)].calls = 14999.9999999;
  EXPECT_NE(table_of(numbers, workers_on_nodes(3, 3), 10, {}).find(" 5000 "), std::string::npos);
}

TEST(RunNumbersTable, SaysOfHowManyNothingIsKnown) {
  const std::string text = table_of(numbers_of(0, 1), workers_on_nodes(3, 3), 10, {});
  EXPECT_NE(text.find("of 2 of the workers nothing is known"), std::string::npos) << text;
  EXPECT_NE(table_of({}, workers_on_nodes(1, 1), 1, {}).find("no communicator"), std::string::npos);
}

/// Reads the text format as its specification says, and nothing else; by the series' name and labels.
std::map<std::string, double> parse_exposition(const std::string& text) {
  static const std::regex kHelp("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex kType("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)");
  static const std::regex kSample(
      "([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{([a-zA-Z_][a-zA-Z0-9_]*)=\"([^\"\\\\\n]*)\"\\})? "
      "(-?[0-9]+(\\.[0-9]+)?)");
  std::map<std::string, double> series;
  std::set<std::string> helped;
  std::map<std::string, std::string> types;
  std::set<std::string> ended;  // families of which no more may come
  std::string family;
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      EXPECT_TRUE(helped.insert(match[1]).second) << line;
      if (!family.empty()) ended.insert(family);
      family = match[1];
      EXPECT_FALSE(ended.contains(family)) << line;
    } else if (std::regex_match(line, match, kType)) {
      EXPECT_EQ(match[1], family) << line;
      EXPECT_TRUE(types.emplace(match[1], match[2]).second) << line;
      EXPECT_EQ(family.ends_with("_total"), match[2] == "counter") << line;
    } else if (std::regex_match(line, match, kSample)) {
      EXPECT_EQ(match[1], family) << line;
      EXPECT_TRUE(types.contains(family)) << line;
      const double value = std::strtod(match.str(5).c_str(), nullptr);
      EXPECT_TRUE(std::isfinite(value) && value >= 0) << line;
      EXPECT_TRUE(series.emplace(match.str(1) + match.str(2), value).second) << line;
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  EXPECT_EQ(helped.size(), types.size());
  return series;
}

TEST(PrometheusText, IsWhatTheFormatDemands) {
  const auto series = parse_exposition(prometheus_text(numbers_of(0, 3), workers_on_nodes(3, 2), 12.5));
  EXPECT_EQ(series.at("cohort_workers"), 3);
  EXPECT_EQ(series.at("cohort_run_seconds"), 12.5);
  EXPECT_EQ(series.at("cohort_collective_calls_total{kind=\"all_reduce\"}"), 10);
  EXPECT_EQ(series.at("cohort_collective_bytes_total{kind=\"all_reduce\"}"), 4000);
  EXPECT_EQ(series.at("cohort_collective_seconds_total{kind=\"all_reduce\"}"), 0.5);
  EXPECT_EQ(series.at("cohort_collective_calls_total{kind=\"send\"}"), 0);
  EXPECT_EQ(series.at("cohort_worker_communication_seconds_total{over_workers=\"min\"}"), 1);
  EXPECT_EQ(series.at("cohort_worker_communication_seconds_total{over_workers=\"mean\"}"), 2);
  EXPECT_EQ(series.at("cohort_worker_communication_seconds_total{over_workers=\"max\"}"), 3);
  EXPECT_EQ(series.at("cohort_worker_input_wait_seconds_total{over_workers=\"max\"}"), 0.5);
  EXPECT_EQ(series.at("cohort_calls_seen_ratio"), 0.5);
}

TEST(PrometheusText, HasTheSameSeriesWhateverTheJobDoes) {
  const auto names = [](const RunNumbers& numbers, int workers) {
    std::set<std::string> found;
    for (const auto& [name, value] :
         parse_exposition(prometheus_text(numbers, workers_on_nodes(workers, 2), 1)))
      found.insert(name);
    return found;
  };
  const std::set<std::string> of_none = names({}, 1);
  EXPECT_EQ(of_none.size(), 43u);
  EXPECT_EQ(of_none, names(numbers_of(0, 1000), 1000));
}

/// What the chief of two nodes hears from the other one, and writes.
TEST(NumbersKeeper, WritesWhatAllNodesHaveTold) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() / "job.prom";
  const std::vector<WorkerInfo> workers = workers_on_nodes(4, 2);
  std::vector<std::string> notes;
  NumbersKeeper chief({.prometheus = path}, workers, 0, {});
  NumbersKeeper other({.prometheus = path}, workers, 2,
                      [&](std::string note) { notes.push_back(std::move(note)); });
  const auto read = [](const std::string& file) {
    std::ifstream stream(file);
    return parse_exposition({std::istreambuf_iterator<char>(stream), {}});
  };
  const std::string calls = "cohort_collective_calls_total{kind=\"all_reduce\"}";
  chief.write_if_due();
  EXPECT_EQ(read(path).at(calls), 0);
  other.write_if_due();

  const Members here(2);
  const Members there(2, {2, 3});
  GroupTally* const of_chief = chief.begin(here.group);
  GroupTally* const of_other = other.begin(there.group);
  for (std::uint64_t number = 0; number < 5; ++number) {
    for (const int worker : {0, 1}) of_chief->add(observed(worker, number, CollectiveKind::kAllReduce, 1));
    for (const int worker : {2, 3}) of_other->add(observed(worker, number, CollectiveKind::kAllReduce, 2));
  }
  of_chief->end_reading({}, 1e-9);
  of_other->end_reading({}, 1e-9);
  other.tell_if_due();
  EXPECT_EQ(notes.size(), 1u);
  other.finish(of_other);
  other.stop();
  ASSERT_EQ(notes.size(), 2u);
  // The first of them is lost.
  EXPECT_TRUE(chief.hear(notes.back()));
  EXPECT_FALSE(chief.hear("another note"));
  chief.finish(of_chief);
  chief.stop();
  chief.conclude();
  const auto series = read(path);
  EXPECT_EQ(series.at(calls), 20);
  EXPECT_EQ(series.at("cohort_worker_communication_seconds_total{over_workers=\"max\"}"), 0.01);
  EXPECT_EQ(series.at("cohort_worker_communication_seconds_total{over_workers=\"min\"}"), 0.005);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "files are left";
}

TEST(ChoiceLog, HasAnEntryForEachAlgorithmAndTheSizesThatTookIt) {
  ChoiceLog log;
  EXPECT_FALSE(log.is_on());
  CollectiveCall call;
  call.dtype = DType::kFloat32;
  call.kind = CollectiveKind::kBroadcast;
  call.elements = 10;
  log.note(call, "direct", ChoiceReason::kModel);
  call.kind = CollectiveKind::kAllReduce;
  for (const std::size_t elements : {300u, 100u, 200u}) {
    call.elements = elements;
    log.note(call, "pieces", ChoiceReason::kProbe);
  }
  const std::vector<LoggedChoice> choices = log.choices();
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices.front().algorithm, "pieces");
  EXPECT_EQ(choices.front().calls, 3u);
  EXPECT_EQ(choices.front().least_bytes, 400u);
  EXPECT_EQ(choices.front().most_bytes, 1200u);
}

}  // namespace
}  // namespace cohort
