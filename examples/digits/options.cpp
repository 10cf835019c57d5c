#include "options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <boost/program_options.hpp>
#include <fmt/ranges.h>

namespace digits {
namespace {

namespace po = boost::program_options;

constexpr std::array<std::string_view, 7> kStrategies{
    "default",          "one_device", "mirrored", "central_storage", "multi_worker_mirrored",
    "parameter_server", "coordinator"};

/// The build puts the data beside the programs.
std::string default_data() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "data" / "digits.csv").string();
}

po::options_description describe(Options& options) {
  options.data = default_data();
  po::options_description description("Options");
  const auto add = [&](const char* name, auto* target, const char* argument, const std::string& text) {
    description.add_options()(name, po::value(target)->default_value(*target)->value_name(argument),
                              text.c_str());
  };
  description.add_options()("help,h", "show this text");
  add("strategy", &options.strategy, "NAME", fmt::format("one of {}", fmt::join(kStrategies, ", ")));
  add("roles", &options.roles, "LIST",
      "roles of the ranks, in rank order, as in evaluator=1,worker=3; or TF_CONFIG to take that variable's");
  add("devices", &options.devices, "L",
      "replicas in each process, for mirrored, central_storage and multi_worker_mirrored");
  add("epochs", &options.epochs, "N", "passes over the training images");
  add("batch", &options.batch, "N", "images per step, shared by all replicas");
  add("seed", &options.seed, "N", "seed of the initial weights and of the order of images");
  add("hidden", &options.hidden, "N", "hidden units");
  add("learning-rate", &options.learning_rate, "X", "step size of gradient descent");
  add("staleness", &options.staleness, "N",
      "for parameter_server: steps that a worker may be ahead of the slowest one");
  add("checkpoint", &options.checkpoint, "DIR",
      "save checkpoints in this folder, which all processes share; not on parameter servers");
  add("every", &options.every, "N", "steps from one checkpoint to the next");
  description.add_options()("resume", po::bool_switch(&options.resume),
                            "go on from the newest checkpoint, if there is one");
  add("data", &options.data, "FILE", "CSV with 64 pixels and the digit per line, or the same as .tfrecord");
  add("json", &options.json, "FILE", "write the results there (chief only)");
  return description;
}

void require(bool condition, const std::string& message) {
  if (!condition) throw UsageError(message);
}

void check(const Options& options) {
  require(std::find(kStrategies.begin(), kStrategies.end(), options.strategy) != kStrategies.end(),
          fmt::format("--strategy {} is not known; use one of {}", options.strategy,
                      fmt::join(kStrategies, ", ")));
  require(options.roles.empty() || options.strategy == "multi_worker_mirrored",
          fmt::format("--roles {} does not go with --strategy {}, which runs in one process; "
                      "use multi_worker_mirrored",
                      options.roles, options.strategy));
  require(options.devices >= 1 && options.devices <= 1024,
          fmt::format("--devices {} is out of range; use 1 to 1024", options.devices));
  const bool one_replica = options.strategy == "default" || options.strategy == "one_device";
  require(options.devices == 1 || !one_replica,
          fmt::format("--devices {} does not go with --strategy {}, which has one replica; use mirrored",
                      options.devices, options.strategy));
  require(options.epochs >= 1, fmt::format("--epochs {} is out of range; use 1 or more", options.epochs));
  require(options.batch >= 1 && options.batch <= 1'000'000'000,
          fmt::format("--batch {} is out of range; use 1 to 1000000000", options.batch));
  require(options.seed >= 0, fmt::format("--seed {} is out of range; use 0 or more", options.seed));
  require(options.hidden >= 1 && options.hidden <= 65536,
          fmt::format("--hidden {} is out of range; use 1 to 65536", options.hidden));
  require(options.staleness >= 0,
          fmt::format("--staleness {} is out of range; use 0 or more", options.staleness));
  const bool is_on_servers = options.strategy == "parameter_server" || options.strategy == "coordinator";
  require(options.checkpoint.empty() || !is_on_servers,
          fmt::format("--checkpoint does not go with --strategy {}", options.strategy));
  require(options.every >= 1, fmt::format("--every {} is out of range; use 1 or more", options.every));
  require(!options.resume || !options.checkpoint.empty(),
          "--resume needs the folder of the checkpoints; add --checkpoint DIR");
  require(std::isfinite(options.learning_rate) && options.learning_rate > 0,
          fmt::format("--learning-rate {} is not a positive number", options.learning_rate));
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  Options options;
  const po::options_description description = describe(options);
  po::variables_map values;
  try {
    // No positional arguments: a stray word is a mistake. No abbreviations either: --epoch is not --epochs.
    const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(description).style(style).positional({}).run(),
              values);
    if (values.contains("help")) return std::nullopt;
    po::notify(values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; see --help", error.what()));
  }
  check(options);
  return options;
}

std::string help_text() {
  Options options;
  std::ostringstream text;
  text << "digits: trains a small network on 1,797 images of handwritten digits, under any strategy.\n\n"
          "  mpirun -n 4 digits\n"
          "  mpirun -n 2 digits --devices 2\n"
          "  digits --strategy mirrored --devices 4\n"
          "  cohort-run --roles chief=1,worker=2,ps=1 digits --strategy coordinator\n\n"
       << describe(options);
  return text.str();
}

}  // namespace digits
