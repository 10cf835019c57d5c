#include <array>
#include <iterator>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command_line.h"
#include "errors.h"
#include "option_values.h"

namespace cohort::bench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Collective kFirst{.command = "all-reduce",
                        .name = "all_reduce",
                        .text = "sums",
                        .peer = "MPI_Allreduce",
                        .nccl = "ncclAllReduce",
                        .reduces = true,
                        .in_place_by_default = true};
const Collective kSecond{.command = "broadcast",
                         .name = "broadcast",
                         .text = "copies",
                         .peer = "MPI_Bcast",
                         .placement = Placement::kInPlaceOnly,
                         .in_place_by_default = true};
const Collective kThird{.command = "all-to-all", .placement = Placement::kOutOfPlaceOnly};
const Collective kFourth{.command = "barrier", .placement = Placement::kNoBuffers};

CommandLine parse(const std::string& line) {
  static constexpr std::array kKnown{&kFirst, &kSecond, &kThird, &kFourth};
  std::istringstream words(line);
  return parse_command_line({std::istream_iterator<std::string>(words), {}}, kKnown);
}

SweepOptions parse_sweep(const std::string& line) { return std::get<SweepOptions>(parse(line).task); }

template <class Options>
Options command_options(const CommandLine& line) {
  return std::get<Options>(std::get<CommandTask>(line.task).options);
}

std::string help(const std::string& line) { return std::get<HelpText>(parse(line).task).text; }

std::string complaint_about(const std::string& line) {
  try {
    (void)parse(line);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(CommandLine, DefaultsAreTheSweepThatIsPublished) {
  const SweepOptions sweep = parse_sweep("all-reduce");
  EXPECT_EQ(sweep.collective, &kFirst);
  EXPECT_EQ(sweep.sizes.first, 4u);
  EXPECT_EQ(sweep.sizes.last, 64u << 20);
  EXPECT_EQ(sweep.op, ReduceOp::kSum);
  EXPECT_TRUE(sweep.in_place);
  EXPECT_EQ(sweep.harness.inputs, Inputs::kRewritten);
  EXPECT_TRUE(sweep.harness.check);
  EXPECT_EQ(sweep.harness.loops, 5);
  EXPECT_FALSE(sweep.harness.iterations.has_value());
  const RunOptions run = parse("all-reduce").run;
  EXPECT_EQ(run.dtype, DType::kFloat32);
  EXPECT_EQ(run.memory, MemoryKind::kHeap);
  EXPECT_TRUE(run.huge_pages);
  EXPECT_FALSE(run.reproducible);
  EXPECT_FALSE(run.threads.has_value());
  EXPECT_EQ(run.device, DeviceKind::kCpu);
  EXPECT_EQ(run.peer, Peer::kMpi);
  EXPECT_EQ(run.format, Format::kTable);
  EXPECT_FALSE(run.output.has_value());
}

TEST(CommandLine, EveryOptionOfASweepIsTaken) {
  const std::string line =
      "all-reduce --sizes 1K:4K --dtype bfloat16 --op max --in-place no --inputs kept --iterations 7 "
      "--loops 3 --no-check --buffers private --huge-pages off --peer none --reproducible yes "
      "--format csv --output=x.csv";
  const SweepOptions sweep = parse_sweep(line);
  EXPECT_EQ(sweep.sizes.first, 1024u);
  EXPECT_EQ(sweep.op, ReduceOp::kMax);
  EXPECT_FALSE(sweep.in_place);
  EXPECT_EQ(sweep.harness.inputs, Inputs::kKept);
  EXPECT_EQ(sweep.harness.iterations, 7);
  EXPECT_EQ(sweep.harness.loops, 3);
  EXPECT_FALSE(sweep.harness.check);
  const RunOptions run = parse(line).run;
  EXPECT_EQ(run.dtype, DType::kBFloat16);
  EXPECT_EQ(run.memory, MemoryKind::kPrivate);
  EXPECT_FALSE(run.huge_pages);
  EXPECT_TRUE(run.reproducible);
  EXPECT_EQ(run.peer, Peer::kNone);
  EXPECT_EQ(run.format, Format::kCsv);
  EXPECT_EQ(run.output, "x.csv");
}

TEST(CommandLine, ThreadsHaveNoPeer) {
  const RunOptions run = parse("all-reduce --members threads --threads 7").run;
  EXPECT_EQ(run.threads, 7);
  EXPECT_EQ(run.peer, Peer::kNone);
  EXPECT_EQ(parse("all-reduce --members threads").run.threads, 2);
}

TEST(CommandLine, GpusAreComparedWithNccl) {
  const RunOptions run = parse("all-reduce --device cuda").run;
  EXPECT_EQ(run.device, DeviceKind::kCuda);
  EXPECT_EQ(run.peer, Peer::kNccl);
  EXPECT_EQ(parse("all-reduce --device cuda --members threads").run.peer, Peer::kNccl);
  EXPECT_EQ(parse("all-reduce --device cuda --peer nccl").run.peer, Peer::kNccl);
  EXPECT_EQ(parse("all-reduce --device cuda --peer none").run.peer, Peer::kNone);
  EXPECT_EQ(parse("all-reduce --device cpu").run.peer, Peer::kMpi);
  EXPECT_EQ(parse("profile --model m.csv --device cuda").run.peer, Peer::kNccl);
}

TEST(CommandLine, EveryOptionOfAProfileIsTaken) {
  const auto defaults = std::get<ProfileOptions>(parse("profile --model m.csv").task);
  EXPECT_EQ(defaults.model, "m.csv");
  EXPECT_FALSE(defaults.compute_ms.has_value());
  EXPECT_EQ(defaults.steps, 5);
  EXPECT_TRUE(defaults.check);
  const auto profile =
      std::get<ProfileOptions>(parse("profile --model m.csv --compute-ms 1.5 --steps 9 --no-check").task);
  EXPECT_EQ(profile.compute_ms, 1.5);
  EXPECT_EQ(profile.steps, 9);
  EXPECT_FALSE(profile.check);
}

TEST(CommandLine, DispatchTakesLoopsAndAReport) {
  EXPECT_EQ(command_options<DispatchOptions>(parse("dispatch")).loops, 5);
  EXPECT_EQ(command_options<TrainerBenchOptions>(parse("trainer")).loops, 15);
  EXPECT_EQ(command_options<SummaryBenchOptions>(parse("summary --folder logs")).folder, "logs");
  EXPECT_EQ(command_options<LinesOptions>(parse("lines --members 64")).members, 64);
  const CommandLine line = parse("dispatch --loops 2 --format csv --output x.csv");
  EXPECT_EQ(command_options<DispatchOptions>(line).loops, 2);
  EXPECT_EQ(line.run.format, Format::kCsv);
  EXPECT_EQ(line.run.output, "x.csv");
}

TEST(CommandLine, CoordinatorTakesLoopsAndAReport) {
  EXPECT_EQ(command_options<CoordinatorOptions>(parse("coordinator")).loops, 5);
  const CommandLine line = parse("coordinator --loops 2 --format json");
  EXPECT_EQ(command_options<CoordinatorOptions>(line).loops, 2);
  EXPECT_EQ(line.run.format, Format::kJson);
}

TEST(CommandLine, ParametersTakesSizesATableAndAReport) {
  const auto defaults = command_options<ParametersOptions>(parse("parameters"));
  EXPECT_EQ(sizes_in(defaults.sizes).back(), std::size_t{256} << 20);
  EXPECT_EQ(defaults.table_mib, 256);
  const auto parameters =
      command_options<ParametersOptions>(parse("parameters --sizes 1K:64K --table-mib 8 --loops 2"));
  EXPECT_EQ(sizes_in(parameters.sizes).front(), 1024U);
  EXPECT_EQ(parameters.table_mib, 8);
  EXPECT_EQ(parameters.loops, 2);
}

TEST(CommandLine, CheckpointTakesSizesAFolderAndAReport) {
  const auto defaults = command_options<CheckpointBenchOptions>(parse("checkpoint"));
  EXPECT_EQ(defaults.mib, 1024);
  EXPECT_EQ(defaults.small_values, 10000);
  EXPECT_EQ(defaults.loops, 5);
  const CommandLine line = parse("checkpoint --mib 8 --small-values 10 --loops 2 --folder /x --format json");
  const auto checkpoint = command_options<CheckpointBenchOptions>(line);
  EXPECT_EQ(checkpoint.mib, 8);
  EXPECT_EQ(checkpoint.small_values, 10);
  EXPECT_EQ(checkpoint.loops, 2);
  EXPECT_EQ(checkpoint.folder, "/x");
  EXPECT_EQ(line.run.format, Format::kJson);
}

TEST(CommandLine, ShardedOptimizerTakesAModelAndAReport) {
  const auto defaults = command_options<ShardedOptimizerOptions>(parse("sharded-optimizer"));
  EXPECT_EQ(defaults.model, "benchmarks/models/resnet50.csv");
  EXPECT_EQ(defaults.loops, 11);
  const CommandLine line = parse("sharded-optimizer --model m.csv --loops 2 --format csv");
  EXPECT_EQ(command_options<ShardedOptimizerOptions>(line).model, "m.csv");
  EXPECT_EQ(command_options<ShardedOptimizerOptions>(line).loops, 2);
  EXPECT_EQ(line.run.format, Format::kCsv);
  EXPECT_THAT(help("sharded-optimizer --help"), AllOf(HasSubstr("--model"), Not(HasSubstr("--dtype"))));
}

TEST(CommandLine, StartTakesANumberOfCommunicators) {
  EXPECT_EQ(command_options<StartOptions>(parse("start")).communicators, 5);
  EXPECT_EQ(command_options<StartOptions>(parse("start --communicators 2")).communicators, 2);
  EXPECT_THAT(help("start --help"), AllOf(HasSubstr("--communicators"), Not(HasSubstr("--loops"))));
}

TEST(CommandLine, InputTakesSizesComputingAndAReport) {
  const auto defaults = command_options<InputBenchOptions>(parse("input"));
  EXPECT_EQ(defaults.batch, 64);
  EXPECT_EQ(defaults.record_bytes, 4096);
  EXPECT_EQ(defaults.file_mib, 64);
  EXPECT_EQ(defaults.compute_us, std::nullopt);
  EXPECT_EQ(defaults.loops, 5);
  const CommandLine line = parse(
      "input --batch 8 --record-bytes 64 --file-mib 1 --compute-us 100 --read-ahead 0 --loops 2 --folder /x "
      "--format json");
  const auto input = command_options<InputBenchOptions>(line);
  EXPECT_EQ(input.batch, 8);
  EXPECT_EQ(input.record_bytes, 64);
  EXPECT_EQ(input.file_mib, 1);
  EXPECT_EQ(input.compute_us, 100);
  EXPECT_EQ(input.read_ahead, 0);
  EXPECT_EQ(input.loops, 2);
  EXPECT_EQ(input.folder, "/x");
  EXPECT_EQ(line.run.format, Format::kJson);
}

TEST(CommandLine, HelpNamesTheCollectivesOrTheOptions) {
  EXPECT_THAT(help("--help"), AllOf(HasSubstr("all-reduce"), HasSubstr("broadcast"), HasSubstr("--sizes"),
                                    HasSubstr("--model")));
  EXPECT_THAT(help("all-reduce -h"), HasSubstr("compared with MPI_Allreduce, on GPUs with ncclAllReduce."));
  EXPECT_THAT(help("broadcast -h"), AllOf(HasSubstr("MPI_Bcast"), HasSubstr("--sizes")));
  EXPECT_THAT(help("profile --help"), AllOf(HasSubstr("--model"), Not(HasSubstr("--sizes"))));
  EXPECT_THAT(help("input --help"), AllOf(HasSubstr("--compute-us"), Not(HasSubstr("--dtype"))));
  EXPECT_THAT(help("coordinator --help"), AllOf(HasSubstr("--loops"), HasSubstr("cohort-run --roles")));
  EXPECT_THAT(help("parameters --help"), AllOf(HasSubstr("--table-mib"), Not(HasSubstr("--dtype"))));
  EXPECT_THAT(help("checkpoint --help"), AllOf(HasSubstr("--small-values"), Not(HasSubstr("--dtype"))));
  EXPECT_THAT(help("lines --help"), AllOf(HasSubstr("--latencies"), Not(HasSubstr("--loops"))));
  EXPECT_THAT(help("dispatch --help"), AllOf(HasSubstr("--loops"), Not(HasSubstr("--dtype"))));
}

TEST(CommandLine, MistakesAreOneLineThatSaysWhatToDo) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"", "for example: mpirun -n 2 cohort-bench all-reduce"},
      {"all_reduce",
       "choose one of all-reduce, broadcast, all-to-all, barrier, profile, dispatch, lines, simulate, input, "
       "coordinator, parameters, checkpoint, trainer, summary, sharded-optimizer, start"},
      {"lines --latencies power", "neither epyc nor xeon"},
      {"all-reduce --sizes 4:abc", "write MIN:MAX"},
      {"all-reduce --sizes 64:4", "write 4:64"},
      {"all-reduce --sizes", "see cohort-bench all-reduce --help"},
      {"all-reduce --dtype float31", "bfloat16"},
      {"all-reduce --op avg", "mean"},
      {"all-reduce --op mean --dtype int32", "int32"},
      {"all-reduce --inputs dirty", "choose rewritten or kept"},
      {"all-reduce --iterations 0", "whole number"},
      {"all-reduce --loops many", "whole number"},
      {"all-reduce --check --no-check", "one of them"},
      {"all-reduce --format xml", "table, csv or json"},
      {"all-reduce --size 4", "--size"},
      {"all-reduce 4:64M", "--help"},
      {"all-reduce --in-place maybe", "choose yes or no"},
      {"broadcast --in-place no", "always works in place"},
      {"all-to-all --in-place yes", "cannot work in place"},
      {"broadcast --op max", "combines nothing"},
      {"barrier --sizes 4", "moves no data"},
      {"barrier --buffers private", "moves no data"},
      {"all-reduce --buffers stack", "choose heap or private"},
      {"all-reduce --huge-pages yes", "choose on or off"},
      {"all-reduce --reproducible on", "choose yes or no"},
      {"broadcast --reproducible yes", "broadcast combines nothing"},
      {"all-reduce --huge-pages off --peer none", "leave it out"},
      {"all-reduce --peer ucc", "choose mpi, nccl or none"},
      {"all-reduce --peer nccl", "only --device cuda has that"},
      {"all-reduce --device cuda --peer mpi", "choose nccl or none"},
      {"all-reduce --device gpu", "choose cpu or cuda"},
      {"all-reduce --device cuda --buffers private", "in the memory of GPUs"},
      {"all-reduce --device cuda --huge-pages off", "in the memory of GPUs"},
      {"barrier --device cuda", "moves no data"},
      {"profile --model m.csv --peer nccl", "only --device cuda has that"},
      {"all-reduce --members processes", "choose threads or ranks"},
      {"all-reduce --members threads --threads 0", "whole number"},
      {"all-reduce --threads 2", "only --members threads"},
      {"all-reduce --members threads --peer mpi", "leave --members threads out"},
      {"all-reduce --model m.csv", "unrecognised option"},
      {"profile", "write --model FILE"},
      {"profile --model m.csv --compute-ms -1", "milliseconds"},
      {"profile --model m.csv --compute-ms nan", "milliseconds"},
      {"profile --model m.csv --steps 0", "whole number"},
      {"profile --model m.csv --sizes 4", "unrecognised option"},
      {"profile --model m.csv --dtype bool", "bool"},
      {"coordinator --loops 0", "whole number"},
      {"parameters --sizes 6", "write multiples of 4"},
      {"checkpoint --mib 0", "whole number"},
      {"dispatch --loops 0", "whole number"},
      {"dispatch --dtype int8", "unrecognised option"},
      {"input --batch 0", "whole number"},
      {"input --record-bytes 12", "multiple of 8"},
      {"input --compute-us -1", "whole number"},
      {"input --read-ahead -1", "whole number"},
      {"input --model m.csv", "unrecognised option"},
  };
  for (const auto& [line, advice] : cases) {
    EXPECT_THAT(complaint_about(line), AllOf(HasSubstr(advice), Not(HasSubstr("\n")))) << line;
  }
}

std::string complaint_about_value(const std::string& text) {
  try {
    (void)parse_size_range(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SizeRange, GoesFromTheSmallestToTheLargestInStepsOfFour) {
  EXPECT_THAT(sizes_in(parse_size_range("4:1K")), ElementsAre(4, 16, 64, 256, 1024));
}

TEST(SizeRange, DefaultSweepEndsAt64M) {
  const auto sizes = sizes_in(parse_size_range("4:64M"));
  EXPECT_EQ(sizes.size(), 13u);
  EXPECT_EQ(sizes.back(), 64u << 20);
}

TEST(SizeRange, StopsBelowALargestSizeThatNoStepMeets) {
  EXPECT_THAT(sizes_in(parse_size_range("8:100")), ElementsAre(8, 32));
}

TEST(SizeRange, TakesASingleSize) { EXPECT_THAT(sizes_in(parse_size_range("3M")), ElementsAre(3u << 20)); }

TEST(SizeRange, TakesSuffixesInEitherCase) {
  EXPECT_EQ(parse_size_range("2k").first, 2048u);
  EXPECT_EQ(parse_size_range("1G").last, std::size_t{1} << 30);
}

TEST(SizeRange, EndsBeforeTheNextStepWouldOverflow) {
  EXPECT_THAT(sizes_in(parse_size_range("17179869183G")), testing::SizeIs(1));
}

TEST(SizeRange, SaysWhichPartIsNotASize) {
  EXPECT_THAT(complaint_about_value("4:abc"),
              testing::AllOf(HasSubstr("--sizes 4:abc"), HasSubstr("'abc'"), HasSubstr("4:64M")));
  for (const char* text :
       {"", ":", "4:", ":4", "4:5:6", "-4", "4 ", " 4", "4.5", "4KB", "4:8:", "0x10", "K"}) {
    EXPECT_THAT(complaint_about_value(text), HasSubstr("is not a size")) << text;
  }
}

TEST(SizeRange, RefusesSizesOfNothingAndBeyondTheAddressSpace) {
  EXPECT_THAT(complaint_about_value("0:4"), HasSubstr("at least 1 byte"));
  EXPECT_THAT(complaint_about_value("17179869184G"), HasSubstr("more than this machine can address"));
  EXPECT_THAT(complaint_about_value("99999999999999999999"), HasSubstr("more than this machine can address"));
}

TEST(SizeRange, OffersTheReversedRange) {
  EXPECT_THAT(complaint_about_value("1M:4"), HasSubstr("write 4:1M"));
}

TEST(FormatSize, IsWhatTheOptionTakes) {
  EXPECT_EQ(format_size(4), "4");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(64u << 20), "64M");
  EXPECT_EQ(format_size(1536), "1536");
  EXPECT_EQ(format_size(std::size_t{2048} << 30), "2048G");
}

}  // namespace
}  // namespace cohort::bench
