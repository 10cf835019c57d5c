// The main of tests that start tasks: a test, or a task if it was given a card.
#include "task_processes.h"

#include <cstdlib>
#include <exception>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/base/config.h>
#include <cohort/coordinator/detail/function.h>
#include <cohort/coordinator/serve.h>
#include <cohort/resolvers/task_cluster_resolver.h>

#include "remote/supervised_task.h"

namespace {

/// A task with this variable stands for one with another binary: it has one function more.
void register_another_function() {
  if (std::getenv("OTHER_BINARY") != nullptr)
    static_cast<void>(cohort::coordinator::register_function({"of another binary", nullptr, nullptr}));
}

int run_task() {
  register_another_function();
  const cohort::TaskClusterResolver cluster;
  try {
    return cohort::serve(cohort::ParameterServerStrategy(cluster.place()));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", cohort::remote::name_of(cluster.place().task), error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (cohort::config().task_descriptor() >= 0) return run_task();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
