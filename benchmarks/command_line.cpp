#include "command_line.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <boost/program_options.hpp>

#include "usage_error.h"

namespace cohort::bench {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options", 108);
  auto add = options.add_options();
  add("sizes", po::value<std::string>()->default_value("4:64M")->value_name("MIN:MAX"),
      "bytes of a member's largest buffer, in steps of 4; or one size; K, M, G: powers of 1024");
  add("dtype", po::value<std::string>()->default_value("float32")->value_name("NAME"),
      "type of the elements");
  add("op", po::value<std::string>()->default_value("sum")->value_name("NAME"),
      "sum, mean, min, max or prod");
  add("inputs", po::value<std::string>()->default_value("rewritten")->value_name("HOW"),
      "rewritten before each call, as in training, or kept, as other benchmarks do, which flatters what "
      "reads "
      "a peer's memory");
  add("iterations", po::value<std::string>()->value_name("N"),
      "timed calls per size and library; default: what fits into half a second, 10 to 10000");
  add("check", "compare every element with the exact result, outside the timer (default)");
  add("no-check", "do not");
  add("format", po::value<std::string>()->default_value("table")->value_name("NAME"), "table, csv or json");
  add("output", po::value<std::string>()->value_name("FILE"),
      "write the report there; the table is printed as well");
  add("help,h", "print this text");
  return options;
}

std::string names_of(std::span<const Collective* const> collectives) {
  std::string names;
  for (const Collective* collective : collectives) {
    if (!names.empty()) names += ", ";
    names += collective->command;
  }
  return names;
}

std::string general_help(std::span<const Collective* const> collectives) {
  std::ostringstream text;
  text << "Measures a collective of Cohort and, in turns with it, the same one of MPI.\n\n"
          "  mpirun -n N cohort-bench COLLECTIVE [options]\n\nCollectives:\n";
  for (const Collective* collective : collectives) {
    text << fmt::format("  {:<12}  {}\n", collective->command, collective->text);
  }
  text << "\n" << make_options();
  text
      << "\nTimes are of the slowest member of each call, in microseconds; GB is 1e9 bytes. The exit status\n"
         "is 0, 1 when an element was wrong or Cohort failed, 2 for a mistake on the command line.\n";
  return text.str();
}

std::string help_on(const Collective& collective) {
  std::ostringstream text;
  text << fmt::format("{}: {}; compared with {}.\n\n  mpirun -n N cohort-bench {} [options]\n\n",
                      collective.command, collective.text, collective.peer, collective.command);
  text << make_options();
  return text.str();
}

const Collective& find_collective(const std::string& command,
                                  std::span<const Collective* const> collectives) {
  const auto found = std::find_if(collectives.begin(), collectives.end(), [&](const Collective* collective) {
    return collective->command == command;
  });
  if (found == collectives.end()) {
    throw UsageError("unknown collective '{}': choose one of {}, or see cohort-bench --help", command,
                     names_of(collectives));
  }
  return **found;
}

po::variables_map parse_options(const std::vector<std::string>& arguments, const Collective& collective) {
  const po::options_description options = make_options();
  // An abbreviation that is unambiguous today may not be tomorrow.
  constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map values;
  try {
    // An empty positional description refuses stray words instead of ignoring them.
    po::store(po::command_line_parser(arguments)
                  .options(options)
                  .style(kStyle)
                  .positional(po::positional_options_description())
                  .run(),
              values);
  } catch (const po::error& error) {
    throw UsageError("{}; see cohort-bench {} --help", error.what(), collective.command);
  }
  return values;
}

/// What the library's own parsers throw, with the option's name in front.
template <class Parse>
auto parse_value(const char* option, Parse&& parse) {
  try {
    return parse();
  } catch (const InvalidArgument& error) {
    throw UsageError("{}: {}", option, error.what());
  }
}

Inputs parse_inputs(const std::string& text) {
  for (const Inputs inputs : {Inputs::kRewritten, Inputs::kKept}) {
    if (text == to_string(inputs)) return inputs;
  }
  throw UsageError("--inputs {}: choose rewritten or kept", text);
}

Format parse_format(const std::string& text) {
  for (const Format format : {Format::kTable, Format::kCsv, Format::kJson}) {
    if (text == to_string(format)) return format;
  }
  throw UsageError("--format {}: choose table, csv or json", text);
}

int parse_iterations(const std::string& text) {
  constexpr int kMost = 10'000'000;
  int iterations = 0;
  const auto [stopped, status] = std::from_chars(text.data(), text.data() + text.size(), iterations);
  if (status != std::errc() || stopped != text.data() + text.size() || iterations < 1 || iterations > kMost) {
    throw UsageError("--iterations {}: write a whole number from 1 to {}", text, kMost);
  }
  return iterations;
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments,
                               std::span<const Collective* const> collectives) {
  CommandLine result;
  if (arguments.empty()) {
    throw UsageError("no collective given: choose one of {}, for example: mpirun -n 2 cohort-bench {}",
                     names_of(collectives), collectives.front()->command);
  }
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    result.help = general_help(collectives);
    return result;
  }
  result.collective = &find_collective(arguments.front(), collectives);
  const po::variables_map values =
      parse_options({arguments.begin() + 1, arguments.end()}, *result.collective);
  if (values.count("help") > 0) {
    result.help = help_on(*result.collective);
    return result;
  }
  const auto text = [&](const char* option) { return values[option].as<std::string>(); };
  result.sizes = parse_size_range(text("sizes"));
  result.dtype = parse_value("--dtype", [&] { return parse_dtype(text("dtype")); });
  result.op = parse_value("--op", [&] { return parse_reduce_op(text("op")); });
  parse_value("--op", [&] {
    require_legal(result.op, result.dtype);
    return 0;
  });
  result.harness.inputs = parse_inputs(text("inputs"));
  if (values.count("check") > 0 && values.count("no-check") > 0) {
    throw UsageError("--check and --no-check contradict each other: give one of them");
  }
  result.harness.check = values.count("no-check") == 0;
  if (values.count("iterations") > 0) result.harness.iterations = parse_iterations(text("iterations"));
  result.format = parse_format(text("format"));
  if (values.count("output") > 0) result.output = text("output");
  return result;
}

}  // namespace cohort::bench
