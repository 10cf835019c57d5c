// cohort-supervise: starts the tasks of a cluster on this host, and looks after them.
#include <charconv>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/environment.h>
#include <cohort/base/error.h>
#include <cohort/base/version.h>

#include "cluster/launcher.h"
#include "hosts.h"
#include "job.h"
#include "supervisor.h"

namespace cohort::supervise {
namespace {

struct Options {
  std::string roles = {};
  int restarts = 0;
  int copies = 2;                         ///< of the variables of each `ps`, where there are several hosts
  std::vector<std::string> program = {};  ///< and its arguments
};

constexpr std::string_view kHelp =
    R"(Usage: cohort-supervise --roles LIST [OPTION ...] [--] PROGRAM [ARGUMENT ...]

Starts the tasks of a cluster on this host, and looks after them; `cohort-run --roles` calls it.

Options:
  --roles LIST    jobs and their numbers of tasks, as in chief=1,worker=2,ps=2; jobs are chief,
                  worker, ps and evaluator
  --restarts N    start each task that a signal has ended, for example a crash, up to N times again;
                  default: 0
  --copies 1|2    over several hosts, keep that many copies of the variables of each ps on
                  another host than the first, each on a host of its own; default: 2
  --version       print the version
  -h, --help      print this text

Each task is a process that runs PROGRAM; TaskClusterResolver tells it which task it is. The first one,
the chief, or worker 0 where there is none, reads standard input unless that is a terminal. Under mpirun
or srun, with one cohort-supervise per host, the tasks are spread over the hosts.

The second copy is that of a standby: another process of the same program, as the same task. It goes on
as the ps when that one's host is lost, or its process is killed and not started again.

The job is over when all tasks but `ps` have ended; these then have 5 s to do so, too. It fails at once
when the chief does. Signals are passed on to all tasks but `ps`. Nothing of the job outlives this process.

Exit status: the chief's, or else that of the first task that ended with another than 0; 1 if the job
could not be started; 2 for wrong usage.
)";

/// -1 unless it is a whole number from 0.
int number_in(const std::string& text) {
  int number = -1;
  const char* last = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), last, number);
  return status == std::errc() && stopped == last ? number : -1;
}

int restarts_in(const std::string& text) {
  const int restarts = number_in(text);
  if (restarts >= 0) return restarts;
  throw InvalidArgument("--restarts '{}' is no whole number from 0", text);
}

int copies_in(const std::string& text) {
  const int copies = number_in(text);
  if (copies == 1 || copies == 2) return copies;
  throw InvalidArgument("--copies '{}' is neither 1 nor 2", text);
}

/// Nothing where the command line asks for `answer` alone, as --help does.
/// @throws InvalidArgument for one that makes no sense.
std::optional<Options> parse_options(const std::vector<std::string>& arguments, std::string& answer) {
  Options options;
  std::size_t next = 0;
  const auto value_of = [&](const std::string& option) -> const std::string& {
    if (next + 1 >= arguments.size()) throw InvalidArgument("{} needs a value", option);
    return arguments[++next];
  };
  for (; next < arguments.size(); ++next) {
    const std::string& argument = arguments[next];
    if (argument == "--help" || argument == "-h" || argument == "--version") {
      answer = argument == "--version" ? "cohort-supervise " COHORT_VERSION "\n" : std::string(kHelp);
      return std::nullopt;
    }
    if (argument == "--roles") {
      options.roles = value_of(argument);
    } else if (argument == "--restarts") {
      options.restarts = restarts_in(value_of(argument));
    } else if (argument == "--copies") {
      options.copies = copies_in(value_of(argument));
    } else if (argument == "--") {
      ++next;
      break;
    } else if (argument.starts_with("-")) {
      throw InvalidArgument("there is no option {}", argument);
    } else {
      break;
    }
  }
  options.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  if (options.roles.empty()) throw InvalidArgument("--roles is missing");
  if (options.program.empty()) throw InvalidArgument("no program is given");
  return options;
}

}  // namespace
}  // namespace cohort::supervise

namespace {

namespace supervise = cohort::supervise;

enum ExitStatus { kFailure = 1, kUsage = 2 };

int supervise_as(supervise::Options options, int& argc, char**& argv) {
  const std::vector<cohort::ClusterTask> tasks = supervise::tasks_of_roles(options.roles);
  static_cast<void>(supervise::Job(tasks));  // throws before others are waited for
  supervise::SupervisorOptions job;
  job.tasks = tasks;
  job.restarts = options.restarts;
  const bool has_launcher = cohort::launcher_place(cohort::process_environment()).has_value();
  job.command = {std::move(options.program), supervise::variables_of_tasks(has_launcher)};
  if (!has_launcher) return supervise::Supervisor(std::move(job), supervise::team_of_one(tasks)).run();
  supervise::Team team = supervise::meet(argc, argv, tasks, options.copies);
  const bool leads = team.host == 0;
  const int status = supervise::Supervisor(std::move(job), std::move(team)).run();
  // Launchers that go on without a lost process do not pass the status on; cohort-run reads it here.
  if (leads) supervise::say(fmt::format("the job has ended with status {}", status));
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string answer;
    std::optional<supervise::Options> options = supervise::parse_options({argv + 1, argv + argc}, answer);
    if (options) return supervise_as(std::move(*options), argc, argv);
    std::cout << answer;
    return 0;
  } catch (const cohort::InvalidArgument& error) {
    // Under a launcher all say the same.
    if (cohort::is_first_rank()) supervise::say(fmt::format("{}; see cohort-supervise --help", error.what()));
    return kUsage;
  } catch (const cohort::Error& error) {
    supervise::say(error.what());
    return kFailure;
  }
}
