#include <cohort/server/parameter_server_strategy.h>

#include <algorithm>

#include <cohort/base/error.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/server/caching_scope.h>

#include "remote/supervised_task.h"
#include "server/client/server_variables.h"
#include "value/thread_scopes.h"

namespace cohort {

namespace {

using server::Client;
using server::ServerVariables;

int count(const remote::TaskPlace& place, std::string_view job) {
  return static_cast<int>(std::ranges::count_if(
      place.addresses, [&](const remote::Address& address) { return address.task.type == job; }));
}

/// @throws InvalidArgument naming what is missing, or the task that must not be there.
void require_roles(const remote::TaskPlace& place) {
  for (const remote::Address& address : place.addresses) {
    const ClusterTask& task = address.task;
    if (task.type == "ps" || task.type == "worker" || (task.type == "chief" && task.id == 0)) continue;
    if (task.type == "evaluator") {
      throw InvalidArgument(
          "ParameterServerStrategy: {} is in the cluster; an evaluator takes no part in it, and has a "
          "cluster of its "
          "own",
          remote::name_of(task));
    }
    throw InvalidArgument(
        "ParameterServerStrategy: {} is in the cluster, which may have one chief, workers and ps",
        remote::name_of(task));
  }
  if (count(place, "ps") == 0)
    throw InvalidArgument(
        "ParameterServerStrategy: the cluster has no ps; start it with --roles worker=2,ps=1");
  if (count(place, "worker") == 0)
    throw InvalidArgument(
        "ParameterServerStrategy: the cluster has no worker; start it with --roles worker=2,ps=1");
}

std::shared_ptr<ServerVariables> connect(const remote::TaskPlace& place,
                                         const ParameterServerOptions& options) {
  require_roles(place);
  if (options.staleness && *options.staleness < 0) {
    throw InvalidArgument(
        "ParameterServerStrategy: a staleness of {} steps; it is 0 or more, or unset for no bound",
        *options.staleness);
  }
  if (!(options.initial_values_timeout_seconds >= 0)) {
    throw InvalidArgument("ParameterServerStrategy: a timeout of {} s for initial values; use 0 for none",
                          options.initial_values_timeout_seconds);
  }
  const bool is_server = place.task.type == "ps";
  return std::make_shared<ServerVariables>(is_server ? nullptr : std::make_shared<Client>(place),
                                           place.task == server::giver_of_values(place),
                                           options.variable_partitioner);
}

StrategyLayout layout_for(const remote::TaskPlace& place, const ParameterServerOptions& options,
                          std::shared_ptr<ServerVariables> variables) {
  std::vector<Device> devices = options.devices.empty() ? std::vector<Device>{Device()} : options.devices;
  const int replicas = static_cast<int>(devices.size());
  return {.name = "ParameterServerStrategy",
          .devices = std::move(devices),
          .is_chief = place.task == server::giver_of_values(place),
          .parameter_device = Device(),
          .variable_keeper = std::move(variables),
          .connect = [replicas] { return make_thread_communicators(replicas); }};
}

}  // namespace

ParameterServerStrategy::ParameterServerStrategy(const remote::TaskPlace& place,
                                                 const ParameterServerOptions& options)
    : ParameterServerStrategy(place, options, connect(place, options)) {}

ParameterServerStrategy::ParameterServerStrategy(const remote::TaskPlace& place,
                                                 const ParameterServerOptions& options,
                                                 std::shared_ptr<ServerVariables> variables)
    : Strategy(StrategyExtended::make(layout_for(place, options, variables))),
      place_(place),
      staleness_(options.staleness),
      initial_values_timeout_(options.initial_values_timeout_seconds),
      variables_(std::move(variables)) {}

void ParameterServerStrategy::end_step() const {
  if (staleness_) variables_->client().end_step(*staleness_);
}

GradientStaleness ParameterServerStrategy::gradient_staleness() const {
  return variables_->client().gradient_staleness();
}

Tensor embedding_lookup(const Variable& variable, const Tensor& rows) {
  if (rows.shape().rank() != 1)
    throw InvalidArgument("embedding_lookup in variable '{}': {} is no list of rows", variable.name(),
                          describe(rows));
  const Tensor wanted = rows.on_host().cast(DType::kInt64);
  if (const auto* kept = dynamic_cast<const server::ServerVariable*>(variable.state().get()))
    return kept->client().read(kept->wanted(wanted));
  const Tensor value = variable.read();
  Tensor result = Tensor::uninitialized(value.shape().with(0, wanted.shape()[0]), value.dtype());
  std::int64_t place = 0;
  for (const std::int64_t row : wanted.span<std::int64_t>()) result.row(place++).copy_from(value.row(row));
  return result;
}

CachingScope::CachingScope() : cache_(std::make_unique<ReadCache>()) {
  if (thread_scopes().cache != nullptr) {
    throw WrongContext(
        "a CachingScope within another one: they do not nest; end the first, and open another to read values "
        "anew");
  }
  thread_scopes().cache = cache_.get();
}

CachingScope::~CachingScope() { thread_scopes().cache = nullptr; }

}  // namespace cohort
