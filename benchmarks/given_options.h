// The options that were given to a command, by name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include <cohort/base/error.h>

#include "errors.h"
#include "run_context.h"

namespace cohort::bench {

using OptionsDescription = boost::program_options::options_description;

/// Options of this name, as the help heads them.
[[nodiscard]] OptionsDescription make_options(const std::string& heading);
/// Adds an option that takes `value`.
void add_option(OptionsDescription& options, const char* name, const char* value, const char* text);
/// The one of how often things are measured.
void add_loops(OptionsDescription& options, const char* text);

class GivenOptions {
 public:
  /// `arguments` begin with the command. @throws UsageError for what is none of the options.
  GivenOptions(const std::vector<std::string>& arguments, const OptionsDescription& options);

  [[nodiscard]] bool has(const char* option) const { return values_.count(option) > 0; }
  [[nodiscard]] std::string text(const char* option, const char* otherwise = "") const;
  /// Of an option that may be given several times.
  [[nodiscard]] std::vector<std::string> texts(const char* option) const;
  /// A whole number from 1 to `most`. @throws UsageError for anything else.
  [[nodiscard]] int count(const char* option, int otherwise, int most) const;
  [[nodiscard]] int loops(int otherwise = 5) const;

  /// For options that would do nothing. @throws UsageError if one of them is given.
  void refuse(std::initializer_list<const char*> options, std::string_view why) const;

 private:
  std::string command_;
  boost::program_options::variables_map values_;
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

/// --baseline and --fail-below, of what reports a sweep.
void add_baseline_options(OptionsDescription& options);

/// Where the report goes, and in which form: options of all commands.
[[nodiscard]] OptionsDescription report_options();
/// And the baselines, where the command has such options.
[[nodiscard]] RunOptions parse_report(const GivenOptions& given);

}  // namespace cohort::bench
