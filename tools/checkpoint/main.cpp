// cohort-checkpoint: looks at checkpoints, verifies, compares, exports and imports them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/version.h>

#include "base/explanation.h"
#include "command.h"

namespace cohort::tool {
namespace {

constexpr int kWrongUsage = 2;

constexpr std::string_view kHelp =
    R"(Usage: cohort-checkpoint COMMAND [ARGUMENT ...]

Looks at checkpoints, verifies, compares, exports and imports them.

Commands:
  list FOLDER         the checkpoints in a folder
  show CHECKPOINT     the values of a checkpoint, as checkpoints/step-100
  verify PATH         reads every byte of a checkpoint, or of all in a folder
  diff A B            compares the values of two checkpoints
  export CHECKPOINT   writes values, whole, to a .safetensors or .npz
  import FILE...      makes a checkpoint of safetensors files; FILE: a .safetensors, an index of
                      several (.json), or a folder with either
  advise              how often to save, to lose the least time

Options:
  --version           print the version
  -h, --help          print this text

Options of export:
  --to FILE           what is written
  --max-shard-size SIZE
                      as 5GB or 500MiB: what is larger becomes several files
                      NAME-00001-of-00002.safetensors and NAME.safetensors.index.json

Options of import:
  --to FOLDER         where the checkpoint FOLDER/step-N is made
  --step N            its step; default: 0

Options of export and import, of which all but --map and --dtype may be given several times:
  --rename OLD=NEW    what a tensor is called afterwards; `*` stands for the same text in both
  --map FILE          the same for many: a JSON object {"OLD": "NEW", ...}
  --transpose NAME    a matrix is transposed; NAME may have `*`, and be the old or the new one
  --dtype DTYPE       floating elements are converted, for example to float32
  --only NAME         this tensor, by its old name, and no others; NAME may have `*`
  --skip NAME         not this tensor; NAME likewise

Options of advise, which takes --save-seconds or a checkpoint:
  --save-seconds S    a save keeps the training waiting for so long; given a checkpoint instead, the
                      tool measures how long this process takes to write as many bytes beside it
  --mtbf HOURS        the job fails so often on average, or with --nodes each node does
  --nodes N           nodes of the job
  --restart-seconds R
                      what passes until it trains again

Exit status: 0; 1 if a checkpoint is damaged or cannot be read, or there is none; 2 for wrong usage.
Of diff: 0 if all values are equal, 1 if not, and 2 if that cannot be told, or for wrong usage.
)";

struct Command {
  std::string_view name;
  int (*run)(const Arguments&);
  std::size_t least_paths;
  std::size_t most_paths;
  std::set<std::string_view> options = {};
  std::set<std::string_view> repeatable_options = {};
  int on_error = kDamaged;
};

const std::set<std::string_view> kOfTensors{"--rename", "--transpose", "--only", "--skip"};

const std::array kCommands{
    Command{"list", &list, 1, 1},
    Command{"show", &show, 1, 1},
    Command{"verify", &verify, 1, 1},
    Command{.name = "diff", .run = &diff, .least_paths = 2, .most_paths = 2, .on_error = 2},
    Command{"export", &export_values, 1, 1, {"--to", "--max-shard-size", "--map", "--dtype"}, kOfTensors},
    Command{"import", &import_tensors, 1, 10'000, {"--to", "--step", "--map", "--dtype"}, kOfTensors},
    Command{"advise", &advise, 0, 1, {"--save-seconds", "--mtbf", "--nodes", "--restart-seconds"}},
};

/// @throws WrongUse for what the command does not take.
Arguments parse(const Command& command, const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      arguments.paths.push_back(words[i]);
      continue;
    }
    const bool is_repeatable = command.repeatable_options.contains(words[i]);
    if (!is_repeatable && !command.options.contains(words[i]))
      throw WrongUse(fmt::format("{} has no option '{}'", command.name, words[i]));
    if (i + 1 == words.size()) throw WrongUse(fmt::format("'{}' needs a value", words[i]));
    auto& values = arguments.options[words[i]];
    values.push_back(words[i + 1]);
    if (values.size() > 1 && !is_repeatable) throw WrongUse(fmt::format("'{}' is given twice", words[i]));
    ++i;
  }
  const std::size_t paths = arguments.paths.size();
  if (paths < command.least_paths || paths > command.most_paths)
    throw WrongUse(fmt::format("{} does not take {} paths", command.name, paths));
  return arguments;
}

int refuse(std::string_view what) {
  fmt::print(stderr, "cohort-checkpoint: {}; see cohort-checkpoint --help\n", what);
  return kWrongUsage;
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) return refuse("no command is given");
  if (words[0] == "--version") {
    fmt::print("cohort-checkpoint " COHORT_VERSION "\n");
    return kSound;
  }
  // One text for all commands.
  if (std::ranges::any_of(words, [](const auto& word) { return word == "--help" || word == "-h"; })) {
    fmt::print("{}", kHelp);
    return kSound;
  }
  const auto* const command = std::ranges::find(kCommands, words[0], &Command::name);
  if (command == kCommands.end()) return refuse(fmt::format("there is no command '{}'", words[0]));
  try {
    return command->run(parse(*command, {words.begin() + 1, words.end()}));
  } catch (const WrongUse& error) {
    return refuse(error.what());
  } catch (const Error& error) {
    fmt::print(stderr, "cohort-checkpoint: {}{}\n", error.what(), where_explained(error.code()));
    return command->on_error;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "cohort-checkpoint: out of memory\n");
    return command->on_error;
  }
}

}  // namespace

std::optional<std::string> Arguments::text(const std::string& option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::nullopt : std::optional(found->second.front());
}

std::vector<std::string> Arguments::all(const std::string& option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::vector<std::string>() : found->second;
}

std::optional<double> Arguments::number(const std::string& option) const {
  const auto given = text(option);
  if (!given) return std::nullopt;
  double value = 0;
  const char* const last = given->data() + given->size();
  const auto [end, status] = std::from_chars(given->data(), last, value);
  if (status != std::errc() || end != last || !(value > 0) || std::isinf(value))
    throw WrongUse(fmt::format("{} is '{}', and must be a number above 0", option, *given));
  return value;
}

std::uint64_t bytes_of(const checkpoint::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) bytes += file.size;
  return bytes;
}

}  // namespace cohort::tool

int main(int argc, char** argv) { return cohort::tool::run({argv + 1, argv + argc}); }
