#include "command_help.h"

#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "peer.h"

namespace cohort::bench {
namespace {

namespace po = boost::program_options;

constexpr unsigned kHelpColumns = 108;

constexpr std::string_view kAbout =
    R"(Measures a collective of Cohort and, in turns with it, the same one of MPI, or of NCCL on GPUs.

  mpirun -n N cohort-bench COLLECTIVE [options]
  mpirun -n N cohort-bench profile --model FILE [options]
  cohort-bench dispatch [options]
  cohort-bench input [options]
  cohort-bench coordinator [options]
  cohort-bench parameters [options]
  cohort-bench checkpoint [options]
  mpirun -n N cohort-bench sharded-optimizer [options]

Collectives:
)";

constexpr std::string_view kAboutProfile =
    R"(profile: all-reduces the gradients of a model as they become ready, last layer first: tensor by
tensor, packed, and overlapped with computing; compared with MPI_Allreduce, or on GPUs with
ncclAllReduce, called per tensor and over one fused buffer.

  mpirun -n N cohort-bench profile --model FILE [options]
)";

constexpr std::string_view kAboutDispatch =
    R"(dispatch: what the strategy layer adds to what replicas do, on one device and on two: empty functions,
merges, reads of variables, reductions of a number, a step over 161 variables. In one process.

  cohort-bench dispatch [options]
)";

constexpr std::string_view kAboutTrainer =
    R"(trainer: what a Trainer adds to a step of the same training loop by hand, without metrics and with one.
In one process.

  cohort-bench trainer [options]
)";

constexpr std::string_view kAboutInput =
    R"(input: how many elements and batches numbers in memory and files of several formats deliver to one and
two replicas, and how long a program that computes waits for them. In one process.

  cohort-bench input [options]
)";

constexpr std::string_view kAboutCoordinator =
    R"(coordinator: how many functions a second workers run for a coordinator, and how long one takes there and
back: empty ones, and ones that change variables of parameter servers. Starts its tasks itself, or takes
those of cohort-run.

  cohort-bench coordinator [options]
  cohort-run --roles chief=1,worker=W,ps=P cohort-bench coordinator [options]
)";

constexpr std::string_view kAboutParameters =
    R"(parameters: how fast variables of parameter servers are read and assigned, and rows of them looked up,
next to copies within one process. Starts its tasks itself, or takes those of cohort-run.

  cohort-bench parameters [options]
  cohort-run --roles chief=1,worker=1,ps=P cohort-bench parameters [options]
)";

constexpr std::string_view kAboutCheckpoint =
    R"(checkpoint: how fast checkpoints are saved, restored and verified, next to cp and fsync() of the same
bytes, and what saving in the background takes from a training's steps. In one process.

  cohort-bench checkpoint [options]
)";

constexpr std::string_view kAboutShardedOptimizer =
    R"(sharded-optimizer: a step of an optimizer whose slots are spread over the ranks (ShardedOptimizer), in turns
with one whose slots every rank has.

  mpirun -n N cohort-bench sharded-optimizer [options]
)";

constexpr std::string_view kClosing = R"(
Times are of the slowest member, in microseconds; GB is 1e9 bytes. The exit status is 0, 1 when an
element was wrong or Cohort failed, 2 for a mistake on the command line.
)";

void add_text(po::options_description& options, const char* name, const char* value, const char* text) {
  options.add_options()(name, po::value<std::string>()->value_name(value), text);
}

std::string with_options(std::string_view about, const std::vector<po::options_description>& groups) {
  std::ostringstream text;
  text << about;
  for (const po::options_description& group : groups) text << "\n" << group;
  return text.str();
}

}  // namespace

po::options_description sweep_options() {
  po::options_description options("Options of a sweep", kHelpColumns);
  add_text(options, "sizes", "MIN:MAX",
           "bytes of a member's largest buffer, in steps of 4; or one size; K, M, G: powers of 1024; "
           "default 4:64M");
  add_text(options, "op", "NAME", "sum (default), mean, min, max or prod");
  add_text(options, "in-place", "yes|no",
           "the result replaces the input, or the block of it that is the member's own; default: yes for "
           "all-reduce, otherwise no");
  add_text(
      options, "inputs", "HOW",
      "rewritten before each call, as in training (default), or kept, as other benchmarks do, which flatters "
      "what reads a peer's memory");
  add_text(options, "iterations", "N", "timed calls of each loop; default: what fits into 60 ms, 2 to 20000");
  add_text(options, "loops", "N", "loops per size and library, of which the median counts; default 5");
  return options;
}

po::options_description profile_options() {
  po::options_description options("Options of a profile", kHelpColumns);
  add_text(options, "model", "FILE",
           "CSV with the columns name,elements: the model's tensors in forward order");
  add_text(
      options, "compute-ms", "MS",
      "length of the backward pass that communication overlaps with; default: as long as the communication");
  add_text(options, "steps", "N", "timed steps of each mode, of which the median counts; default 5");
  return options;
}

po::options_description common_options() {
  po::options_description options("Options of sweeps and profiles", kHelpColumns);
  add_text(options, "dtype", "NAME", "type of the elements; default float32");
  add_text(options, "device", "cpu|cuda",
           "where the tensors are: in the host's memory (default), or each member's on a GPU of its own");
  add_text(options, "members", "ranks|threads",
           "who takes part: the ranks (default), or threads of this process");
  add_text(options, "threads", "N", "how many, with --members threads; default 2");
  add_text(options, "peer", "mpi|nccl|none",
           "what to compare with; default mpi, with --members threads none, with --device cuda nccl");
  add_text(options, "buffers", "heap|private",
           "Cohort's tensors lie in its own memory (default), or in ordinary memory as the peer's do");
  add_text(options, "huge-pages", "on|off", "advise them for ordinary memory; default on");
  add_text(options, "reproducible", "yes|no", "Cohort's results do not depend on the layout; default no");
  auto add = options.add_options();
  add("check", "compare every element with the exact result, outside the timer (default)");
  add("no-check", "do not");
  return options;
}

po::options_description dispatch_options() {
  po::options_description options("Options of dispatch", kHelpColumns);
  add_text(options, "loops", "N", "loops per figure, of which the median counts; default 5");
  return options;
}

po::options_description input_options() {
  po::options_description options("Options of input", kHelpColumns);
  add_text(options, "batch", "N", "elements of a global batch; default 64");
  add_text(options, "record-bytes", "N", "bytes of an element of the files, a multiple of 8; default 4096");
  add_text(options, "file-mib", "N", "size of each file in MiB; default 64");
  add_text(options, "compute-us", "US",
           "what each replica computes in a step; default: 2.5 times what making its batch takes one thread");
  add_text(
      options, "read-ahead", "N",
      "batches per replica that a thread makes ahead of the program; 0: none, without a thread; default 1");
  add_text(options, "folder", "PATH", "where the files are written; default: that of temporary files");
  add_text(options, "loops", "N", "passes per figure, of which the median counts; default 5");
  return options;
}

po::options_description coordinator_options() {
  po::options_description options("Options of coordinator", kHelpColumns);
  add_text(options, "loops", "N", "loops per figure, of which the median counts; default 5");
  return options;
}

po::options_description parameters_options() {
  po::options_description options("Options of parameters", kHelpColumns);
  add_text(options, "sizes", "MIN:MAX", "bytes of a variable, in steps of 4; or one size; default 4:256M");
  add_text(options, "table-mib", "N", "size of each table whose rows are looked up, in MiB; default 256");
  add_text(options, "loops", "N", "loops per figure, of which the median counts; default 5");
  return options;
}

po::options_description checkpoint_options() {
  po::options_description options("Options of checkpoint", kHelpColumns);
  add_text(options, "mib", "N", "size of the large variable, in MiB; default 1024");
  add_text(options, "small-values", "N", "how many small variables, each of 4 KiB; default 10000");
  add_text(options, "folder", "PATH", "where checkpoints are written; default: that of temporary files");
  add_text(options, "loops", "N", "loops per figure, of which the median counts; default 5");
  return options;
}

po::options_description sharded_optimizer_options() {
  po::options_description options("Options of sharded-optimizer", kHelpColumns);
  add_text(
      options, "model", "FILE",
      "CSV with the columns name,elements: the model's variables; default benchmarks/models/resnet50.csv");
  add_text(options, "loops", "N", "steps of each kind, of which the median counts; default 11");
  return options;
}

po::options_description trainer_options() {
  po::options_description options("Options of trainer", kHelpColumns);
  add_text(options, "loops", "N", "pairs of loops per figure, of which the median counts; default 15");
  return options;
}

po::options_description report_options() {
  po::options_description options("Options of the report", kHelpColumns);
  add_text(options, "format", "NAME", "table (default), csv or json");
  add_text(options, "output", "FILE", "write the report there; the table is printed as well");
  options.add_options()("help,h", "print this text");
  return options;
}

std::string names_of(std::span<const Collective* const> collectives) {
  std::string names;
  for (const Collective* collective : collectives) names += fmt::format("{}, ", collective->command);
  return fmt::format("{}{}, {}, {}, {}, {}, {}, {}, {}", names, kProfile, kDispatch, kInput, kCoordinator,
                     kParameters, kCheckpoint, kTrainer, kShardedOptimizer);
}

std::string general_help(std::span<const Collective* const> collectives) {
  std::string about(kAbout);
  const auto add_command = [&](std::string_view command, std::string_view text) {
    about += fmt::format("  {:<17}  {}\n", command, text);
  };
  for (const Collective* collective : collectives) add_command(collective->command, collective->text);
  about += "\nA training step:\n";
  add_command(kProfile, "all-reduce the gradients of a model in several ways");
  about += "\nThe strategy layer:\n";
  add_command(kDispatch, "runs, merges and reads, next to the original");
  about += "\nThe input pipeline:\n";
  add_command(kInput, "numbers in memory and files, next to read()");
  about += "\nParameter servers:\n";
  add_command(kCoordinator, "functions that workers run, next to the original");
  add_command(kParameters, "reads and writes of variables, next to memcpy");
  about += "\nCheckpoints:\n";
  add_command(kCheckpoint, "saving, restoring and verifying, next to cp");
  about += "\nTraining:\n";
  add_command(kTrainer, "fit, next to a loop by hand");
  add_command(kShardedOptimizer, "slots spread over the ranks, next to slots on each");
  return with_options(about,
                      {sweep_options(), profile_options(), common_options(), dispatch_options(),
                       input_options(), coordinator_options(), parameters_options(), checkpoint_options(),
                       trainer_options(), sharded_optimizer_options(), report_options()}) +
         std::string(kClosing);
}

std::string help_on(const Collective& collective) {
  const std::string nccl =
      collective.nccl.empty() ? "" : fmt::format(", on GPUs with {}", function_of(Peer::kNccl, collective));
  const std::string about =
      fmt::format("{}: {}; compared with {}{}.\n\n  mpirun -n N cohort-bench {} [options]\n",
                  collective.command, collective.text, collective.peer, nccl, collective.command);
  return with_options(about, {sweep_options(), common_options(), report_options()});
}

std::string help_on_profile() {
  return with_options(kAboutProfile, {profile_options(), common_options(), report_options()});
}

std::string help_on_dispatch() {
  return with_options(kAboutDispatch, {dispatch_options(), report_options()});
}

std::string help_on_coordinator() {
  return with_options(kAboutCoordinator, {coordinator_options(), report_options()});
}

std::string help_on_parameters() {
  return with_options(kAboutParameters, {parameters_options(), report_options()});
}

std::string help_on_checkpoint() {
  return with_options(kAboutCheckpoint, {checkpoint_options(), report_options()});
}

std::string help_on_sharded_optimizer() {
  return with_options(kAboutShardedOptimizer, {sharded_optimizer_options(), report_options()});
}
std::string help_on_trainer() { return with_options(kAboutTrainer, {trainer_options(), report_options()}); }

std::string help_on_input() { return with_options(kAboutInput, {input_options(), report_options()}); }

}  // namespace cohort::bench
