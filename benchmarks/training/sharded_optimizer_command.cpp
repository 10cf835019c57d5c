#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kShardedOptimizerAbout =
    R"(sharded-optimizer: a step of an optimizer whose slots are spread over the ranks (ShardedOptimizer), in turns
with one whose slots every rank has; and both with update options: weight decay, clipping by value, by the norm of
each variable and by the global norm, averages, and float32 masters of bfloat16 variables.

  mpirun -n N cohort-bench sharded-optimizer [options]
)";

OptionsDescription sharded_optimizer_options() {
  OptionsDescription all = make_options("Options of sharded-optimizer");
  add_option(
      all, "model", "FILE",
      "CSV with the columns name,elements: the model's variables; default benchmarks/models/resnet50.csv");
  add_loops(all, "steps of each kind, of which the median counts; default 11");
  return all;
}

CommandOptions parse_sharded_optimizer(const GivenOptions& given) {
  return ShardedOptimizerOptions{.model = given.text("model", "benchmarks/models/resnet50.csv"),
                                 .loops = given.loops(11)};
}

}  // namespace

Command sharded_optimizer_command() {
  return {.name = "sharded-optimizer",
          .group = "Training",
          .text = "slots spread over the ranks, next to slots on each",
          .about = kShardedOptimizerAbout,
          .ranks = CommandRanks::kAny,
          .options = sharded_optimizer_options,
          .parse = parse_sharded_optimizer};
}

}  // namespace cohort::bench
