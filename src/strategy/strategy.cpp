#include <cohort/strategy/strategy.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include <fmt/format.h>

#include <cohort/base/log.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/strategy/collective_all_reduce.h>
#include <cohort/strategy/replica_context.h>
#include <cohort/strategy/strategy_extended.h>

#include "device/device_runtime.h"
#include "device/machine.h"
#include "device_route.h"
#include "leaf_reduction.h"
#include "replica_run.h"

namespace cohort {
namespace {

thread_local std::optional<StrategyScope> scope_of_set_strategy;

}  // namespace

StrategyScope::StrategyScope(StrategyExtended& extended) : extended_(extended.shared_from_this()) {
  const ContextMode& mode = current_mode();
  if (extended.is_default()) {
    if (mode.strategy == nullptr) return;
    throw WrongContext("the scope of the default strategy must not nest inside the scope of {}",
                       mode.strategy->strategy_name());
  }
  extended.require_cross_replica("scope");
  scope_.emplace(ContextMode::cross_replica(&extended));
}

Strategy get_strategy() {
  VariableOwner* active = current_mode().strategy;
  if (active == nullptr) return Strategy(StrategyExtended::default_strategy());
  // Only strategies enter contexts, so the owner is one.
  return Strategy(static_cast<StrategyExtended*>(active)->shared_from_this());
}

void set_strategy(const std::optional<Strategy>& strategy) {
  const bool is_outermost =
      scope_of_set_strategy ? scope_of_set_strategy->is_innermost() : is_outside_scopes();
  if (!is_outermost || VariableCreatorScope::innermost() != nullptr) {
    throw WrongContext(
        "set_strategy was called inside a scope, which would end in another strategy than it began in; call "
        "it where no scope of a strategy, device or variable creator is open, and outside of run()");
  }
  scope_of_set_strategy.reset();
  if (strategy && !strategy->extended().is_default()) scope_of_set_strategy.emplace(strategy->extended());
}

bool has_strategy() { return current_mode().strategy != nullptr; }

ReplicaContext* get_replica_context() {
  const ContextMode& mode = current_mode();
  return mode.kind == ContextKind::kDefault ? &ReplicaContext::default_replica() : mode.replica;
}

bool in_cross_replica_context() {
  const ContextKind kind = current_mode().kind;
  return kind == ContextKind::kCrossReplica || kind == ContextKind::kUpdate;
}

std::optional<int> get_update_replica_id() {
  const ContextMode& mode = current_mode();
  return mode.kind == ContextKind::kUpdate ? std::optional(mode.local_replica) : std::nullopt;
}

namespace {

void require_device(Device device, const std::string& strategy) {
  try {
    require_exists(device);
  } catch (const Unavailable& error) {
    throw Unavailable("{}: {}", strategy, error.what());
  }
}

/// Once per process: every strategy would log the same.
void say_once_that_cores_are_shared(const std::string& strategy, int devices, std::size_t cores) {
  static std::once_flag said;
  std::call_once(said, [&] {
    logging::warning(
        "{}: {} CPU devices on {} core{}: replicas take turns and run slower; COHORT_LOG_LEVEL=error "
        "silences "
        "warnings",
        strategy, devices, cores, cores == 1 ? "" : "s");
  });
}

}  // namespace

std::shared_ptr<StrategyExtended> StrategyExtended::make(StrategyLayout layout) {
  return std::shared_ptr<StrategyExtended>(new StrategyExtended(std::move(layout)));
}

const std::shared_ptr<StrategyExtended>& StrategyExtended::default_strategy() {
  static const std::shared_ptr<StrategyExtended> instance = make(
      {.name = "the default strategy", .devices = {Device()}, .parameter_device = Device(), .connect = [] {
         return make_thread_communicators(1);
       }});
  return instance;
}

StrategyExtended::StrategyExtended(StrategyLayout layout) : layout_(std::move(layout)) {
  if (layout_.devices.empty()) throw InvalidArgument("{} needs at least one device", layout_.name);
  for (auto device = layout_.devices.begin(); device != layout_.devices.end(); ++device) {
    if (std::find(layout_.devices.begin(), device, *device) != device) {
      throw InvalidArgument("{}: device {} is named twice; each replica needs its own", layout_.name,
                            to_string(*device));
    }
  }
  parameter_devices_ = layout_.parameter_device ? std::vector{*layout_.parameter_device} : layout_.devices;
  std::vector<std::unique_ptr<Communicator>> communicators = layout_.connect();
  COHORT_CHECK(communicators.size() == layout_.devices.size());
  route_ = std::make_unique<const DeviceRoute>(layout_.name, layout_.bootstrap, layout_.devices,
                                               communicators.front()->options().implementation);
  for (const Device device : parameter_devices_) require_device(device, layout_.name);
  take_communicators(route_->connected(std::move(communicators)));
  if (layout_.connect_workers) workers_communicator_ = route_->connected(layout_.connect_workers());
  COHORT_CHECK(workers_communicator().size() == workers() || workers() == 1);
  cross_device_ops_ = layout_.cross_device_ops;
  if (cross_device_ops_ == nullptr) {
    cross_device_ops_ = workers() > 1 ? std::make_shared<CollectiveAllReduce>(workers_communicator())
                                      : std::make_shared<CollectiveAllReduce>();
  }
}

StrategyExtended::~StrategyExtended() = default;

/// Reducers keep state of their communicators, so they are replaced together.
void StrategyExtended::take_communicators(std::vector<std::unique_ptr<Communicator>> communicators) {
  reducers_.clear();
  communicators_ = std::move(communicators);
  for (std::size_t i = 0; i < communicators_.size(); ++i)
    reducers_.push_back(std::make_unique<LeafReducer>());
}

void StrategyExtended::require_cross_replica(const char* what) const {
  const ContextMode& mode = current_mode();
  if (mode.kind == ContextKind::kReplica) {
    throw WrongContext(
        "{} needs a cross-replica context, but this code is inside a replica function; use "
        "merge_call, or the functions of ReplicaContext such as all_reduce and all_gather",
        what);
  }
  if (mode.strategy == nullptr || mode.strategy == this) return;
  throw WrongContext("{} of {} while {} is active: mixing different strategies", what, layout_.name,
                     mode.strategy->strategy_name());
}

void StrategyExtended::require_chosen(const char* what) const {
  if (!is_default()) return;
  throw WrongContext(
      "{}: no strategy is active, so no devices were chosen; make a strategy, for example "
      "OneDeviceStrategy, and ask inside its scope()",
      what);
}

void StrategyExtended::abort_workers(const std::exception_ptr& error) {
  if (workers() == 1) return;
  const auto first = static_cast<std::size_t>(first_replica_id());
  const std::string& host = communicator(0).members()[first].host;
  const std::string who = fmt::format("worker {} (host {})", layout_.worker, host);
  const Aborted of_replicas = failure_for_others(who, {"", first_replica_id(), host}, error);
  for (const auto& communicator : communicators_) communicator->abort(of_replicas);
  if (workers_communicator_ != nullptr)
    workers_communicator_->abort(failure_for_others(who, {"", layout_.worker, host}, error));
}

void StrategyExtended::abort_replicas(int local_replica, const std::exception_ptr& error) {
  if (num_replicas_in_sync() == 1) return;
  replicas_aborted_ = true;
  const auto local = static_cast<std::size_t>(local_replica);
  const int replica = first_replica_id() + local_replica;
  const std::string& host = communicator(0).members()[static_cast<std::size_t>(replica)].host;
  // A worker is named in one form, whether it has failed in a replica or elsewhere.
  const std::string who =
      workers() == 1 ? replica_name(local)
                     : fmt::format("worker {} (host {}): {}", layout_.worker, host, replica_name(local));
  communicator(local_replica).abort(failure_for_others(who, {"", replica, host}, error));
}

void StrategyExtended::call_for_each_replica(const std::function<void(ReplicaContext&)>& body) {
  require_cross_replica("run");
  if (local_replicas() == 1) return run_inline(body);
  run_concurrently(body);
}

void StrategyExtended::run_inline(const std::function<void(ReplicaContext&)>& body) {
  if (is_default()) {
    // Outside any scope, the caller is the replica already; inside a merge it becomes the replica again.
    if (current_mode().kind == ContextKind::kDefault) return body(ReplicaContext::default_replica());
    const ContextScope scope({.device = current_mode().device});
    return body(ReplicaContext::default_replica());
  }
  LoneMergePoint merge_point(this);
  ReplicaContext replica(*this, 0, merge_point);
  const ContextScope scope({ContextKind::kReplica, this, &replica, 0, layout_.devices.front(), &merge_point});
  const EnteredDevice entered(layout_.devices.front());
  // The other workers may wait for this replica in a collective, and must not take a later call for it.
  or_abort_workers([&] { body(replica); });
}

std::unique_ptr<ReplicaTeam> StrategyExtended::make_team() const {
  const std::vector<Core> cores = allowed_cores();
  const bool is_first_on_node = layout_.bootstrap == nullptr || layout_.bootstrap->self().local_rank == 0;
  if (local_replicas() > std::ssize(cores) && is_first_on_node)
    say_once_that_cores_are_shared(layout_.name, local_replicas(), cores.size());
  return std::make_unique<ReplicaTeam>(split_cores(cores, local_replicas()));
}

void StrategyExtended::run_concurrently(const std::function<void(ReplicaContext&)>& body) {
  // A merge function may call run again, while the threads of the outer run are parked.
  if (teams_.size() == depth_) teams_.push_back(make_team());
  ReplicaRun run(*this, body, *teams_[depth_]);
  ++depth_;
  std::exception_ptr error;
  try {
    run.execute();
  } catch (...) {
    error = std::current_exception();
  }
  --depth_;
  // All replicas have returned; communicators that a replica has left early can no longer be used. With
  // several workers there can be no new ones, since the state of the others is not known.
  const bool left = replicas_aborted_.exchange(false) || error != nullptr;
  if (left && workers() == 1) take_communicators(route_->connected(layout_.connect()));
  if (error == nullptr) return;
  abort_workers(error);
  std::rethrow_exception(error);
}

}  // namespace cohort
