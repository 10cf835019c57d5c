#include "command_line.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/version.h>

#include "command_help.h"
#include "errors.h"
#include "given_options.h"
#include "option_values.h"

namespace cohort::bench {
namespace {

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
  sweep.harness.loops = given.loops();
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
