#include "command_help.h"

#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "peer.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kAbout =
    R"(Measures a collective of Cohort and, in turns with it, the same one of MPI, or of NCCL on GPUs.

  mpirun -n N cohort-bench COLLECTIVE [options]
  mpirun -n N cohort-bench profile --model FILE [options]
  cohort-bench COMMAND [options]

Collectives:
)";

constexpr std::string_view kAboutProfile =
    R"(profile: all-reduces the gradients of a model as they become ready, last layer first: tensor by
tensor, packed, and overlapped with computing; compared with MPI_Allreduce, or on GPUs with
ncclAllReduce, called per tensor and over one fused buffer.

  mpirun -n N cohort-bench profile --model FILE [options]
)";

constexpr std::string_view kClosing = R"(
Times are of the slowest member, in microseconds; GB is 1e9 bytes. The exit status is 0, 1 when an
element was wrong or Cohort failed, 2 for a mistake on the command line.
)";

std::string with_options(std::string_view about, const std::vector<OptionsDescription>& groups) {
  std::ostringstream text;
  text << about;
  for (const OptionsDescription& group : groups) text << "\n" << group;
  return text.str();
}

}  // namespace

OptionsDescription sweep_options() {
  OptionsDescription options = make_options("Options of a sweep");
  add_option(options, "sizes", "MIN:MAX",
             "bytes of a member's largest buffer, in steps of 4; or one size; K, M, G: powers of 1024; "
             "default 4:64M");
  add_option(options, "op", "NAME", "sum (default), mean, min, max or prod");
  add_option(options, "in-place", "yes|no",
             "the result replaces the input, or the block of it that is the member's own; default: yes for "
             "all-reduce, otherwise no");
  add_option(
      options, "inputs", "HOW",
      "rewritten before each call, as in training (default), or kept, as other benchmarks do, which flatters "
      "what reads a peer's memory");
  add_option(options, "iterations", "N",
             "timed calls of each loop; default: what fits into 60 ms, 2 to 20000");
  add_loops(options, "loops per size and library, of which the median counts; default 5");
  return options;
}

OptionsDescription profile_options() {
  OptionsDescription options = make_options("Options of a profile");
  add_option(options, "model", "FILE",
             "CSV with the columns name,elements: the model's tensors in forward order");
  add_option(
      options, "compute-ms", "MS",
      "length of the backward pass that communication overlaps with; default: as long as the communication");
  add_option(options, "steps", "N", "timed steps of each mode, of which the median counts; default 5");
  return options;
}

OptionsDescription common_options() {
  OptionsDescription options = make_options("Options of sweeps and profiles");
  add_option(options, "dtype", "NAME", "type of the elements; default float32");
  add_option(options, "device", "cpu|cuda",
             "where the tensors are: in the host's memory (default), or each member's on a GPU of its own");
  add_option(options, "members", "ranks|threads",
             "who takes part: the ranks (default), or threads of this process");
  add_option(options, "threads", "N", "how many, with --members threads; default 2");
  add_option(options, "peer", "mpi|nccl|none",
             "what to compare with; default mpi, with --members threads none, with --device cuda nccl");
  add_option(options, "buffers", "heap|private",
             "Cohort's tensors lie in its own memory (default), or in ordinary memory as the peer's do");
  add_option(options, "huge-pages", "on|off", "advise them for ordinary memory; default on");
  add_option(options, "reproducible", "yes|no", "Cohort's results do not depend on the layout; default no");
  auto add = options.add_options();
  add("check", "compare every element with the exact result, outside the timer (default)");
  add("no-check", "do not");
  return options;
}

std::string names_of(std::span<const Collective* const> collectives) {
  std::string names;
  for (const Collective* collective : collectives) names += fmt::format("{}, ", collective->command);
  names += kProfile;
  for (const Command& command : commands()) names += fmt::format(", {}", command.name);
  return names;
}

std::string general_help(std::span<const Collective* const> collectives) {
  std::string about(kAbout);
  const auto add_command = [&](std::string_view command, std::string_view text) {
    about += fmt::format("  {:<17}  {}\n", command, text);
  };
  for (const Collective* collective : collectives) add_command(collective->command, collective->text);
  about += "\nA training step:\n";
  add_command(kProfile, "all-reduce the gradients of a model in several ways");
  std::vector<OptionsDescription> options{sweep_options(), profile_options(), common_options()};
  std::string_view group;
  for (const Command& command : commands()) {
    if (command.group != std::exchange(group, command.group)) about += fmt::format("\n{}:\n", command.group);
    add_command(command.name, command.text);
    options.push_back(command.options());
  }
  options.push_back(report_options());
  return with_options(about, options) + std::string(kClosing);
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

std::string help_on(const Command& command) {
  return with_options(command.about, {command.options(), report_options()});
}

}  // namespace cohort::bench
