// A timeline is what viewers of Chrome's trace events read: an array of events with the fields that the
// format demands, whose spans nest within a track.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "collective/record/call_record.h"
#include "observation/timeline.h"

namespace cohort {
namespace {

using nlohmann::json;

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() { std::filesystem::create_directory(folder); }
  ~TimelineTest() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder / name; }
  [[nodiscard]] static json read(const std::string& path) { return json::parse(std::ifstream(path)); }

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("cohort-timeline-{}", ::getpid());
};

/// Of worker 1: it comes at 1000 us, the last of its node at 1200, those of all nodes at 1300; done at 1500.
ObservedCall all_reduce(std::uint64_t number) {
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.dtype = DType::kFloat32;
  call.elements = 1000;
  return {.worker = 1,
          .number = number,
          .call = pack(call, number),
          .arrival = 1'000'000,
          .node_here = 1'200'000,
          .all_here = 1'300'000,
          .end = 1'500'000,
          .last = 2,
          .away = {.all = 400'000, .input = 100'000}};
}

const json* find(const json& events, const std::string& name) {
  for (const json& event : events)
    if (event["name"] == name) return &event;
  return nullptr;
}

TEST_F(TimelineTest, HasWhatTheFormatDemands) {
  Timeline timeline(path("a"));
  timeline.add_worker({.rank = 1, .host = "a \"host\""});
  timeline.add("1", all_reduce(7));
  timeline.finish();
  const json events = read(path("a"));
  ASSERT_TRUE(events.is_array());
  for (const json& event : events) {
    EXPECT_TRUE(event["name"].is_string());
    EXPECT_TRUE(event["pid"].is_number_integer());
    EXPECT_TRUE(event["tid"].is_number_integer());
    EXPECT_TRUE(event["args"].is_object());
    ASSERT_TRUE(event["ph"] == "X" || event["ph"] == "M");
    if (event["ph"] == "M") {
      EXPECT_TRUE(event["args"][event["name"] == "process_labels" ? "labels" : "name"].is_string());
    } else {
      EXPECT_TRUE(event["ts"].is_number() && event["dur"].is_number() && event["dur"] >= 0);
    }
  }
  EXPECT_EQ(events[0]["args"]["name"], "worker 1 (host a \"host\")");
  const std::vector<std::pair<std::string, std::pair<double, double>>> spans{
      {"all_reduce", {1000, 500}},
      {"wait for worker 2", {1000, 200}},
      {"wait for other nodes", {1200, 100}},
      {"move data", {1300, 200}},
      {"input", {600, 100}},
      {"compute", {700, 300}}};
  for (const auto& [name, times] : spans) {
    const json* const span = find(events, name);
    ASSERT_NE(span, nullptr) << name;
    EXPECT_EQ((*span)["ts"], times.first) << name;
    EXPECT_EQ((*span)["dur"], times.second) << name;
  }
  EXPECT_EQ((*find(events, "all_reduce"))["args"]["call"], "all_reduce #7 (float32[1000], sum)");
}

TEST_F(TimelineTest, ShowsCallsThatWereStartedTogetherOneAfterTheOther) {
  Timeline timeline(path("a"));
  timeline.add("1", all_reduce(0));
  ObservedCall second = all_reduce(1);
  second.arrival = 1'100'000;
  second.end = 1'900'000;
  timeline.add("1", second);
  timeline.finish();
  std::map<std::pair<int, int>, double> ends;
  double queued = 0;
  for (const json& event : read(path("a"))) {
    if (event["name"] != "all_reduce") continue;
    double& end = ends[{event["pid"], event["tid"]}];
    EXPECT_GE(event["ts"], end);
    end = event["ts"].get<double>() + event["dur"].get<double>();
    queued = event["args"]["queued_us"];
  }
  EXPECT_EQ(queued, 400);
}

TEST_F(TimelineTest, ShowsSpansOfTheProgramOnATrackForEachThread) {
  const std::vector<WorkerSpan> spans{{1, {"save \"a\"", 0, 1'000'000, 3'000'000}},
                                      {1, {"caf\xc3", 2, 1'500'000, 2'000'000}}};
  Timeline timeline(path("a"));
  for (const std::string& note : to_notes(spans)) {
    const auto told = spans_of_note(note);
    ASSERT_TRUE(told.has_value());
    for (const WorkerSpan& span : *told) timeline.add(span);
  }
  timeline.finish();
  const json events = read(path("a"));
  const json* const first = find(events, "save \"a\"");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ((*first)["cat"], "span");
  EXPECT_EQ((*first)["pid"], 1);
  EXPECT_EQ((*first)["ts"], 1000);
  EXPECT_EQ((*first)["dur"], 2000);
  std::map<std::string, int> tracks;
  for (const json& event : events)
    if (event["ph"] == "M") tracks[event["args"]["name"]] = event["tid"];
  EXPECT_EQ(tracks.at("spans"), (*first)["tid"]);
  EXPECT_NE(tracks.at("spans, thread 2"), (*first)["tid"]);
}

TEST(SpanNotes, HoldAsManySpansAsNeeded) {
  std::vector<WorkerSpan> spans;
  spans.reserve(200);
  for (int i = 0; i < 200; ++i) spans.push_back({3, {std::to_string(i), i, i, 2 * i}});
  std::vector<WorkerSpan> told;
  for (const std::string& note : to_notes(spans)) {
    EXPECT_LE(note.size(), 4096u);
    const auto some = spans_of_note(note).value();
    told.insert(told.end(), some.begin(), some.end());
  }
  ASSERT_EQ(told.size(), spans.size());
  for (int i = 0; i < 200; ++i) {
    const WorkerSpan& span = told[static_cast<std::size_t>(i)];
    EXPECT_EQ(span.worker, 3);
    EXPECT_EQ(span.span.name, std::to_string(i));
    EXPECT_EQ(span.span.thread, i);
    EXPECT_EQ(span.span.end, 2 * i);
  }
  EXPECT_TRUE(to_notes({}).empty());
  EXPECT_FALSE(spans_of_note("cohort: slow\n").has_value());
  EXPECT_TRUE(spans_of_note("cohort: span\ncut").value().empty());
}

TEST_F(TimelineTest, IsCompleteWithoutAnyCall) {
  Timeline(path("a")).finish();
  EXPECT_TRUE(read(path("a")).empty());
}

TEST_F(TimelineTest, SaysHowFarItsClocksMayBeApart) {
  const auto label_with = [&](const std::vector<std::int64_t>& errors) -> json {
    Timeline timeline(path("a"));
    timeline.add_worker({.rank = 1, .host = "a"});
    for (const std::int64_t error : errors) timeline.note_clock_error(error);
    timeline.finish();
    const json events = read(path("a"));
    const json* const label = find(events, "process_labels");
    return label == nullptr ? json() : (*label)["args"];
  };
  EXPECT_TRUE(label_with({0, 0}).is_null());
  EXPECT_EQ(label_with({7'000, 40'250, 9'000})["clock_error_us"], 40.25);
  EXPECT_EQ(label_with({7'000, 40'250})["labels"], "clock right to 40.250 us");
  EXPECT_TRUE(label_with({7'000, -1, 9'000})["clock_error_us"].is_null());
}

TEST_F(TimelineTest, OfSeveralNodesIsMerged) {
  for (const char* part : {"a", "b"}) {
    Timeline timeline(path(part));
    timeline.add("1", all_reduce(0));
    timeline.finish();
  }
  const std::vector<std::string> parts{path("a"), path("b")};
  merge_timelines(parts, path("both"));
  const json events = read(path("both"));
  EXPECT_EQ(events.size(), 2 * read(path("a")).size());
}

TEST_F(TimelineTest, RefusesWhatIsNone) {
  EXPECT_THROW(Timeline(path("missing/a")), Unavailable);
  std::ofstream(path("a")) << "[\nnonsense,\n";
  const std::vector<std::string> parts{path("a")};
  EXPECT_THROW(merge_timelines(parts, path("b")), InvalidArgument);
}

}  // namespace
}  // namespace cohort
