// The files of a SummaryWriter: whole up to the last flush, whatever happens.
#include <sys/wait.h>
#include <unistd.h>
#include <gmock/gmock.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <cohort/summary/summary_writer.h>

#include "event_file.h"
#include "summary/log_file.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// With the times left out.
std::vector<Json> json_lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream all(text_of(path));
  for (std::string line; std::getline(all, line);) {
    lines.push_back(Json::parse(line));
    lines.back().erase("wall_time");
  }
  return lines;
}

template <class Sink>
SummaryWriter writer_of(Sink make, const std::string& path) {
  return SummaryWriter([&] {
    std::vector<std::unique_ptr<SummarySink>> sinks;
    sinks.push_back(make(path));
    return sinks;
  });
}

TEST(SummaryFiles, JsonLines) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a/log.jsonl");
  SummaryWriter writer = writer_of(json_lines_sink, path);
  writer.scalar("loss", 0.1, 3);
  writer.scalar("bad \"tag\"", NAN, -1);
  writer.tensor("t", Tensor::from(std::vector{1, 2, 3, 4}, {2, 2}), 4);
  writer.text("text", "line\nand \xff", 5);
  writer.close();
  EXPECT_THAT(json_lines_of(path),
              ::testing::ElementsAre(Json{{"step", 3}, {"tag", "loss"}, {"value", 0.1}},
                                     Json{{"step", -1}, {"tag", "bad \"tag\""}, {"value", "NaN"}},
                                     Json{{"step", 4}, {"tag", "t"}, {"value", {{1.0, 2.0}, {3.0, 4.0}}}},
                                     Json{{"step", 5}, {"tag", "text"}, {"value", "line\nand \u00ff"}}));
}

TEST(SummaryFiles, CsvQuotesWhatNeedsIt) {
  const TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  SummaryWriter writer = writer_of(csv_sink, path);
  writer.scalar("a,\"b\"", 0.5, 3);
  writer.close();
  const std::string text = text_of(path);
  EXPECT_TRUE(text.starts_with("step,wall_time,tag,value\n3,")) << text;
  EXPECT_THAT(text, ::testing::EndsWith(",\"a,\"\"b\"\"\",0.5\n"));
}

TEST(SummaryFiles, ARestartLeavesOutLaterSteps) {
  const TemporaryFolder folder;
  for (const auto& [make, name] :
       {std::pair(&json_lines_sink, "log.jsonl"), std::pair(&csv_sink, "log.csv")}) {
    const std::string path = folder.path(name);
    {
      SummaryWriter first = writer_of(make, path);
      for (int step = 0; step < 5; ++step) first.scalar("loss", step, step);
    }
    std::ofstream(path, std::ios::app) << "{\"step\":5,\"wall_ti";  // killed within a line
    SummaryWriter second = writer_of(make, path);
    second.restart(3);
    second.scalar("again", 30, 3);
    second.close();
    const std::string text = text_of(path);
    EXPECT_THAT(text, HasSubstr("again"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("wall_ti\n")));
    const int header = make == &csv_sink ? 1 : 0;
    EXPECT_EQ(std::ranges::count(text, '\n'), 4 + header) << text;
  }
}

TEST(SummaryFiles, AProcessThatIsKilledLeavesWhatItFlushed) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    SummaryWriter writer(folder.path("logs"));
    for (int step = 0; step < 10; ++step) writer.scalar("loss", step, step);
    writer.flush();
    writer.scalar("loss", 10, 10);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_GE(scalars_of(folder.path("logs")).size(), 10U);
}

TEST(SummaryFiles, ACutFileIsReadableUpToThere) {
  const TemporaryFolder folder;
  {
    SummaryWriter writer(folder.path("logs"));
    for (int step = 0; step < 3; ++step) writer.scalar("loss", step, step);
  }
  const std::string file = files_of(folder.path("logs")).at(0);
  for (auto bytes = std::filesystem::file_size(file); bytes-- > 1;) {
    std::filesystem::resize_file(file, bytes);
    ASSERT_NO_THROW(static_cast<void>(events_of(file))) << bytes;
  }
}

TEST(SummaryFiles, AFullDiskLeavesWholeRecords) {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path("logs"));
  writer.scalar("loss", 1, 1);
  writer.flush();
  const std::string file = files_of(folder.path("logs")).at(0);
  const auto whole = std::filesystem::file_size(file);
  {
    const LargestFile limit(whole + 10);
    writer.scalar("loss", 2, 2);
    try {
      writer.flush();
      FAIL() << "written";
    } catch (const Unavailable& error) {
      EXPECT_THAT(error.what(), HasSubstr(file));
    }
  }
  EXPECT_EQ(std::filesystem::file_size(file), whole);
}

TEST(SummaryFiles, TwoWritersHaveFilesOfTheirOwn) {
  const TemporaryFolder folder;
  SummaryWriter first(folder.path("logs"));
  SummaryWriter second(folder.path("logs"));
  EXPECT_EQ(files_of(folder.path("logs")).size(), 2U);
}

TEST(SummaryFiles, ATableIsContinuedBelowItsHeader) {
  const TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  for (int run = 0; run < 3; ++run) writer_of(csv_sink, path).scalar("loss", run, run);
  const std::string text = text_of(path);
  EXPECT_EQ(std::ranges::count(text, '\n'), 4) << text;
  EXPECT_EQ(text.rfind("step"), 0U) << text;
}

TEST(SummaryFiles, RefusesATableOfOtherColumns) {
  const TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  std::ofstream(path) << "epoch,loss\n0,1\n";
  try {
    writer_of(csv_sink, path);
    FAIL() << "added";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
  EXPECT_EQ(text_of(path), "epoch,loss\n0,1\n");
}

TEST(SummaryFiles, NothingIsOpenAfterClose) {
  const TemporaryFolder folder;
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  SummaryWriter events(folder.path("logs"));
  SummaryWriter lines = writer_of(json_lines_sink, folder.path("log.jsonl"));
  EXPECT_GT(descriptors(), before);
  events.close();
  lines.close();
  EXPECT_EQ(descriptors(), before);
}

TEST(SummaryFiles, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(writer_of(csv_sink, folder.path("")), Unavailable);
  EXPECT_THROW(writer_of(csv_sink, "/dev/null"), Unavailable);
}

TEST(SummaryFiles, HyperparametersHaveASession) {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path("logs"));
  writer.hyperparameters({{"rate", 0.5}, {"layers", 3}, {"nesterov", true}, {"name", "sgd"}});
  writer.close();
  const Json events = events_of(files_of(folder.path("logs")).at(0));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1]["values"][0]["tag"], "_hparams_/session_start_info");
  EXPECT_EQ(events[2]["values"][0]["tag"], "_hparams_/session_end_info");
  EXPECT_EQ(events[1]["values"][0]["plugin"], "hparams");
}

}  // namespace
}  // namespace cohort::testing
