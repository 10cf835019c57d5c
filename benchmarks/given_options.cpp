#include "given_options.h"

#include "option_values.h"

namespace cohort::bench {
namespace {

namespace po = boost::program_options;

constexpr unsigned kHelpColumns = 108;

Format parse_format(const std::string& text) {
  for (const Format format : {Format::kTable, Format::kCsv, Format::kJson}) {
    if (text == to_string(format)) return format;
  }
  throw UsageError("--format {}: choose table, csv or json", text);
}

}  // namespace

OptionsDescription make_options(const std::string& heading) { return {heading, kHelpColumns}; }

void add_option(OptionsDescription& options, const char* name, const char* value, const char* text) {
  // Two blanks at least stand before the text, as in other tools' help.
  options.add_options()(name, po::value<std::string>()->value_name(std::string(value) + ' '), text);
}

void add_loops(OptionsDescription& options, const char* text) { add_option(options, "loops", "N", text); }

GivenOptions::GivenOptions(const std::vector<std::string>& arguments, const OptionsDescription& options)
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

std::string GivenOptions::text(const char* option, const char* otherwise) const {
  return has(option) ? values_[option].as<std::string>() : otherwise;
}

std::vector<std::string> GivenOptions::texts(const char* option) const {
  return has(option) ? values_[option].as<std::vector<std::string>>() : std::vector<std::string>();
}

int GivenOptions::count(const char* option, int otherwise, int most) const {
  return has(option) ? parse_count(std::string("--") + option, text(option), most) : otherwise;
}

int GivenOptions::loops(int otherwise) const {
  constexpr int kMost = 1000;
  return count("loops", otherwise, kMost);
}

void GivenOptions::refuse(std::initializer_list<const char*> options, std::string_view why) const {
  for (const char* option : options) {
    if (has(option)) throw UsageError("--{}: {}; leave it out", option, why);
  }
}

void add_baseline_options(OptionsDescription& options) {
  options.add_options()(
      "baseline", po::value<std::vector<std::string>>()->value_name("FILE "),
      "compare with an earlier run: its JSON report, or its page; with several, given one by one, the "
      "one that shows the least counts");
  add_option(
      options, "fail-below", "RATIO",
      "end with 1 where a test shows that a size has less than this part of a baseline's speed, as 0.95");
}

OptionsDescription report_options() {
  OptionsDescription options = make_options("Options");
  add_option(options, "format", "table|csv|json", "default table");
  add_option(options, "output", "FILE", "write the report there; the table is printed as well");
  add_option(options, "report", "FILE", "write the report there as a page with plots, too");
  options.add_options()("help,h", "print this text");
  return options;
}

RunOptions parse_report(const GivenOptions& given) {
  RunOptions run;
  run.format = parse_format(given.text("format", "table"));
  if (given.has("output")) run.output = given.text("output");
  if (given.has("report")) run.page = given.text("report");
  run.baselines = given.texts("baseline");
  if (!given.has("fail-below")) return run;
  if (run.baselines.empty())
    throw UsageError("--fail-below: below what? Give an earlier run by --baseline FILE");
  run.fail_below = parse_part("--fail-below", given.text("fail-below"));
  return run;
}

}  // namespace cohort::bench
