// cohort-info: what this copy of Cohort is and finds here. Runs with or without a launcher.
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <boost/program_options.hpp>
#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/version.h>

#include "cluster/launcher.h"
#include "facts.h"
#include "timeline.h"

namespace {

namespace po = boost::program_options;
namespace info = cohort::info;

constexpr std::string_view kHelp =
    R"(Usage: cohort-info [OPTION ...]

Says what this copy of Cohort is and finds here: version, build, devices and every setting.

Options:
  --format text|json  text (default) or json
  --version           print the version
  -h, --help          print this text

Options that ask for something else instead:
  --tuning            the figures by which the workers' collectives choose their algorithms, and where each
                      comes from; under a launcher, for all workers together
  --report-bindings   the node, cores, NUMA nodes, GPUs and networks of each worker
  --topology[=MACHINE]
                      which cores share a cache, a NUMA node, a socket; of this machine, of one that
                      'lstopo FILE.xml' wrote, or of a description, as --topology='pack:2 l3:8 core:8 pu:1'
  --mpi FILE          what libcohort-mpi.so would do for an MPI program that knows nothing of Cohort, by its
                      file, or for all programs of an MPI library, by its file; runs neither
  --explain CODE      what the code of an error means and what to do: unavailable, DataLoss, ...
  --report FILE       what the members of a communicator were doing when it failed, from a file that
                      COHORT_REPORT has named
  --job [ID]          what a running job of yours does, from any of its hosts: by Slurm's number of it, or
                      the only one here
  --watch             with --job: every second, until it ends
  --timeline FILE     how the workers of a job spent their time, from a file that COHORT_TIMELINE has named
  --svg               with --timeline: a picture of it, as SVG

Exit status: 0; 1 for failure; 2 for wrong usage, or a setting that is wrong.
)";

enum ExitStatus { kSuccess = 0, kFailure = 1, kUsage = 2 };

struct Answer {
  std::string text;
  std::vector<std::string> complaints;
  ExitStatus status = kSuccess;
};

Answer answer_usage(const std::string& complaint) {
  return {.text = {}, .complaints = {complaint + "; see cohort-info --help"}, .status = kUsage};
}

template <class Facts>
std::string render(const Facts& facts, const std::string& format) {
  return format == "json" ? info::to_json(facts) + "\n" : info::to_text(facts);
}

Answer answer_job(const std::vector<std::string>& words, bool watches, const std::string& format) {
  if (words.size() > 1)
    return answer_usage(fmt::format("--job {} {}: one job at a time", words[0], words[1]));
  const std::string job = words.empty() ? "" : words[0];
  const auto show = [&](const cohort::JobLook& look) {
    return format == "json" ? cohort::to_json(look) : cohort::to_text(look);
  };
  if (!watches) return {.text = show(info::look_at_job(job)), .complaints = {}};
  info::watch_job(job, show);
  return {};
}

Answer answer(int argc, char** argv) {
  po::options_description options;
  auto add = options.add_options();
  add("format", po::value<std::string>()->default_value("text"));
  add("tuning", "");
  add("report-bindings", "");
  add("topology", po::value<std::string>()->implicit_value(""));
  add("mpi", po::value<std::string>());
  add("explain", po::value<std::string>());
  add("report", po::value<std::string>());
  add("job", po::value<std::vector<std::string>>()->zero_tokens()->multitoken());
  add("watch", "");
  add("timeline", po::value<std::string>());
  add("svg", "");
  add("version", "");
  add("help,h", "");
  po::variables_map values;
  try {
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                  .positional(po::positional_options_description())
                  .run(),
              values);
  } catch (const po::error& error) {
    return answer_usage(error.what());
  }
  if (values.count("help") > 0) return {.text = std::string(kHelp), .complaints = {}};
  if (values.count("version") > 0) return {.text = "cohort-info " COHORT_VERSION "\n", .complaints = {}};

  const auto& format = values["format"].as<std::string>();
  if (format != "text" && format != "json") {
    return answer_usage(fmt::format("--format {}: choose text or json", format));
  }
  try {
    if (values.count("tuning") > 0)
      return {.text = render(info::gather_tuning(argc, argv), format), .complaints = {}};
    if (values.count("report-bindings") > 0)
      return {.text = render(info::gather_bindings(argc, argv), format), .complaints = {}};
    if (values.count("topology") > 0)
      return {.text = render(info::gather_topology(values["topology"].as<std::string>()), format),
              .complaints = {}};
    if (values.count("mpi") > 0)
      return {.text = render(info::gather_mpi_program(values["mpi"].as<std::string>()), format),
              .complaints = {}};
    if (values.count("explain") > 0)
      return {.text = render(info::explain(values["explain"].as<std::string>()), format), .complaints = {}};
    if (values.count("report") > 0)
      return {.text = render(info::read_report(values["report"].as<std::string>()), format),
              .complaints = {}};
    if (values.count("job") > 0)
      return answer_job(values["job"].as<std::vector<std::string>>(), values.count("watch") > 0, format);
    if (values.count("watch") > 0) return answer_usage("--watch goes with --job");
    if (values.count("timeline") > 0) {
      const info::TimelineFacts timeline = info::read_timeline(values["timeline"].as<std::string>());
      return {.text = values.count("svg") > 0 ? info::to_svg(timeline) : render(timeline, format),
              .complaints = {}};
    }
    if (values.count("svg") > 0) return answer_usage("--svg goes with --timeline");
    const std::vector<std::string> wrong = info::wrong_settings();
    return {.text = render(info::gather(), format),
            .complaints = wrong,
            .status = wrong.empty() ? kSuccess : kUsage};
  } catch (const cohort::InvalidArgument& error) {
    return {.text = {}, .complaints = {error.what()}, .status = kUsage};
  } catch (const cohort::Error& error) {
    return {.text = {}, .complaints = {error.what()}, .status = kFailure};
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Answer result = answer(argc, argv);
  // Under a launcher every rank has the same answer; only the first prints it.
  if (cohort::is_first_rank()) {
    std::cout << result.text;
    std::cout.flush();
    for (const std::string& complaint : result.complaints)
      std::cerr << "cohort-info: " << complaint << std::endl;
  }
  return result.status;
}
