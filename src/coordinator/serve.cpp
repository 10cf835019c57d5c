#include <cohort/coordinator/serve.h>

#include <algorithm>

#include "coordinator/worker_part.h"
#include "remote/introduction.h"
#include "server/server_task.h"

namespace cohort {

int serve(const ParameterServerStrategy& strategy) {
  if (strategy.task().type == "ps") {
    server::ServerTask(strategy.place(), strategy.initial_values_timeout_seconds()).run();
    return 0;
  }
  if (strategy.task().type != "worker")
    throw WrongContext("serve() is for workers and parameter servers, but this task is {}",
                       remote::name_of(strategy.task()));
  const auto workers = std::ranges::count_if(strategy.place().addresses, [](const remote::Address& address) {
    return address.task.type == "worker";
  });
  coordinator::WorkerPart worker(strategy.variables(), strategy.extended(),
                                 {.num_input_pipelines = static_cast<int>(workers),
                                  .input_pipeline_id = strategy.task().id,
                                  .num_replicas_in_sync = strategy.num_replicas_in_sync()});
  worker.run();
  return 0;
}

}  // namespace cohort
