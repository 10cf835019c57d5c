#include "execution.h"

#include <optional>

#include <fmt/format.h>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/moving_average.h>

#include "step.h"

namespace cohort::model {
namespace {

SumOrMean op_of(const Step& step) {
  return step.op == Op::kSum ? ReduceOp::kSum : step.op == Op::kMean ? ReduceOp::kMean : ReduceOp::kMax;
}

Destinations destinations_of(const Step& step) { return Destinations(cpu_devices(step.destinations)); }

/// Changes `variable` by one value, in the context of the caller.
void change(const Variable& variable, const Step& step, const Leaf& value) {
  switch (step.action) {
    case Action::kAssign: variable.assign(to_tensor(value.values)); return;
    case Action::kAssignAdd: variable.assign_add(to_tensor(value.values)); return;
    case Action::kAssignSub: variable.assign_sub(to_tensor(value.values)); return;
    case Action::kAssignNumber: variable.assign(static_cast<double>(value.values.elements.front())); return;
    case Action::kMovingAverage: assign_moving_average(variable, to_tensor(value.values), step.decay); return;
    default: break;
  }
  const IndexedSlices rows = built<IndexedSlices>({value});
  switch (step.action) {
    case Action::kScatterAdd: variable.scatter_add(rows); return;
    case Action::kScatterSub: variable.scatter_sub(rows); return;
    case Action::kScatterMul: variable.scatter_mul(rows); return;
    case Action::kScatterDiv: variable.scatter_div(rows); return;
    case Action::kScatterMin: variable.scatter_min(rows); return;
    case Action::kScatterMax: variable.scatter_max(rows); return;
    default: variable.scatter_update(rows);
  }
}

}  // namespace

Observed Execution::apply(const Step& step) {
  try {
    return {.values = run(step)};
  } catch (const Error& error) {
    return {.error = std::string(to_string(error.code())), .message = error.what()};
  } catch (const std::exception& error) {
    return {.error = "not an error of Cohort's", .message = error.what()};
  }
}

Leaves Execution::components(std::size_t variable) const {
  Leaves leaves;
  for (const Tensor& component : variables_.at(variable).components())
    leaves.push_back(from_library(component));
  return leaves;
}

template <class Build>
auto Execution::each(const Step& step, Build build) const {
  std::vector<decltype(build(step.values.front()))> components;
  components.reserve(static_cast<std::size_t>(strategy_.extended().local_replicas()));
  for (int local = 0; local < strategy_.extended().local_replicas(); ++local)
    components.push_back(build(step.values[first() + static_cast<std::size_t>(local)]));
  return PerReplica(std::move(components));
}

template <class Function>
std::vector<Leaves> Execution::by_replica(const Step& step, Function function) const {
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    static const Leaves kNone;
    const auto id = static_cast<std::size_t>(replica.replica_id_in_sync_group());
    return function(replica, step.values.empty() ? kNone : step.values[id]);
  });
  return {results.components().begin(), results.components().end()};
}

void Execution::at(Place place, const std::function<void()>& function) const {
  std::optional<OneDeviceStrategy> other;
  switch (place) {
    case Place::kOutside: return function();
    case Place::kForeignScope: {
      other.emplace();
      const auto scope = other->scope();
      return function();
    }
    case Place::kReplica: return strategy_.run(function);
    case Place::kMerge:
      return strategy_.run(
          [&](ReplicaContext& replica) { replica.merge_call([&](const Strategy&) { function(); }); });
    default: {
      const auto scope = strategy_.scope();
      function();
    }
  }
}

std::vector<Leaves> Execution::run(const Step& step) {
  if (is_scatter(step.action)) {
    change(step);
    return {};
  }
  switch (step.action) {
    case Action::kMake: return make(step);
    case Action::kAssign:
    case Action::kAssignAdd:
    case Action::kAssignSub:
    case Action::kAssignNumber:
    case Action::kMovingAverage: change(step); return {};
    case Action::kRead: return read(step);
    case Action::kReduce:
    case Action::kReduceAlong:
    case Action::kReduceTo:
    case Action::kBatchReduceTo:
    case Action::kBroadcast: return reduce(step);
    case Action::kGather: return gather(step);
    case Action::kAsk: return ask(step);
    default: return in_replicas(step);
  }
}

std::vector<Leaves> Execution::make(const Step& step) {
  const auto made = [&](const Leaves& initial) {
    return Variable({.name = fmt::format("v{}", variables_.size()),
                     .initial_value = to_tensor(initial.front().values),
                     .synchronization = static_cast<VariableSynchronization>(step.synchronization),
                     .aggregation = static_cast<VariableAggregation>(step.aggregation),
                     .trainable = step.trainable});
  };
  std::optional<Variable> variable;
  if (step.place == Place::kReplica) {
    const auto of_replicas = strategy_.run([&](ReplicaContext& replica) {
      return made(step.values[static_cast<std::size_t>(replica.replica_id_in_sync_group())]);
    });
    variable = regroup(of_replicas);
  } else {
    const auto scope = strategy_.scope();
    variable = made(step.values[first()]);
  }
  variables_.push_back(*variable);
  std::vector<Leaves> values;
  for (const Tensor& component : variable->components())
    values.push_back({from_library(component), Leaf{scalar(Type::kBool, variable->trainable() ? 1 : 0)}});
  return values;
}

void Execution::change(const Step& step) const {
  const Variable& target = variable(step);
  if (step.place == Place::kReplica) {
    strategy_.run([&](ReplicaContext& replica) {
      model::change(target, step,
                    step.values[static_cast<std::size_t>(replica.replica_id_in_sync_group())].front());
    });
    return;
  }
  if (step.place != Place::kUpdate && step.place != Place::kReplicaUpdate)
    return at(step.place, [&] { model::change(target, step, step.values[first()].front()); });

  const auto update = [&](const Variable& component, const TensorOrSlices& value) {
    model::change(component, step, from_library(value));
  };
  if (step.place == Place::kUpdate) {
    strategy_.extended().update(target, update,
                                each(step, [](const Leaves& leaves) { return to_library(leaves.front()); }));
    return;
  }
  strategy_.run([&](ReplicaContext& replica) {
    const auto id = static_cast<std::size_t>(replica.replica_id_in_sync_group());
    replica.strategy().extended().update(target, update, to_library(step.values[id].front()));
  });
}

std::vector<Leaves> Execution::read(const Step& step) const {
  const Variable& target = variable(step);
  if (step.place == Place::kReplica)
    return by_replica(step,
                      [&](ReplicaContext&, const Leaves&) { return Leaves{from_library(target.read())}; });
  std::vector<Leaves> values;
  const auto read = [&] { values.push_back({from_library(target.read())}); };
  if (step.place == Place::kUpdate)
    strategy_.extended().update(target, [&](const Variable&) { read(); });
  else
    at(step.place, read);
  return values;
}

std::vector<Leaves> Execution::reduce(const Step& step) const {
  Leaves result;
  const auto mirrored = [&](const Mirrored<Tensor>& value) {
    for (const Tensor& component : value.components()) result.push_back(from_library(component));
  };
  const auto components_of = [](const PerReplica<Tensor>& value) {
    return std::vector<Tensor>(value.components().begin(), value.components().end());
  };
  const auto part = [&](std::size_t leaf) {
    return each(step, [leaf](const Leaves& leaves) { return to_tensor(leaves.at(leaf).values); });
  };
  const auto batch = [&](std::size_t leaves) {
    std::vector<std::pair<PerReplica<Tensor>, Destinations>> pairs;
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) pairs.emplace_back(part(leaf), destinations_of(step));
    for (const auto& value : strategy_.extended().batch_reduce_to(op_of(step), pairs)) mirrored(value);
  };
  at(step.place, [&] {
    const auto reduce = [&](const auto& value) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, PerReplica<Tensor>> ||
                    std::is_same_v<std::remove_cvref_t<decltype(value)>, Tensor> ||
                    std::is_same_v<std::remove_cvref_t<decltype(value)>, Variable>) {
        if (step.action == Action::kReduceAlong) {
          result = taken_apart(strategy_.reduce(op_of(step), value, Axes(step.axes)));
          return;
        }
      }
      result = taken_apart(strategy_.reduce(op_of(step), value));
    };
    if (step.action == Action::kBroadcast)
      mirrored(strategy_.extended().broadcast_to(built<Tensor>(step.values[first()]), destinations_of(step)));
    else if (step.action == Action::kReduceTo)
      mirrored(strategy_.extended().reduce_to(op_of(step), each(step, built<Tensor>), destinations_of(step)));
    else if (step.action == Action::kBatchReduceTo)
      batch(step.values.front().size());
    else if (step.source == Source::kStructure)
      reduce(std::tuple(part(0), to_tensor(step.values[first()][1].values),
                        Mirrored<Tensor>(components_of(part(2)))));
    else if (step.source == Source::kVariable)
      reduce(variable(step));
    else if (step.source == Source::kMirrored)
      reduce(Mirrored<Tensor>(components_of(each(step, built<Tensor>))));
    else
      with_form(step.form, [&]<class T>(std::type_identity<T>) {
        if (step.source == Source::kPlain)
          reduce(built<T>(step.values[first()]));
        else
          reduce(each(step, built<T>));
      });
  });
  return {result};
}

std::vector<Leaves> Execution::gather(const Step& step) const {
  Leaves result;
  at(step.place, [&] {
    const auto gather = [&](const auto& value) {
      result = taken_apart(strategy_.gather(value, step.axes.front()));
    };
    const auto either = [&]<class T>(std::type_identity<T>) {
      if (step.source == Source::kPlain)
        gather(built<T>(step.values[first()]));
      else
        gather(each(step, built<T>));
    };
    if (step.form == Form::kTensor)
      either(std::type_identity<Tensor>());
    else if (step.form == Form::kList)
      either(std::type_identity<List>());
    else
      either(std::type_identity<IndexedSlices>());
  });
  return {result};
}

std::vector<Leaves> Execution::in_replicas(const Step& step) const {
  if (step.action == Action::kPassThrough) {
    std::vector<Leaves> values;
    with_form(step.form, [&]<class T>(std::type_identity<T>) {
      const auto passed = strategy_.run([](const T& own) { return own; }, each(step, built<T>));
      for (const T& own : passed.components()) values.push_back(taken_apart(own));
    });
    return values;
  }
  return by_replica(step, [&](ReplicaContext& replica, const Leaves& leaves) {
    switch (step.action) {
      case Action::kAllReduce:
        return with_form(step.form, [&]<class T>(std::type_identity<T>) {
          return taken_apart(replica.all_reduce(op_of(step), built<T>(leaves)));
        });
      case Action::kAllReduceInPlace: {
        const List tensors = built<List>(leaves);
        replica.all_reduce_in_place(op_of(step), tensors);
        return taken_apart(tensors);
      }
      case Action::kAllGather:
        if (step.form == Form::kSlices)
          return taken_apart(replica.all_gather(built<IndexedSlices>(leaves), step.axes.front()));
        if (step.form == Form::kList)
          return taken_apart(replica.all_gather(built<List>(leaves), step.axes.front()));
        return taken_apart(replica.all_gather(built<Tensor>(leaves), step.axes.front()));
      case Action::kReduceScatter: {
        const Tensor whole = built<Tensor>(leaves);
        const auto id = static_cast<std::size_t>(replica.replica_id_in_sync_group());
        const Tensor part =
            Tensor::zeros(whole.shape().with(step.axes.front(), step.parts[id]), whole.dtype());
        return taken_apart(replica.reduce_scatter(op_of(step), whole, part, step.axes.front()));
      }
      case Action::kMergeSum: {
        const auto sum = [&](const Strategy& strategy, const PerReplica<Tensor>& of_replicas) {
          return strategy.reduce(op_of(step), of_replicas);
        };
        return taken_apart(replica.merge_call(sum, built<Tensor>(leaves)));
      }
      default: {
        const auto again = [&](const Strategy& strategy, const PerReplica<Tensor>& of_replicas) {
          return strategy.run(
              [&](ReplicaContext& inner, const Tensor& own) { return inner.all_reduce(op_of(step), own); },
              of_replicas);
        };
        return taken_apart(replica.merge_call(again, built<Tensor>(leaves)));
      }
    }
  });
}

std::vector<Leaves> Execution::ask(const Step& step) const {
  const auto answers = [] {
    Leaves leaves;
    for (const int answer : {has_strategy() ? 1 : 0, get_replica_context() != nullptr ? 1 : 0,
                             in_cross_replica_context() ? 1 : 0, get_update_replica_id().value_or(-1)}) {
      leaves.push_back({scalar(Type::kI32, answer)});
    }
    return leaves;
  };
  if (step.place == Place::kReplica)
    return by_replica(step, [&](ReplicaContext&, const Leaves&) { return answers(); });
  std::vector<Leaves> values;
  const auto ask = [&] { values.push_back(answers()); };
  if (step.place == Place::kUpdate)
    strategy_.extended().update(variables_.front(), [&](const Variable&) { ask(); });
  else
    at(step.place, ask);
  return values;
}

}  // namespace cohort::model
