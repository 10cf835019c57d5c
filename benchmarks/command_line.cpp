#include "command_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/version.h>

#include "collective.h"
#include "errors.h"
#include "given_options.h"
#include "option_values.h"
#include "peer.h"
#include "report/comparison.h"

namespace cohort::bench {

std::span<const Command> commands() {
  static const std::array all{dispatch_command(),    lines_command(),
                              simulate_command(),    input_command(),
                              coordinator_command(), parameters_command(),
                              checkpoint_command(),  trainer_command(),
                              summary_command(),     sharded_optimizer_command(),
                              start_command(),       report_command()};
  return all;
}

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? nullptr : &*found;
}

namespace {

// --help.

constexpr std::string_view kProfile = "profile";

constexpr std::string_view kAbout =
    R"(Usage: cohort-bench COMMAND [OPTION ...]

Measures a collective of Cohort and, in turns with it, the same one of MPI, or of NCCL on GPUs; or a
training step; or what else takes time. Started by `mpirun -n N` where several ranks take part.
COMMAND --help has its options alone.

Collectives:
)";

constexpr std::string_view kAboutProfile =
    R"(Usage: mpirun -n N cohort-bench profile --model FILE [OPTION ...]

profile: all-reduces the gradients of a model as they become ready, last layer first: tensor by
tensor, packed, and overlapped with computing; compared with MPI_Allreduce, or on GPUs with
ncclAllReduce, called per tensor and over one fused buffer.
)";

constexpr std::string_view kClosing = R"(
Times are of the slowest member, in microseconds; GB is 1e9 bytes.

Exit status: 0; 1 when an element was wrong, a size slower (--fail-below) or Cohort failed; 2 for wrong usage.
)";

std::string with_options(std::string_view about, const std::vector<OptionsDescription>& groups) {
  std::ostringstream text;
  text << about;
  for (const OptionsDescription& group : groups) text << "\n" << group;
  std::string help = text.str();
  // As other programs write it; just as long.
  constexpr std::string_view kBoosts = "-h [ --help ]";
  if (const auto place = help.find(kBoosts); place != std::string::npos)
    help.replace(place, kBoosts.size(), "-h, --help   ");
  return help;
}

OptionsDescription sweep_options() {
  OptionsDescription options = make_options("Options of a sweep");
  add_option(options, "sizes", "MIN:MAX",
             "bytes of a member's largest buffer, in steps of 4; or one size; K, M, G: powers of 1024; "
             "default 4:64M");
  add_option(options, "op", "sum|mean|min|max|prod", "default sum");
  add_option(options, "in-place", "yes|no",
             "the result replaces the input, or the block of it that is the member's own; default: yes for "
             "all-reduce, otherwise no");
  add_option(
      options, "inputs", "HOW",
      "rewritten before each call, as in training (default), or kept, as other benchmarks do, which flatters "
      "what reads a peer's memory");
  add_option(options, "iterations", "N",
             "timed calls of each loop; default: what fits into 60 ms, 2 to 20000");
  add_loops(
      options,
      "loops per size and library in a round, of which the median counts; default 5, with --fail-below 1");
  add_option(options, "rounds", "N",
             "times that all sizes are measured, one after the other; default 1, with --fail-below 25");
  add_baseline_options(options);
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

/// Of sweeps and profiles.
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

/// All commands, for example `all-reduce, barrier, profile, dispatch, input, ...`.
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
  options.back().add_options()("version", "print the version");
  return with_options(about, options) + std::string(kClosing);
}

std::string help_on(const Collective& collective) {
  const std::string nccl =
      collective.nccl.empty() ? "" : fmt::format(", on GPUs with {}", function_of(Peer::kNccl, collective));
  const std::string about =
      fmt::format("Usage: mpirun -n N cohort-bench {0} [OPTION ...]\n\n{0}: {1}; compared with {2}{3}.\n",
                  collective.command, collective.text, collective.peer, nccl);
  return with_options(about, {sweep_options(), common_options(), report_options()});
}

std::string help_on_profile() {
  return with_options(kAboutProfile, {profile_options(), common_options(), report_options()});
}

std::string help_on(const Command& command) {
  return with_options(command.about, {command.options(), report_options()});
}

// The values of the options.

constexpr int kMostThreads = 1024;

/// `allreduce` for `all-reduce`, `All_Reduce` and `allreduce`.
std::string without_separators(std::string_view name) {
  std::string letters;
  for (const char each : name) {
    if (each != '-' && each != '_') letters += static_cast<char>(std::tolower(each));
  }
  return letters;
}

/// What was probably meant, as the middle of a sentence; empty if nothing is near.
std::string guess(const std::string& command, std::span<const Collective* const> collectives) {
  for (const Collective* collective : collectives) {
    if (without_separators(collective->command) == without_separators(command))
      return fmt::format("did you mean {}? Otherwise ", collective->command);
  }
  return {};
}

const Collective& find_collective(const std::string& command,
                                  std::span<const Collective* const> collectives) {
  const auto found = std::find_if(collectives.begin(), collectives.end(), [&](const Collective* collective) {
    return collective->command == command;
  });
  if (found == collectives.end()) {
    throw UsageError("unknown collective '{}': {}choose one of {}, or see cohort-bench --help", command,
                     guess(command, collectives), names_of(collectives));
  }
  return **found;
}

bool parse_check(const GivenOptions& given) {
  if (given.has("check") && given.has("no-check")) {
    throw UsageError("--check and --no-check contradict each other: give one of them");
  }
  return !given.has("no-check");
}

Peer parse_peer(const GivenOptions& given, const RunOptions& run) {
  const bool on_gpus = run.device == DeviceKind::kCuda;
  const Peer usual = on_gpus ? Peer::kNccl : run.threads ? Peer::kNone : Peer::kMpi;
  if (!given.has("peer")) return usual;
  const std::string text = given.text("peer");
  if (text == to_string(Peer::kNone)) return Peer::kNone;
  if (text == to_string(Peer::kNccl)) {
    if (on_gpus) return Peer::kNccl;
    throw UsageError("--peer nccl: its calls take memory of GPUs; only --device cuda has that");
  }
  if (text != to_string(Peer::kMpi)) throw UsageError("--peer {}: choose mpi, nccl or none", text);
  if (on_gpus)
    throw UsageError("--peer mpi: its calls take memory of the host; with --device cuda choose nccl or none");
  if (run.threads)
    throw UsageError("--peer mpi: MPI's members are ranks; leave --members threads out to compare with it");
  return Peer::kMpi;
}

RunOptions parse_run(const GivenOptions& given) {
  RunOptions run = parse_report(given);
  run.dtype = parse_value("--dtype", [&] { return parse_dtype(given.text("dtype", "float32")); });
  if (parse_choice("--members", given.text("members", "ranks"), "threads", "ranks")) {
    run.threads = parse_count("--threads", given.text("threads", "2"), kMostThreads);
  } else {
    given.refuse({"threads"}, "only --members threads has threads");
  }
  if (!parse_choice("--device", given.text("device", "cpu"), "cpu", "cuda")) {
    run.device = DeviceKind::kCuda;
    given.refuse({"buffers", "huge-pages"}, "tensors are in the memory of GPUs");
  }
  run.peer = parse_peer(given, run);
  if (!parse_choice("--buffers", given.text("buffers", "heap"), "heap", "private")) {
    run.memory = MemoryKind::kPrivate;
  } else if (run.peer == Peer::kNone) {
    given.refuse({"huge-pages"},
                 "only ordinary memory takes the advice, and there is neither a peer nor --buffers private");
  }
  run.huge_pages = parse_choice("--huge-pages", given.text("huge-pages", "on"), "on", "off");
  run.reproducible = parse_choice("--reproducible", given.text("reproducible", "no"), "yes", "no");
  return run;
}

bool parse_in_place(const GivenOptions& given, const Collective& collective) {
  if (!given.has("in-place")) return collective.in_place_by_default;
  const bool in_place = parse_choice("--in-place", given.text("in-place"), "yes", "no");
  if (in_place && collective.placement == Placement::kOutOfPlaceOnly) {
    throw UsageError("--in-place yes: {} cannot work in place; leave it out", collective.command);
  }
  if (!in_place && collective.placement == Placement::kInPlaceOnly) {
    throw UsageError("--in-place no: {} always works in place; leave it out", collective.command);
  }
  return in_place;
}

SweepOptions parse_sweep(const GivenOptions& given, const Collective& collective, const RunOptions& run) {
  constexpr int kMostIterations = 1000000;
  SweepOptions sweep;
  sweep.collective = &collective;
  if (!collective.moves_data()) {
    given.refuse({"sizes", "dtype", "in-place", "inputs", "buffers", "huge-pages", "device"},
                 fmt::format("{} moves no data", collective.command));
  }
  if (!collective.reduces)
    given.refuse({"op", "reproducible"}, fmt::format("{} combines nothing", collective.command));
  if (collective.moves_data()) sweep.sizes = parse_size_range(given.text("sizes", "4:64M"));
  sweep.op = parse_value("--op", [&] { return parse_reduce_op(given.text("op", "sum")); });
  if (collective.reduces) {
    parse_value("--op", [&] {
      require_legal(sweep.op, run.dtype);
      return 0;
    });
  }
  sweep.in_place = parse_in_place(given, collective);
  const bool rewritten = parse_choice("--inputs", given.text("inputs", "rewritten"),
                                      to_string(Inputs::kRewritten), to_string(Inputs::kKept));
  sweep.harness.inputs = rewritten ? Inputs::kRewritten : Inputs::kKept;
  sweep.harness.check = parse_check(given);
  sweep.harness.loops = given.loops(run.fail_below ? 1 : 5);
  constexpr int kMostRounds = 99;
  sweep.rounds = given.count("rounds", run.fail_below ? kTestedRounds : 1, kMostRounds);
  if (given.has("iterations")) {
    sweep.harness.iterations = parse_count("--iterations", given.text("iterations"), kMostIterations);
  }
  return sweep;
}

ProfileOptions parse_profile(const GivenOptions& given, const RunOptions& run) {
  constexpr int kMostSteps = 100000;
  if (!given.has("model"))
    throw UsageError("profile: no model given; write --model FILE, a CSV with the columns name,elements");
  parse_value("--dtype", [&] {
    require_legal(ReduceOp::kSum, run.dtype);
    return 0;
  });
  ProfileOptions profile;
  profile.model = given.text("model");
  if (given.has("compute-ms"))
    profile.compute_ms = parse_milliseconds("--compute-ms", given.text("compute-ms"));
  profile.steps = parse_count("--steps", given.text("steps", "5"), kMostSteps);
  profile.check = parse_check(given);
  return profile;
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments,
                               std::span<const Collective* const> collectives) {
  if (arguments.empty()) {
    throw UsageError("no collective given: choose one of {}, for example: mpirun -n 2 cohort-bench {}",
                     names_of(collectives), collectives.front()->command);
  }
  if (arguments.front() == "--help" || arguments.front() == "-h")
    return {.task = HelpText{general_help(collectives)}};
  if (arguments.front() == "--version") return {.task = HelpText{"cohort-bench " COHORT_VERSION "\n"}};
  if (const Command* command = find_command(arguments.front())) {
    const GivenOptions given(arguments, command->options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on(*command)}};
    return {.run = parse_report(given), .task = CommandTask{command, command->parse(given)}};
  }
  if (arguments.front() == kProfile) {
    const GivenOptions given(arguments, profile_options().add(common_options()).add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_profile()}};
    const RunOptions run = parse_run(given);
    return {.run = run, .task = parse_profile(given, run)};
  }
  const Collective& collective = find_collective(arguments.front(), collectives);
  const GivenOptions given(arguments, sweep_options().add(common_options()).add(report_options()));
  if (given.has("help")) return {.task = HelpText{help_on(collective)}};
  const RunOptions run = parse_run(given);
  return {.run = run, .task = parse_sweep(given, collective, run)};
}

}  // namespace cohort::bench
