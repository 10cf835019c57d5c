#include "report.h"

#include <span>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"
#include "dispatch/dispatch.h"
#include "input/input.h"
#include "parameters/parameters.h"
#include "profile/profile.h"
#include "sweep/sweep.h"
#include "training/training.h"

namespace cohort::bench {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

Environment two_workers_on(std::vector<std::vector<int>> cores_of_workers) {
  Environment environment;
  environment.version = "1.2.3";
  environment.mpi_library = "Some MPI v4, and more";
  environment.command_line = "cohort-bench all-reduce";
  environment.nodes = {
      {.host = "n0", .cpu_model = "CPU", .kernel = "Linux", .cores_of_workers = std::move(cores_of_workers)}};
  environment.settings = {{.name = "COHORT_X", .value = "1", .from_environment = true}};
  return environment;
}

SweepRow slow_and_large() {
  SweepRow row;
  row.collective = "all_reduce";
  row.library = "cohort";
  row.algorithm = "shared-ring";
  row.choice = "probe";
  row.dtype = "bfloat16";
  row.op = "mean";
  row.members = 4096;
  row.bytes = std::size_t{1} << 30;
  row.elements = row.bytes / 2;
  row.in_place = true;
  row.inputs = "rewritten";
  row.median_us = 12345678;
  row.min_us = 0.1234;
  row.p99_us = 23456789;
  row.iteration_us = 12345679;
  row.algbw_gbs = 0.00012345;
  row.busbw_gbs = 1234.5;
  return row;
}

std::string report(Format format, const Environment& environment, const SweepRow& row) {
  std::ostringstream stream;
  const auto report = make_sweep_report(format, stream);
  report->begin(environment, "subject");
  report->add(row);
  report->note("a note");
  report->end();
  return stream.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Csv, HasTheAgreedColumnsAndEmptyCellsForWhatIsMissing) {
  const auto lines = lines_of(report(Format::kCsv, two_workers_on({{0}, {1}}), slow_and_large()));
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(
      lines[0],
      "collective,library,algorithm,dtype,op,members,bytes,elements,in_place,inputs,median_us,min_us,p99_us,"
      "iteration_us,algbw_gbs,busbw_gbs,ratio_to_peer,wrong,choice");
  EXPECT_EQ(
      lines[1],
      "all_reduce,cohort,shared-ring,bfloat16,mean,4096,1073741824,536870912,true,rewritten,12345678.0000,"
      "0.1234,23456789.0000,12345679.0000,0.000123,1234.500000,,,probe");
}

TEST(Csv, WritesRatioAndWrongElementsWhenThereAreSome) {
  SweepRow row = slow_and_large();
  row.ratio_to_peer = 1.5;
  row.wrong = 3;
  EXPECT_THAT(report(Format::kCsv, two_workers_on({{0}, {1}}), row), HasSubstr(",1.500000,3,probe\n"));
}

TEST(Json, HasTheEnvironmentAndTheResults) {
  SweepRow row = slow_and_large();
  row.wrong = 0;
  const auto json = nlohmann::json::parse(report(Format::kJson, two_workers_on({{0, 1}, {0, 1}}), row));
  const auto& environment = json.at("environment");
  EXPECT_EQ(environment.at("version"), "1.2.3");
  EXPECT_EQ(environment.at("hosts"), nlohmann::json({"n0"}));
  EXPECT_EQ(environment.at("members"), 2);
  EXPECT_EQ(environment.at("nodes"), 1);
  EXPECT_EQ(environment.at("cores_available"), 2);
  EXPECT_EQ(environment.at("settings").at("COHORT_X").at("origin"), "environment");
  ASSERT_THAT(json.at("results"), SizeIs(1));
  EXPECT_EQ(json.at("results")[0].at("bytes"), 1073741824u);
  EXPECT_EQ(json.at("results")[0].at("wrong"), 0);
  EXPECT_TRUE(json.at("results")[0].at("ratio_to_peer").is_null());
  EXPECT_TRUE(json.at("results")[0].at("memory_limit_us").is_null());
}

TEST(Reports, TellWhatShareOfTheMemorysSpeedWasReached) {
  SweepRow row = slow_and_large();
  row.median_us = 2000;
  row.memory_limit_us = 1500;
  const Environment environment = two_workers_on({{0}, {1}});
  EXPECT_THAT(report(Format::kTable, environment, row),
              HasSubstr("memory allows 1500 us: cohort reaches 75 %"));
  const auto json = nlohmann::json::parse(report(Format::kJson, environment, row));
  EXPECT_EQ(json.at("results")[0].at("memory_limit_us"), 1500);
  EXPECT_EQ(json.at("results")[0].at("memory_limit_share"), 0.75);
}

ProfileResult small_profile() {
  return {
      .model = "tiny",
      .tensors = 2,
      .elements = 3,
      .bytes = 12,
      .dtype = "float32",
      .buffers = "heap",
      .members = 2,
      .steps = 5,
      .rows = {{.library = "cohort",
                .mode = "overlapped",
                .buffers = "heap",
                .step_us = 120,
                .compute_us = 100,
                .exposed_us = 20,
                .hidden_us = 60,
                .hidden_share = 0.75,
                .ratio_to_per_tensor = 4,
                .wrong = 0},
               {.library = "mpi", .mode = "fused", .buffers = "private", .step_us = 80, .exposed_us = 80}}};
}

std::string report(Format format, const ProfileResult& result) {
  std::ostringstream stream;
  write_report(format, stream, two_workers_on({{0}, {1}}), result);
  return stream.str();
}

TEST(ProfileReport, HasTheSameRowsInEveryFormat) {
  EXPECT_THAT(lines_of(report(Format::kCsv, small_profile())),
              testing::ElementsAre(
                  HasSubstr("model,library,mode,"),
                  "tiny,cohort,overlapped,float32,2,heap,120.000,100.000,20.000,60.000,0.750,4.000,,0",
                  "tiny,mpi,fused,float32,2,private,80.000,0.000,80.000,,,,,"));
  const auto json = nlohmann::json::parse(report(Format::kJson, small_profile())).at("profile");
  EXPECT_EQ(json.at("tensors"), 2);
  EXPECT_EQ(json.at("results")[0].at("hidden_share"), 0.75);
  EXPECT_TRUE(json.at("results")[1].at("hidden_us").is_null());
  const std::string table = report(Format::kTable, small_profile());
  EXPECT_THAT(table,
              testing::AllOf(HasSubstr("2 tensors"), HasSubstr("cohort: overlapped"), HasSubstr("75.0")));
  EXPECT_THAT(lines_of(table), Each(testing::ResultOf([](const std::string& line) { return line.size(); },
                                                      testing::Le(110u))));
}

TEST(DispatchReport, HasTheSameRowsInEveryFormat) {
  const DispatchResult result{
      .loops = 3,
      .rows = {{.operation = "run of an empty function",
                .devices = 2,
                .ns = 2000,
                .allocations = 0,
                .original_us = 789},
               {.operation = "merge_call in a replica", .devices = 2, .ns = 1500, .allocations = 1}}};
  const auto report = [&](Format format) {
    std::ostringstream stream;
    write_report(format, stream, two_workers_on({{0}, {1}}), result);
    return stream.str();
  };
  EXPECT_THAT(lines_of(report(Format::kCsv)),
              testing::ElementsAre("operation,devices,ns,allocations,original_us",
                                   "run of an empty function,2,2000.0,0.00,789",
                                   "merge_call in a replica,2,1500.0,1.00,"));
  const auto json = nlohmann::json::parse(report(Format::kJson)).at("dispatch");
  EXPECT_EQ(json.at("loops"), 3);
  EXPECT_EQ(json.at("results")[0].at("original_us"), 789);
  EXPECT_TRUE(json.at("results")[1].at("original_us").is_null());
  EXPECT_THAT(report(Format::kTable), testing::AllOf(HasSubstr("2.00"), HasSubstr("789"), HasSubstr("394")))
      << "the original's time over this one's";
}

TEST(CoordinatorReport, HasTheSameRowsInEveryFormat) {
  const CoordinatorResult result{.loops = 3,
                                 .rows = {{.name = "empty",
                                           .workers = 2,
                                           .servers = 1,
                                           .closures_per_s = 215000.4,
                                           .chief_cpu_us = 2.5,
                                           .round_trip_us = 4.25,
                                           .original_per_s = 747,
                                           .original_trip_us = 4479},
                                          {.name = "commit", .closures_per_s = 1e7}}};
  const auto report = [&](Format format) {
    std::ostringstream stream;
    write_report(format, stream, two_workers_on({{0}, {1}}), result);
    return stream.str();
  };
  EXPECT_THAT(lines_of(report(Format::kCsv)),
              testing::ElementsAre("case,workers,servers,closures_per_s,round_trip_us,chief_cpu_us,"
                                   "original_per_s,original_round_trip_us",
                                   "empty,2,1,215000,4.25,2.50,747.00,4479.00", "commit,0,1,10000000,,,,"));
  const auto json = nlohmann::json::parse(report(Format::kJson)).at("coordinator");
  EXPECT_EQ(json.at("results")[0].at("round_trip_us"), 4.25);
  EXPECT_TRUE(json.at("results")[1].at("original_per_s").is_null());
  EXPECT_THAT(report(Format::kTable),
              testing::AllOf(HasSubstr("215000"), HasSubstr("4.25"), HasSubstr("747")));
}

TEST(ParametersReport, HasTheSameRowsInEveryFormat) {
  const ParametersResult result{.table_mib = 256,
                                .loops = 3,
                                .rows = {{.name = "pull",
                                          .servers = 2,
                                          .bytes = 1 << 20,
                                          .us = 50,
                                          .gib_per_s = 20,
                                          .limit_gib_per_s = 25}}};
  const auto report = [&](Format format) {
    std::ostringstream stream;
    write_report(format, stream, two_workers_on({{0}, {1}}), result);
    return stream.str();
  };
  EXPECT_THAT(lines_of(report(Format::kCsv)),
              testing::ElementsAre("case,servers,bytes,gib_per_s,ratio_to_limit,limit_gib_per_s,us",
                                   "pull,2,1048576,20,0.8,25,50"));
  const auto json = nlohmann::json::parse(report(Format::kJson)).at("parameters");
  EXPECT_DOUBLE_EQ(json.at("results")[0].at("ratio_to_limit"), 0.8);
  EXPECT_THAT(report(Format::kTable), testing::AllOf(HasSubstr("1048576"), HasSubstr("0.8")));
}

TEST(CheckpointReport, HasTheSameRowsInEveryFormat) {
  const CheckpointResult result{
      .loops = 3,
      .rows = {
          {.mode = "save", .bytes = 1 << 30, .seconds = 2, .copy_seconds = 1.5, .original_seconds = 5.25},
          {.mode = "save_async",
           .bytes = 1 << 30,
           .values = 10,
           .seconds = 0.25,
           .copy_seconds = 1.5,
           .step_loss = 0.03}}};
  const auto report = [&](Format format) {
    std::ostringstream stream;
    write_report(format, stream, two_workers_on({{0}, {1}}), result);
    return stream.str();
  };
  EXPECT_THAT(lines_of(report(Format::kCsv)),
              testing::ElementsAre(
                  "mode,bytes,gib_per_s,ratio_to_copy,values,seconds,copy_seconds,step_loss,original_seconds",
                  "save,1073741824,0.5,0.75,1,2,1.5,,5.25", "save_async,1073741824,4,6,10,0.25,1.5,0.03,"));
  const auto json = nlohmann::json::parse(report(Format::kJson)).at("checkpoint");
  EXPECT_EQ(json.at("results")[0].at("ratio_to_copy"), 0.75);
  EXPECT_TRUE(json.at("results")[1].at("original_seconds").is_null());
  EXPECT_THAT(report(Format::kTable),
              testing::AllOf(HasSubstr("save_async"), HasSubstr("0.75"), HasSubstr("5.25")));
}

TEST(ShardedOptimizerReport, HasTheSameRowsInEveryFormat) {
  const ShardedOptimizerResult result{.model = "tiny",
                                      .elements = 1000,
                                      .ranks = 2,
                                      .loops = 3,
                                      .rows = {{.optimizer = "adam",
                                                .replicated_ms = 10,
                                                .sharded_ms = 8,
                                                .replicated_bytes = 8000,
                                                .sharded_bytes = 4000}}};
  const auto report = [&](Format format) {
    std::ostringstream stream;
    write_report(format, stream, two_workers_on({{0}, {1}}), result);
    return stream.str();
  };
  EXPECT_THAT(
      lines_of(report(Format::kCsv)),
      testing::ElementsAre("optimizer,ranks,replicated_ms,sharded_ms,ratio,replicated_bytes,sharded_bytes",
                           "adam,2,10,8,0.8,8000,4000"));
  const auto json = nlohmann::json::parse(report(Format::kJson)).at("sharded_optimizer");
  EXPECT_EQ(json.at("results")[0].at("ratio"), 0.8);
  EXPECT_THAT(report(Format::kTable),
              testing::AllOf(HasSubstr("adam"), HasSubstr("0.800"), HasSubstr("4000")));
}

TEST(InputReport, HasTheSameRowsInEveryFormat) {
  const InputResult result{.record_bytes = 4096,
                           .file_bytes = 64 << 20,
                           .loops = 3,
                           .rows = {{.source = "read(npy)", .bytes_per_s = 8e9, .peak_rss_bytes = 1000000},
                                    {.source = "npy",
                                     .replicas = 2,
                                     .batch = 64,
                                     .batches_per_s = 25000,
                                     .elements_per_s = 1.6e6,
                                     .bytes_per_s = 6.5e9,
                                     .compute_us = 80,
                                     .waiting_share = 0.0125,
                                     .peak_rss_bytes = 2000000}}};
  const auto report = [&](Format format) {
    std::ostringstream stream;
    write_report(format, stream, two_workers_on({{0}, {1}}), result);
    return stream.str();
  };
  EXPECT_THAT(
      lines_of(report(Format::kCsv)),
      testing::ElementsAre(
          "source,replicas,batch,batches_per_s,elements_per_s,bytes_per_s,waiting_share,peak_rss_bytes",
          "read(npy),,,,,8000000000,,1000000", "npy,2,64,25000.0,1600000.0,6500000000,0.0125,2000000"));
  const auto json = nlohmann::json::parse(report(Format::kJson)).at("input");
  EXPECT_EQ(json.at("record_bytes"), 4096);
  EXPECT_TRUE(json.at("results")[0].at("replicas").is_null());
  EXPECT_EQ(json.at("results")[1].at("compute_us"), 80);
  const std::string table = report(Format::kTable);
  EXPECT_THAT(table, testing::AllOf(HasSubstr("read(npy)"), HasSubstr("1.25"), HasSubstr("6500")));
  EXPECT_THAT(lines_of(table), Each(testing::ResultOf([](const std::string& line) { return line.size(); },
                                                      testing::Le(110u))));
}

TEST(Table, FitsInto110ColumnsAndTellsTheEnvironment) {
  const std::string text = report(Format::kTable, two_workers_on({{0}, {1}}), slow_and_large());
  EXPECT_THAT(lines_of(text), Each(testing::ResultOf([](const std::string& line) { return line.size(); },
                                                     testing::Le(110u))));
  EXPECT_THAT(text,
              testing::AllOf(HasSubstr("Cohort 1.2.3"), HasSubstr("Some MPI v4,"), HasSubstr("COHORT_X=1"),
                             HasSubstr("2 members on 1 node (n0), 2 cores"), HasSubstr("a note")));
}

TEST(Table, KeepsItsColumnsBesideALongName) {
  std::ostringstream stream;
  const auto table = make_sweep_report(Format::kTable, stream);
  table->begin(two_workers_on({{0}, {1}}), "subject");
  SweepRow row = slow_and_large();
  row.library = "mpi";
  row.choice = "library";
  row.median_us = row.min_us = row.p99_us = row.iteration_us = 1.5;
  for (const char* algorithm : {"line", "MPI_Reduce_scatter_block", "two_level_halving_doubling"}) {
    row.algorithm = algorithm;
    table->add(row);
  }
  const std::vector<std::string> lines = lines_of(stream.str());
  ASSERT_GT(lines.size(), 3u);
  const auto rows = std::span(lines).last(3);
  EXPECT_THAT(rows[0], testing::EndsWith("1.50    1234      -     -"));
  for (const std::string& line : rows) {
    EXPECT_EQ(line.size(), rows[0].size()) << line;
    EXPECT_EQ(line.rfind("1234"), rows[0].rfind("1234")) << line;
  }
}

TEST(Environment, NamesTheGpuWhereTensorsAreOnOne) {
  Environment environment = two_workers_on({{0}, {1}});
  EXPECT_THAT(summarize(environment), testing::Not(HasSubstr("GPU")));
  const auto gpu_of = [](const Environment& of) {
    return nlohmann::json::parse(report(Format::kJson, of, slow_and_large())).at("environment").at("gpu");
  };
  EXPECT_TRUE(gpu_of(environment).is_null());
  environment.gpu = "Model 1";
  EXPECT_THAT(summarize(environment), HasSubstr("# GPU of member 0: Model 1\n"));
  EXPECT_EQ(gpu_of(environment), "Model 1");
}

TEST(Environment, TellsHowWorkersAndCoresGoTogether) {
  EXPECT_EQ(describe_binding(two_workers_on({{0}, {1}})), "each worker has cores of its own");
  EXPECT_EQ(describe_binding(two_workers_on({{0, 1}, {0, 1}})),
            "not bound: workers of a node share its cores");
  EXPECT_EQ(describe_binding(two_workers_on({{0}, {0}})), "oversubscribed: more members than cores");
}

TEST(Environment, NamesTheProgramWithoutItsFolder) {
  const std::vector<std::string> command{"/home/ada/a folder/build/bin/cohort-bench", "profile", "--model",
                                         "/home/ada/model.csv", "--output=/home/ada/report.csv"};
  EXPECT_EQ(describe_command(command, "/home/ada"),
            "cohort-bench profile --model ~/model.csv --output=~/report.csv");
  EXPECT_EQ(describe_command(std::vector<std::string>{"cohort-bench"}, ""), "cohort-bench");
}

TEST(Environment, DoesNotTellWhereTheHomeFolderIs) {
  EXPECT_EQ(without_home("/home/ada", "/home/ada/"), "~");
  EXPECT_EQ(without_home("/home/ada/report.csv", "/home/ada"), "~/report.csv");
  for (const char* other : {"", "float32", "--sizes", "/home/adam/report.csv", "/data/home/ada/report.csv"})
    EXPECT_EQ(without_home(other, "/home/ada"), other);
  EXPECT_EQ(without_home("/data/report.csv", ""), "/data/report.csv");
  EXPECT_EQ(without_home("/data/report.csv", "/"), "/data/report.csv");
}

TEST(Environment, CountsThreadsAsMembers) {
  Environment environment = two_workers_on({{0, 1}});
  environment.threads = 2;
  EXPECT_EQ(environment.members(), 2);
  EXPECT_EQ(describe_binding(environment), "threads of one process, each bound to a core");
  environment.threads = 3;
  EXPECT_THAT(oversubscription_warning(environment), HasSubstr("3 members on 2 cores of host n0"));
}

TEST(Environment, WarnsOfMoreWorkersThanCores) {
  EXPECT_EQ(oversubscription_warning(two_workers_on({{0}, {1}})), "");
  EXPECT_THAT(oversubscription_warning(two_workers_on({{3}, {3}})),
              HasSubstr("2 members on 1 core of host n0"));
}

}  // namespace
}  // namespace cohort::bench
