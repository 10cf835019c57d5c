#include <cohort/train/optimizers/sharded_optimizer.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/strategy/strategy.h>

#include "optimizer_share.h"
#include "replica_state.h"
#include "strategy/collective_scopes.h"

namespace cohort {
namespace {

constexpr std::uint64_t kReadsSlot = fingerprint_of("reads a slot in shares");

const Optimizer& usable(const Optimizer* optimizer) {
  if (optimizer == nullptr) throw InvalidArgument("ShardedOptimizer: give it an optimizer");
  if (optimizer->is_elementwise()) return *optimizer;
  throw Unimplemented(
      "ShardedOptimizer: this optimizer needs whole variables in a step, but here each replica updates a "
      "part "
      "of each; use the optimizer by itself");
}

std::vector<std::string> slot_names_of(const Optimizer& optimizer) {
  return {optimizer.slot_names().begin(), optimizer.slot_names().end()};
}

/// Without the list that reshape({-1}) takes.
Tensor in_a_row(const Tensor& tensor) {
  return tensor.reshape(Shape{static_cast<std::int64_t>(tensor.elements())});
}

/// CPUs share their memory.
Tensor within_reach(const Tensor& tensor, Device device) {
  return is_cpu(device) ? tensor.on_host() : tensor.to(device);
}

/// One after the other, by worker, what its replicas have of a slot of a variable.
std::vector<std::size_t> elements_of_workers(const SharePlan& plan, std::size_t variable, int workers) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(workers));
  const int of_each = plan.replicas() / workers;
  for (int replica = 0; replica < plan.replicas(); ++replica)
    for (const SharePart& part : plan.parts_of(replica))
      if (part.variable == variable)
        counts[static_cast<std::size_t>(replica / of_each)] +=
            static_cast<std::size_t>(part.end - part.begin);
  return counts;
}

/// What the workers have of a slot, one after the other.
Tensor gathered_from_workers(StrategyExtended& strategy, const Variable& variable, std::string_view slot,
                             const Tensor& own, std::span<const std::size_t> counts) {
  PurposeOf purpose(
      Fingerprint().add(kReadsSlot).add(variable.state()->number()).add(fingerprint_of(slot)).value(),
      Caller::kWorker, [&] {
        return PurposeWords{fmt::format("reads {} of {}", slot, variable.name()),
                            fmt::format("variable number {}", variable.state()->number())};
      });
  WorkersCollective collective(strategy, purpose);
  Communicator& communicator = strategy.workers_communicator();
  const auto total = static_cast<std::int64_t>(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  const Tensor all = Tensor::uninitialized({total}, own.dtype(), communicator.device());
  communicator.all_gather_uneven(own.to(communicator.device()), all, counts);
  collective.end();
  return all.on_host();
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(std::unique_ptr<Optimizer> optimizer)
    : Optimizer(usable(optimizer.get()).learning_rate(), slot_names_of(usable(optimizer.get())),
                usable(optimizer.get()).slot_beginnings_),
      optimizer_(std::move(optimizer)),
      shares_(std::make_unique<Shares>()) {
  rate_ = optimizer_->rate_;  // also where that is a schedule
  rate_by_hand_ = optimizer_->rate_by_hand_;
  set_update_options(optimizer_->update_options_);
}

ShardedOptimizer::~ShardedOptimizer() = default;

void ShardedOptimizer::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                              const StepArguments& arguments) const {
  optimizer_->update(variable, slots, gradient, arguments);
}

void ShardedOptimizer::step(const ReplicaContext& replica, const std::vector<GradientAndVariable>& gradients,
                            const std::vector<SparseGradientAndVariable>& elsewhere,
                            const ApplyOptions& options) {
  const int local_replica = current_mode().local_replica;
  const std::vector<std::size_t>* order = nullptr;
  OptimizerShare& share = replica.or_abort_replicas([&]() -> OptimizerShare& {
    const std::lock_guard lock(shares_->mutex);
    std::vector<Variable> variables;
    if (shares_->plan == nullptr || !elsewhere.empty()) {
      for (const GradientAndVariable& pair : gradients) variables.push_back(pair.variable);
      for (const SparseGradientAndVariable& pair : elsewhere) variables.push_back(pair.variable);
      shares_->begin(std::move(variables));
    }
    OptimizerShare& own = share_of(local_replica);
    const std::vector<std::size_t>& places = shares_->places_of(local_replica, gradients);
    order = &places;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      own.gradients()[places[i]] = in_a_row(within_reach(gradients[i].gradient, replica.device()));
    return own;
  });
  if (replica.num_replicas_in_sync() == 1) return step_in_share(share, nullptr, *order, options);
  PurposeOf purpose(shares_->fingerprint, Caller::kReplica, replica.device(), [this] {
    return PurposeWords{"applies gradients in shares of " + names_of(shares_->variables)};
  });
  ReplicaCollective collective(replica.strategy().extended(), local_replica, {}, purpose);
  step_in_share(share, &collective.communicator(), *order, options);
}

void ShardedOptimizer::step_in_share(OptimizerShare& share, Communicator* communicator,
                                     const std::vector<std::size_t>& places, const ApplyOptions& options) {
  const bool is_summed = options.aggregation == GradientAggregation::kNone;
  std::optional<double> examples = options.examples;
  if (examples && !is_summed) {
    // In the dtype in which the optimizer itself sums them.
    const bool is_wide = !places.empty() && shares_->variables[places.front()].dtype() == DType::kFloat64;
    examples = share.sum_examples(communicator, *examples, is_wide ? DType::kFloat64 : DType::kFloat32);
  }
  if (examples == 0.0) return share.forget_gradients();
  if (is_summed || communicator == nullptr)
    share.take_own_gradients();
  else
    share.scatter(*communicator, options.aggregation == GradientAggregation::kSumInPlace);
  if (needs_all_squares() || needs_own_squares()) share.sum_squares(communicator);
  double squares = 0;
  if (needs_all_squares())
    for (const std::size_t place : places) squares = share.add_squares(squares, place);
  const auto arguments = begin_checked_step(state_of_this_replica(), examples, squares);
  if (!arguments) return share.forget_gradients();
  const auto update = [&](std::size_t variable, const Tensor& value, std::span<const Tensor> slots,
                          const Tensor& gradient) {
    StepArguments own =
        needs_own_squares() ? clipped(share.add_squares(0, variable), *arguments) : *arguments;
    own.has_master = slot_dtype(value.dtype()) != value.dtype();
    optimizer_->update(value, slots, gradient, own);
  };
  share.update_and_gather(communicator, std::ref(update));
}

OptimizerShare& ShardedOptimizer::share_of(int local_replica) {
  return shares_->share_of(local_replica, [this](DType dtype) {
    SlotKinds kinds{.dtype = slot_dtype(dtype), .beginnings = slot_beginnings_};
    if (kinds.dtype != dtype) kinds.master = slot_names().size();
    kinds.beginnings.resize(all_slot_names(dtype).size());
    return kinds;
  });
}

bool ShardedOptimizer::has_slots(const Variable& variable) const {
  return std::ranges::find(shares_->variables, variable) != shares_->variables.end();
}

void ShardedOptimizer::swap_average(const Variable& variable) {
  const std::size_t average = all_slot_names(variable.dtype()).size() - 1;
  const std::size_t master = slot_names().size();
  const bool has_master = slot_dtype(variable.dtype()) != variable.dtype();
  const Tensor before = has_master ? read_slot(variable, master) : variable.components().front().on_host();
  const Tensor after = read_slot(variable, average);
  assign_slot(variable, average, before);
  if (has_master) assign_slot(variable, master, after);
  for (const Tensor& component : variable.components()) component.copy_from(after.cast(variable.dtype()));
}

std::size_t ShardedOptimizer::slot_bytes(int replica) const {
  const auto& shares = shares_->by_replica;
  const auto found = shares.size() == 1 ? shares.begin() : shares.find(replica);
  return found == shares.end() ? 0 : found->second->slot_bytes();
}

void ShardedOptimizer::add_slots(std::span<const Variable> variables) {
  if (variables.empty()) return;
  const std::lock_guard lock(shares_->mutex);
  shares_->begin({variables.begin(), variables.end()});
  const VariableOwner* owner = variables.front().state()->owner();
  const int first = owner == nullptr ? current_mode().local_replica : 0;
  const int end = owner == nullptr ? first + 1 : owner->local_replicas();
  for (int replica = first; replica < end; ++replica) share_of(replica);
}

Tensor ShardedOptimizer::read_slot(const Variable& variable, std::size_t slot) const {
  const std::size_t place = shares_->place_of(variable);
  StrategyExtended* const strategy = strategy_of(variable);
  const int workers = strategy == nullptr ? 1 : strategy->workers();
  const std::vector<std::size_t> counts = elements_of_workers(*shares_->plan, place, workers);
  // Parts of the local replicas, one after the other; then those of all workers.
  const DType dtype = slot_dtype(variable.dtype());
  std::vector<Tensor> own{Tensor::zeros({0}, dtype)};
  for (const auto& [replica, share] : shares_->by_replica)
    for (const auto& part : share->slot_parts(place, slot)) own.push_back(part.elements.on_host());
  Tensor all = concatenate(own, 0);
  if (workers > 1)
    all = gathered_from_workers(*strategy, variable, all_slot_names(variable.dtype()).at(slot), all, counts);

  const Tensor whole = Tensor::uninitialized({static_cast<std::int64_t>(variable.shape().elements())}, dtype);
  std::int64_t next = 0;
  for (int replica = 0; replica < shares_->plan->replicas(); ++replica) {
    for (const SharePart& part : shares_->plan->parts_of(replica)) {
      if (part.variable != place) continue;
      const std::int64_t length = part.end - part.begin;
      whole.rows(part.begin, part.end).copy_from(all.rows(next, next + length));
      next += length;
    }
  }
  return whole.reshape(variable.shape());
}

void ShardedOptimizer::assign_slot(const Variable& variable, std::size_t slot, const Tensor& value) {
  const std::size_t place = shares_->place_of(variable);
  const Tensor elements = value.reshape({-1});
  for (const auto& [replica, share] : shares_->by_replica)
    for (const auto& part : share->slot_parts(place, slot))
      part.elements.copy_from(elements.rows(part.begin, part.end));
}

}  // namespace cohort
