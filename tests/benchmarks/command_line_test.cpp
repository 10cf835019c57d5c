#include "command_line.h"

#include <array>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "usage_error.h"

namespace cohort::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Collective kFirst{
    .command = "all-reduce", .name = "all_reduce", .text = "sums", .peer = "MPI_Allreduce"};
const Collective kSecond{.command = "broadcast", .name = "broadcast", .text = "copies", .peer = "MPI_Bcast"};

CommandLine parse(const std::string& line) {
  static constexpr std::array kKnown{&kFirst, &kSecond};
  std::istringstream words(line);
  return parse_command_line({std::istream_iterator<std::string>(words), {}}, kKnown);
}

std::string complaint_about(const std::string& line) {
  try {
    (void)parse(line);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(CommandLine, DefaultsAreTheSweepThatIsPublished) {
  const CommandLine line = parse("all-reduce");
  EXPECT_EQ(line.collective, &kFirst);
  EXPECT_EQ(line.sizes.first, 4u);
  EXPECT_EQ(line.sizes.last, 64u << 20);
  EXPECT_EQ(line.dtype, DType::kFloat32);
  EXPECT_EQ(line.op, ReduceOp::kSum);
  EXPECT_EQ(line.harness.inputs, Inputs::kRewritten);
  EXPECT_TRUE(line.harness.check);
  EXPECT_FALSE(line.harness.iterations.has_value());
  EXPECT_EQ(line.format, Format::kTable);
  EXPECT_FALSE(line.output.has_value());
}

TEST(CommandLine, EveryOptionIsTaken) {
  const CommandLine line = parse(
      "broadcast --sizes 1K:4K --dtype bfloat16 --op max --inputs kept --iterations 7 --no-check --format "
      "csv "
      "--output=x.csv");
  EXPECT_EQ(line.collective, &kSecond);
  EXPECT_EQ(line.sizes.first, 1024u);
  EXPECT_EQ(line.dtype, DType::kBFloat16);
  EXPECT_EQ(line.op, ReduceOp::kMax);
  EXPECT_EQ(line.harness.inputs, Inputs::kKept);
  EXPECT_EQ(line.harness.iterations, 7);
  EXPECT_FALSE(line.harness.check);
  EXPECT_EQ(line.format, Format::kCsv);
  EXPECT_EQ(line.output, "x.csv");
}

TEST(CommandLine, HelpNamesTheCollectivesOrTheOptions) {
  EXPECT_THAT(parse("--help").help,
              AllOf(HasSubstr("all-reduce"), HasSubstr("broadcast"), HasSubstr("--sizes")));
  EXPECT_THAT(parse("broadcast -h").help, AllOf(HasSubstr("MPI_Bcast"), HasSubstr("--sizes")));
}

TEST(CommandLine, MistakesAreOneLineThatSaysWhatToDo) {
  const std::array<std::pair<const char*, const char*>, 14> cases{{
      {"", "for example: mpirun -n 2 cohort-bench all-reduce"},
      {"all_reduce", "choose one of all-reduce, broadcast"},
      {"all-reduce --sizes 4:abc", "write MIN:MAX"},
      {"all-reduce --sizes 64:4", "write 4:64"},
      {"all-reduce --sizes", "see cohort-bench all-reduce --help"},
      {"all-reduce --dtype float31", "bfloat16"},
      {"all-reduce --op avg", "mean"},
      {"all-reduce --op mean --dtype int32", "int32"},
      {"all-reduce --inputs dirty", "rewritten or kept"},
      {"all-reduce --iterations 0", "whole number"},
      {"all-reduce --check --no-check", "one of them"},
      {"all-reduce --format xml", "table, csv or json"},
      {"all-reduce --size 4", "--size"},
      {"all-reduce 4:64M", "--help"},
  }};
  for (const auto& [line, advice] : cases) {
    EXPECT_THAT(complaint_about(line), AllOf(HasSubstr(advice), Not(HasSubstr("\n")))) << line;
  }
}

}  // namespace
}  // namespace cohort::bench
