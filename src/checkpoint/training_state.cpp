// The state of training in a Checkpoint: that of optimizers, as tensors, wherever slots and numbers of steps
// are kept, and numbers of which each replica has its own.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/replica_numbers.h>
#include <cohort/device/tensor_ops.h>

namespace cohort {
namespace {

bool has_owner(const Variable& variable) { return variable.state()->owner() != nullptr; }

checkpoint::NamedValue slot_of(Optimizer& optimizer, const Variable& variable, std::size_t number) {
  return {.dtype = optimizer.slot_dtype(variable.dtype()),
          .shape = [variable] { return variable.shape(); },
          .read = [&optimizer, variable, number] { return optimizer.read_slot(variable, number); },
          .restore = [&optimizer, variable,
                      number](const Tensor& saved) { optimizer.assign_slot(variable, number, saved); },
          .is_collective = optimizer.shares_slots(),
          .is_everywhere = has_owner(variable)};
}

/// The slots of the shards, as one.
checkpoint::NamedValue slot_of(Optimizer& optimizer, const ShardedVariable& variable, std::size_t number) {
  if (variable.variables().size() == 1) return slot_of(optimizer, variable.variables().front(), number);
  const auto read = [&optimizer, variable, number] {
    std::vector<Tensor> parts;
    parts.reserve(variable.variables().size());
    for (const Variable& shard : variable.variables()) parts.push_back(optimizer.read_slot(shard, number));
    return concatenate(parts, 0);
  };
  const auto restore = [&optimizer, variable, number](const Tensor& saved) {
    for (int shard = 0; shard < variable.layout().shards(); ++shard) {
      const RowRange rows = variable.layout().range(shard);
      optimizer.assign_slot(variable.variables()[static_cast<std::size_t>(shard)], number,
                            saved.rows(rows.begin, rows.end));
    }
  };
  return {.dtype = optimizer.slot_dtype(variable.dtype()),
          .shape = [variable] { return variable.shape(); },
          .read = read,
          .restore = restore,
          .is_collective = optimizer.shares_slots(),
          .is_everywhere = has_owner(variable.variables().front())};
}

std::int64_t steps_of(const Optimizer& optimizer, const Variable& variable) {
  if (!variable.state()->is_kept_elsewhere()) return optimizer.iterations();
  return variable.state()->read_slot_elsewhere(VariableState::kSteps).item<std::int64_t>();
}

/// How often the optimizer was applied to each of these. It is one number but on parameter servers, which
/// count the steps of each variable; the shards of one make the same steps.
checkpoint::NamedValue iterations_of(Optimizer& optimizer,
                                     const std::vector<std::vector<Variable>>& variables) {
  const auto count = static_cast<std::int64_t>(variables.size());
  const auto read = [&optimizer, variables] {
    std::vector<std::int64_t> iterations;
    iterations.reserve(variables.size());
    for (const auto& shards : variables) iterations.push_back(steps_of(optimizer, shards.front()));
    return Tensor::from(iterations);
  };
  const auto restore = [&optimizer, variables](const Tensor& saved) {
    const auto iterations = saved.span<std::int64_t>();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      for (const Variable& shard : variables[i])
        if (shard.state()->is_kept_elsewhere())
          shard.state()->assign_slot_elsewhere(VariableState::kSteps, Tensor::scalar(iterations[i]));
    }
    optimizer.set_iterations(*std::ranges::max_element(iterations));
  };
  return {
      .dtype = DType::kInt64, .shape = [count] { return Shape{count}; }, .read = read, .restore = restore};
}

/// A rate that was set by hand; NaN where it is that of the options, or a schedule.
checkpoint::NamedValue rate_of(Optimizer& optimizer) {
  const auto read = [&optimizer] {
    return Tensor::scalar(optimizer.rate_by_hand().value_or(std::numeric_limits<double>::quiet_NaN()));
  };
  const auto restore = [&optimizer](const Tensor& saved) {
    const auto rate = saved.item<double>();
    if (!std::isnan(rate)) optimizer.set_learning_rate(rate);
  };
  return {.dtype = DType::kFloat64, .shape = [] { return Shape(); }, .read = read, .restore = restore};
}

/// The scale, and the steps since it changed.
checkpoint::NamedValue loss_scale_of(Optimizer& optimizer) {
  const auto read = [&optimizer] {
    const auto [scale, steps] = optimizer.loss_scale_state();
    return Tensor::from({scale, static_cast<double>(steps)});
  };
  const auto restore = [&optimizer](const Tensor& saved) {
    const auto state = saved.span<double>();
    optimizer.set_loss_scale_state(state[0], static_cast<std::int64_t>(state[1]));
  };
  return {.dtype = DType::kFloat64, .shape = [] { return Shape{2}; }, .read = read, .restore = restore};
}

}  // namespace

void Checkpoint::add(const std::string& name, Optimizer& optimizer, std::span<const Variable> variables,
                     std::span<const ShardedVariable> sharded) {
  std::vector<std::vector<Variable>> all;
  for (const Variable& variable : variables) all.push_back({variable});
  for (const ShardedVariable& variable : sharded) all.push_back(variable.variables());
  if (all.empty()) throw InvalidArgument("the state of optimizer '{}' is that of no variables", name);
  std::vector<Variable> here;
  for (const auto& shards : all)
    if (!shards.front().state()->is_kept_elsewhere()) here.insert(here.end(), shards.begin(), shards.end());
  optimizer.make_slots(here);

  add_value(name + "/iterations", iterations_of(optimizer, all));
  add_value(name + "/learning_rate", rate_of(optimizer));
  if (optimizer.update_options().loss_scale) add_value(name + "/loss_scale", loss_scale_of(optimizer));
  const auto add_slots = [&](const auto& variable) {
    const std::vector<std::string> names = optimizer.all_slot_names(variable.dtype());
    for (std::size_t slot = 0; slot < names.size(); ++slot)
      add_value(fmt::format("{}/{}/{}", name, variable.name(), names[slot]),
                slot_of(optimizer, variable, slot));
  };
  for (const Variable& variable : variables) add_slots(variable);
  for (const ShardedVariable& variable : sharded) add_slots(variable);
}

namespace {

/// [replicas, numbers], of all workers.
Tensor gathered(const Strategy& strategy, const ReplicaNumbers& numbers) {
  std::vector<Tensor> rows;
  for (int replica = 0; replica < strategy.extended().local_replicas(); ++replica) {
    const std::span<const double> own = numbers.of(replica);
    rows.push_back(Tensor::from(own, {1, static_cast<std::int64_t>(own.size())}));
  }
  return strategy.gather(PerReplica(std::move(rows), strategy.num_replicas_in_sync()), 0);
}

/// Those of one replica, in a checkpoint of another number of replicas.
void take_sum(const Tensor& saved, int replica, std::span<double> own) {
  std::ranges::fill(own, 0);
  if (replica > 0) return;
  for (std::int64_t row = 0; row < saved.shape()[0]; ++row) {
    const auto values = saved.row(row).span<double>();
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += values[i];
  }
}

void restore_numbers(const Strategy& strategy, const ReplicaNumbers& numbers, const Tensor& saved) {
  const bool same_replicas = saved.shape()[0] == strategy.num_replicas_in_sync();
  for (int local = 0; local < strategy.extended().local_replicas(); ++local) {
    const std::span<double> own = numbers.of(local);
    if (saved.shape()[1] != static_cast<std::int64_t>(own.size()))
      throw InvalidArgument("replicas were saved with {} numbers each, and have {}", saved.shape()[1],
                            own.size());
    const int replica = strategy.extended().first_replica_id() + local;
    if (same_replicas)
      std::ranges::copy(saved.row(replica).span<double>(), own.begin());
    else
      take_sum(saved, replica, own);
  }
}

}  // namespace

void Checkpoint::add(const std::string& name, const ReplicaNumbers& numbers) {
  const auto shape = [numbers, strategy = strategy_] {
    return Shape{strategy.num_replicas_in_sync(), static_cast<std::int64_t>(numbers.of(0).size())};
  };
  add_value(name, {.dtype = DType::kFloat64,
                   .shape = shape,
                   .read = [numbers, strategy = strategy_] { return gathered(strategy, numbers); },
                   .restore = [numbers, strategy = strategy_](
                                  const Tensor& saved) { restore_numbers(strategy, numbers, saved); },
                   .has_any_length = true,
                   .is_collective = true,
                   .is_everywhere = true});
}

}  // namespace cohort
