#include <cohort/coordinator/serve.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/worker_part.h"
#include "remote/introduction.h"
#include "server/server_task.h"
#include "server/standby.h"

namespace cohort {

int serve(const ParameterServerStrategy& strategy) {
  if (strategy.task().type == "ps") {
    remote::TaskPlace place = strategy.place();
    server::Preparations prepared;
    if (place.standby) {
      std::optional<server::Preparations> taken_over = server::Standby(place).run();
      if (!taken_over) return 0;
      prepared = std::move(*taken_over);
      place.supervisor = -1;  // from here on this is a server without a standby
    }
    server::ServerTask(place, strategy.initial_values_timeout_seconds(), std::move(prepared)).run();
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
