// The rules of variables.
#include "model.h"

#include <algorithm>
#include <cmath>

namespace cohort::model {
namespace {

void change(Array& component, Action action, const Array& value) {
  if (action == Action::kAssign) {
    component = value;
    return;
  }
  require_arithmetic(component.type);
  const Number sign = action == Action::kAssignAdd ? 1 : -1;
  component = mapped(component, value, [&](Number a, Number b) { return a + sign * b; });
}

Number combined(Action action, Number a, Number b) {
  switch (action) {
    case Action::kScatterAdd: return a + b;
    case Action::kScatterSub: return a - b;
    case Action::kScatterMul: return a * b;
    case Action::kScatterDiv: return a / b;
    case Action::kScatterMin: return std::min(a, b);
    case Action::kScatterMax: return std::max(a, b);
    default: return b;
  }
}

void change_rows(Array& component, Action action, const Leaf& rows) {
  if (action != Action::kScatterUpdate) require_arithmetic(component.type);
  if (action == Action::kScatterDiv && !is_floating(component.type))
    for (const Number divisor : rows.values.elements) require_agreement(divisor != 0);
  const std::size_t width = component.elements.empty()
                                ? 0
                                : component.elements.size() / static_cast<std::size_t>(rows.dense.front());
  for (std::size_t i = 0; i < rows.rows->elements.size(); ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      Number& element = component.elements[static_cast<std::size_t>(rows.rows->elements[i]) * width + j];
      element = stored(component.type, combined(action, element, rows.values.elements[i * width + j]));
    }
  }
}

}  // namespace

bool Model::is_part(const Variable& variable) const {
  return layout_.mirrors() && variable.synchronization == Synchronization::kOnRead;
}

bool Model::keeps_equal(const Variable& variable) const {
  return layout_.mirrors() && variable.synchronization != Synchronization::kOnRead &&
         variable.aggregation != Aggregation::kNone;
}

bool Model::differ_from_each_other(const std::vector<Leaves>& values) const {
  return std::ranges::any_of(values,
                             [&](const Leaves& value) { return text(value) != text(values.front()); });
}

Expected Model::make(const Step& step) {
  const Array& initial = step.values.front().front().values;
  // Of a worker that makes it outside replicas, the first replica's value counts.
  for (int r = 0; r < layout_.replicas(); r += step.place == Place::kReplica ? 1 : layout_.devices)
    require_agreement(alike(step.values[static_cast<std::size_t>(r)].front(), step.values.front().front()));
  if (layout_.mirrors()) {
    require(step.synchronization != Synchronization::kNone);
    require(step.aggregation != Aggregation::kMean || is_floating(initial.type));
  }
  const auto copies = layout_.mirrors() ? static_cast<std::size_t>(layout_.replicas()) : 1;
  variables_.push_back({step.synchronization, step.aggregation, std::vector(copies, initial)});
  const bool trainable = step.trainable.value_or(step.synchronization != Synchronization::kOnRead);
  return {.values = {{Leaf{initial}, Leaf{scalar(Type::kBool, trainable ? 1 : 0)}}}};
}

void Model::share_out(Variable& variable, const Array& sum) const {
  require_arithmetic(sum.type);
  const auto replicas = static_cast<Number>(layout_.replicas());
  for (std::size_t r = 0; r < variable.components.size(); ++r) {
    variable.components[r] = mapped(sum, [&](Number whole) {
      if (is_floating(sum.type)) return whole / replicas;
      const Number share = std::trunc(whole / replicas);
      return r == 0 ? whole - share * (replicas - 1) : share;
    });
  }
}

Expected Model::assign(const Step& step) {
  Variable& variable = variables_.at(static_cast<std::size_t>(step.variable));
  require(!is_foreign(step), "wrong_context");
  const bool updates = step.place == Place::kUpdate || step.place == Place::kReplicaUpdate;
  if (updates) require(!keeps_equal(variable) || !differ_from_each_other(step.values));
  require_each<Leaves>(step.values, [&](const Leaves& value) {
    return alike(value.front(), Leaf{variable.components.front()});
  });
  const auto value_of = [&](std::size_t r) -> const Array& { return step.values[r].front().values; };
  const bool in_replica = step.place == Place::kReplica;
  if (in_replica && !layout_.mirrors() && layout_.replicas() > 1) {
    require(variable.aggregation != Aggregation::kNone);
    if (variable.aggregation == Aggregation::kMean) require(is_floating(value_of(0).type));
  }
  const bool own =
      updates || (in_replica && (is_part(variable) || variable.aggregation == Aggregation::kNone));
  if (in_replica && !own && layout_.replicas() > 1) {
    std::vector<Leaf> values;
    for (const Leaves& value : step.values) values.push_back(value.front());
    const Leaf all = variable.aggregation == Aggregation::kOnlyFirstReplica
                         ? values.front()
                         : reduced(variable.aggregation == Aggregation::kSum ? Op::kSum : Op::kMean, values);
    for (Array& component : variable.components) change(component, step.action, all.values);
  } else if (own || in_replica) {
    for (std::size_t r = 0; r < variable.components.size(); ++r)
      change(variable.components[r], step.action, value_of(r));
  } else if (is_part(variable) && variable.aggregation == Aggregation::kSum) {
    require(step.action == Action::kAssign);
    share_out(variable, value_of(0));
  } else {
    for (Array& component : variable.components) change(component, step.action, value_of(0));
    require(!is_part(variable) || variable.aggregation != Aggregation::kNone, "wrong_context");
  }
  return {};
}

Expected Model::assign_number(const Step& step) {
  Step converted_step = step;
  converted_step.action = Action::kAssign;
  const Type type = variables_.at(static_cast<std::size_t>(step.variable)).components.front().type;
  for (Leaves& value : converted_step.values) {
    const Array number = value.front().values;
    value = {Leaf{converted(number, type)}};
    require(is_floating(type) || value.front().values.elements == number.elements);
  }
  return assign(converted_step);
}

Expected Model::scatter(const Step& step) {
  Variable& variable = variables_.at(static_cast<std::size_t>(step.variable));
  require(!is_foreign(step), "wrong_context");
  const bool updates = step.place == Place::kUpdate || step.place == Place::kReplicaUpdate;
  if (updates) require(!keeps_equal(variable) || !differ_from_each_other(step.values));
  const bool sums = variable.aggregation == Aggregation::kSum || variable.aggregation == Aggregation::kMean;
  if (layout_.mirrors()) {
    require(!is_part(variable), "unimplemented");
    require(!sums || step.action <= Action::kScatterDiv, "unimplemented");
  }
  // An update of a single copy takes the values of the first replica.
  const auto used = updates && !layout_.mirrors() ? 1 : std::ssize(step.values);
  require_each<Leaves>({step.values.begin(), step.values.begin() + used}, [&](const Leaves& value) {
    const Leaf& rows = value.front();
    return has_rows(rows) && rows.values.type == variable.components.front().type &&
           rows.dense == variable.components.front().extents;
  });
  std::vector<Leaf> rows;
  for (const Leaves& value : step.values) rows.push_back(value.front());
  if (step.place == Place::kReplica && !layout_.mirrors()) {
    for (const Leaf& of_replica : rows) change_rows(variable.components.front(), step.action, of_replica);
  } else if (step.place == Place::kReplica && sums) {
    const Leaf all = reduced(variable.aggregation == Aggregation::kSum ? Op::kSum : Op::kMean, rows);
    for (Array& component : variable.components) change_rows(component, step.action, all);
  } else {
    const bool each_its_own =
        updates || (step.place == Place::kReplica && variable.aggregation == Aggregation::kNone);
    for (std::size_t r = 0; r < variable.components.size(); ++r)
      change_rows(variable.components[r], step.action, rows[each_its_own ? r : 0]);
  }
  return {};
}

Expected Model::read(const Step& step) const {
  const Variable& variable = variables_.at(static_cast<std::size_t>(step.variable));
  require(!is_foreign(step), "wrong_context");
  std::vector<Leaf> components;
  for (const Array& component : variable.components) components.push_back({component});
  const bool own = step.place == Place::kReplica || step.place == Place::kUpdate;
  Expected expected;
  if (own || !is_part(variable)) {
    for (int r = 0; r < layout_.replicas(); ++r) {
      const int of = own ? r : r / layout_.devices * layout_.devices;
      expected.values.push_back({components[components.size() == 1 ? 0 : static_cast<std::size_t>(of)]});
    }
    return expected;
  }
  require(variable.aggregation != Aggregation::kNone, "wrong_context");
  if (variable.aggregation == Aggregation::kOnlyFirstReplica)
    expected.values = {{components.front()}};
  else
    expected.values = {
        {reduced(variable.aggregation == Aggregation::kSum ? Op::kSum : Op::kMean, components)}};
  return expected;
}

Expected Model::follow(const Step& step) {
  Variable& variable = variables_.at(static_cast<std::size_t>(step.variable));
  std::vector<Leaf> values;
  for (const Leaves& value : step.values) values.push_back(value.front());
  const Array& like = variable.components.front();
  require(step.decay >= 0 && step.decay <= 1);
  require(!is_part(variable) || variable.aggregation != Aggregation::kSum);
  require(is_floating(like.type));
  require_each<Leaf>(values, [&](const Leaf& value) { return value.values.extents == like.extents; });
  require(!is_foreign(step), "wrong_context");
  const Array value =
      step.place == Place::kReplica ? reduced(Op::kMean, values).values : values.front().values;
  const auto decay = static_cast<Number>(step.decay);
  for (Array& component : variable.components)
    component = mapped(component, value, [&](Number a, Number b) { return a * decay + b * (1 - decay); });
  return {};
}

}  // namespace cohort::model
