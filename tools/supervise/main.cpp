// cohort-supervise: starts the tasks of a cluster on this host, and looks after them.
#include <iostream>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/environment.h>
#include <cohort/base/error.h>

#include "cluster/launcher_place.h"
#include "job.h"
#include "options.h"
#include "say.h"
#include "supervisor.h"
#include "team.h"

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
    if (cohort::is_first_rank()) supervise::say(fmt::format("{}; see --help", error.what()));
    return kUsage;
  } catch (const cohort::Error& error) {
    supervise::say(error.what());
    return kFailure;
  }
}
