#include "command_line.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <boost/program_options.hpp>

#include <cohort/base/error.h>
#include <cohort/base/version.h>

#include "command_help.h"
#include "errors.h"
#include "option_values.h"

namespace cohort::bench {
namespace {

namespace po = boost::program_options;

constexpr int kMostLoops = 1000;
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

/// The options that were given, by name.
class Given {
 public:
  Given(const std::vector<std::string>& arguments, const po::options_description& options)
      : command_(arguments.front()) {
    // An abbreviation that is unambiguous today may not be tomorrow.
    constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    try {
      // An empty positional description refuses stray words instead of ignoring them.
      po::store(po::command_line_parser({arguments.begin() + 1, arguments.end()})
                    .options(options)
                    .style(kStyle)
                    .positional(po::positional_options_description())
                    .run(),
                values_);
    } catch (const po::error& error) {
      throw UsageError("{}; see cohort-bench {} --help", error.what(), command_);
    }
  }

  [[nodiscard]] bool has(const char* option) const { return values_.count(option) > 0; }
  [[nodiscard]] std::string text(const char* option, const char* otherwise = "") const {
    return has(option) ? values_[option].as<std::string>() : otherwise;
  }

  /// For options that would do nothing.
  void refuse(std::initializer_list<const char*> options, std::string_view why) const {
    for (const char* option : options) {
      if (has(option)) throw UsageError("--{}: {}; leave it out", option, why);
    }
  }

 private:
  std::string command_;
  po::variables_map values_;
};

/// What the library's own parsers throw, with the option's name in front.
template <class Parse>
auto parse_value(std::string_view option, Parse&& parse) {
  try {
    return std::forward<Parse>(parse)();
  } catch (const InvalidArgument& error) {
    throw UsageError("{}: {}", option, error.what());
  }
}

Format parse_format(const std::string& text) {
  for (const Format format : {Format::kTable, Format::kCsv, Format::kJson}) {
    if (text == to_string(format)) return format;
  }
  throw UsageError("--format {}: choose table, csv or json", text);
}

bool parse_check(const Given& given) {
  if (given.has("check") && given.has("no-check")) {
    throw UsageError("--check and --no-check contradict each other: give one of them");
  }
  return !given.has("no-check");
}

/// Where the report goes, and in which form.
RunOptions parse_report(const Given& given) {
  RunOptions run;
  run.format = parse_format(given.text("format", "table"));
  if (given.has("output")) run.output = given.text("output");
  return run;
}

Peer parse_peer(const Given& given, const RunOptions& run) {
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

RunOptions parse_run(const Given& given) {
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

bool parse_in_place(const Given& given, const Collective& collective) {
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

SweepOptions parse_sweep(const Given& given, const Collective& collective, const RunOptions& run) {
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
  sweep.harness.loops = parse_count("--loops", given.text("loops", "5"), kMostLoops);
  if (given.has("iterations")) {
    sweep.harness.iterations = parse_count("--iterations", given.text("iterations"), kMostIterations);
  }
  return sweep;
}

ProfileOptions parse_profile(const Given& given, const RunOptions& run) {
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

InputBenchOptions parse_input(const Given& given) {
  constexpr int kMostBatch = 1 << 20;
  constexpr int kMostRecordBytes = 1 << 24;
  constexpr int kMostFileMib = 1 << 20;
  constexpr int kMostComputeUs = 10'000'000;
  constexpr int kCsvFieldBytes = 8;
  constexpr int kMostReadAhead = 1000;
  InputBenchOptions input;
  input.batch = parse_count("--batch", given.text("batch", "64"), kMostBatch);
  input.record_bytes = parse_count("--record-bytes", given.text("record-bytes", "4096"), kMostRecordBytes);
  if (input.record_bytes % kCsvFieldBytes != 0)
    throw UsageError("--record-bytes {}: write a multiple of {}", input.record_bytes, kCsvFieldBytes);
  input.file_mib = parse_count("--file-mib", given.text("file-mib", "64"), kMostFileMib);
  if (given.has("compute-us"))
    input.compute_us = parse_count("--compute-us", given.text("compute-us"), kMostComputeUs);
  if (given.text("read-ahead") == "0")
    input.read_ahead = 0;
  else
    input.read_ahead = parse_count("--read-ahead", given.text("read-ahead", "1"), kMostReadAhead);
  input.loops = parse_count("--loops", given.text("loops", "5"), kMostLoops);
  input.folder = given.text("folder");
  return input;
}

ParametersOptions parse_parameters(const Given& given) {
  constexpr int kMostTableMib = 1 << 16;
  ParametersOptions parameters;
  parameters.sizes = parse_size_range(given.text("sizes", "4:256M"));
  if (parameters.sizes.first % sizeof(float) != 0)
    throw UsageError("--sizes {}: variables are of float32; write multiples of 4", given.text("sizes"));
  parameters.table_mib = parse_count("--table-mib", given.text("table-mib", "256"), kMostTableMib);
  parameters.loops = parse_count("--loops", given.text("loops", "5"), kMostLoops);
  return parameters;
}

CheckpointBenchOptions parse_checkpoint(const Given& given) {
  constexpr int kMostMib = 1 << 20;
  constexpr int kMostSmallValues = 1 << 20;
  CheckpointBenchOptions checkpoint;
  checkpoint.mib = parse_count("--mib", given.text("mib", "1024"), kMostMib);
  checkpoint.small_values =
      parse_count("--small-values", given.text("small-values", "10000"), kMostSmallValues);
  checkpoint.loops = parse_count("--loops", given.text("loops", "5"), kMostLoops);
  checkpoint.folder = given.text("folder");
  return checkpoint;
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
  if (arguments.front() == kDispatch) {
    const Given given(arguments, dispatch_options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_dispatch()}};
    const int loops = parse_count("--loops", given.text("loops", "5"), kMostLoops);
    return {.run = parse_report(given), .task = DispatchOptions{.loops = loops}};
  }
  if (arguments.front() == kTrainer) {
    const Given given(arguments, trainer_options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_trainer()}};
    const int loops = parse_count("--loops", given.text("loops", "15"), kMostLoops);
    return {.run = parse_report(given), .task = TrainerBenchOptions{.loops = loops}};
  }
  if (arguments.front() == kInput) {
    const Given given(arguments, input_options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_input()}};
    return {.run = parse_report(given), .task = parse_input(given)};
  }
  if (arguments.front() == kCoordinator) {
    const Given given(arguments, coordinator_options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_coordinator()}};
    const int loops = parse_count("--loops", given.text("loops", "5"), kMostLoops);
    return {.run = parse_report(given), .task = CoordinatorOptions{.loops = loops}};
  }
  if (arguments.front() == kParameters) {
    const Given given(arguments, parameters_options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_parameters()}};
    return {.run = parse_report(given), .task = parse_parameters(given)};
  }
  if (arguments.front() == kCheckpoint) {
    const Given given(arguments, checkpoint_options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_checkpoint()}};
    return {.run = parse_report(given), .task = parse_checkpoint(given)};
  }
  if (arguments.front() == kShardedOptimizer) {
    const Given given(arguments, sharded_optimizer_options().add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_sharded_optimizer()}};
    return {.run = parse_report(given),
            .task = ShardedOptimizerOptions{
                .model = given.text("model", "benchmarks/models/resnet50.csv"),
                .loops = parse_count("--loops", given.text("loops", "11"), kMostLoops)}};
  }
  if (arguments.front() == kProfile) {
    const Given given(arguments, profile_options().add(common_options()).add(report_options()));
    if (given.has("help")) return {.task = HelpText{help_on_profile()}};
    const RunOptions run = parse_run(given);
    return {.run = run, .task = parse_profile(given, run)};
  }
  const Collective& collective = find_collective(arguments.front(), collectives);
  const Given given(arguments, sweep_options().add(common_options()).add(report_options()));
  if (given.has("help")) return {.task = HelpText{help_on(collective)}};
  const RunOptions run = parse_run(given);
  return {.run = run, .task = parse_sweep(given, collective, run)};
}

}  // namespace cohort::bench
