#include "model.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace cohort::model {
namespace {

struct Refusal {
  std::string code;
  bool any = false;
};

[[noreturn]] void refuse(const char* code = "invalid_argument") { throw Refusal{code}; }
void require(bool condition, const char* code = "invalid_argument") {
  if (!condition) refuse(code);
}
/// What replicas have to agree on.
void require_agreement(bool condition) {
  if (!condition) throw Refusal{"invalid_argument", true};
}

/// What each has to get right: one alone that does not is an error of which the others hear.
template <class T>
void require_each(const std::vector<T>& values, const std::function<bool(const T&)>& is_right) {
  const auto right = std::ranges::count_if(values, is_right);
  require(right > 0);
  require_agreement(right == std::ssize(values));
}

Type mean_type(Type type) {
  if (is_floating(type)) return type;
  return bits(type) <= 16 ? Type::kF32 : Type::kF64;
}

void require_arithmetic(Type type) { require(type != Type::kBool); }

bool has_rows(const Leaf& leaf) {
  if (leaf.dense.empty()) return false;
  Extents fitting = leaf.dense;
  fitting.front() = static_cast<std::int64_t>(leaf.rows->elements.size());
  return leaf.values.extents == fitting && std::ranges::all_of(leaf.rows->elements, [&](Number row) {
           return row >= 0 && row < static_cast<Number>(leaf.dense.front());
         });
}

bool alike(const Leaf& a, const Leaf& b) {
  if (a.values.type != b.values.type || a.rows.has_value() != b.rows.has_value()) return false;
  if (a.rows) return a.dense == b.dense && a.rows->type == b.rows->type;
  return a.values.extents == b.values.extents;
}

/// The sum or mean of what several contribute; a single contribution is the result as it is.
Leaf reduced(Op op, const std::vector<Leaf>& parts) {
  for (const Leaf& part : parts) require_agreement(alike(part, parts.front()));
  if (parts.size() == 1) return parts.front();
  const Type type = parts.front().values.type;
  require_arithmetic(type);
  for (const Leaf& part : parts) require(!part.rows || has_rows(part));
  const Type result_type = op == Op::kMean ? mean_type(type) : type;
  const Number divisor = op == Op::kMean ? static_cast<Number>(parts.size()) : 1;
  const auto share = [&](Number sum) { return sum / divisor; };
  if (parts.front().rows) {
    std::vector<Array> values;
    std::vector<Array> rows;
    for (const Leaf& part : parts) {
      values.push_back(converted(part.values, result_type));
      rows.push_back(*part.rows);
    }
    return {mapped(concatenated(values, 0), share), concatenated(rows, 0), parts.front().dense};
  }
  Array sum = filled(result_type, parts.front().values.extents, 0);
  for (std::size_t i = 0; i < sum.elements.size(); ++i) {
    Number exact = 0;
    for (const Leaf& part : parts) exact += part.values.elements[i];
    sum.elements[i] = stored(result_type, share(exact));
  }
  return {sum};
}

/// Leaf by leaf.
Leaves reduced(Op op, const std::vector<Leaves>& parts) {
  for (const Leaves& part : parts) require_agreement(part.size() == parts.front().size());
  Leaves result;
  for (std::size_t leaf = 0; leaf < parts.front().size(); ++leaf) {
    std::vector<Leaf> of_leaf;
    for (const Leaves& part : parts) of_leaf.push_back(part[leaf]);
    result.push_back(reduced(op, of_leaf));
  }
  return result;
}

int from_front(int axis, const Extents& extents) {
  const int rank = static_cast<int>(extents.size());
  require(axis >= -rank && axis < rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<bool> marked(const std::vector<int>& axes, const Extents& extents) {
  std::vector<bool> result(extents.size(), false);
  for (const int axis : axes) {
    const auto index = static_cast<std::size_t>(from_front(axis, extents));
    require(!result[index]);
    result[index] = true;
  }
  return result;
}

/// Tensors one after the other.
Array gathered(const std::vector<Array>& parts, int axis) {
  for (const Array& part : parts) require(!part.extents.empty());
  const int along = from_front(axis, parts.front().extents);
  Extents others = parts.front().extents;
  others[static_cast<std::size_t>(along)] = 0;
  for (const Array& part : parts) {
    require_agreement(part.type == parts.front().type && part.extents.size() == others.size());
    Extents own = part.extents;
    own[static_cast<std::size_t>(along)] = 0;
    require_agreement(own == others);
  }
  return concatenated(parts, along);
}

Array dense(const Leaf& leaf) {
  if (!leaf.rows) return leaf.values;
  require(has_rows(leaf));
  require_arithmetic(leaf.values.type);
  Array result = filled(leaf.values.type, leaf.dense, 0);
  const std::size_t width =
      result.elements.empty() ? 0 : result.elements.size() / static_cast<std::size_t>(leaf.dense.front());
  for (std::size_t i = 0; i < leaf.rows->elements.size(); ++i) {
    const std::size_t to = static_cast<std::size_t>(leaf.rows->elements[i]) * width;
    for (std::size_t j = 0; j < width; ++j)
      result.elements[to + j] =
          stored(result.type, result.elements[to + j] + leaf.values.elements[i * width + j]);
  }
  return result;
}

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

bool is_scatter(Action action) { return action >= Action::kScatterAdd && action <= Action::kScatterUpdate; }

}  // namespace

Expected Model::apply(const Step& step) {
  try {
    if (is_scatter(step.action)) return scatter(step);
    switch (step.action) {
      case Action::kMake: return make(step);
      case Action::kAssign:
      case Action::kAssignAdd:
      case Action::kAssignSub: return assign(step);
      case Action::kRead: return read(step);
      case Action::kMovingAverage: return follow(step);
      case Action::kReduceAlong: return reduce_along(step);
      case Action::kReduce:
      case Action::kReduceTo:
      case Action::kBroadcast:
      case Action::kMergeSum: return reduce(step);
      case Action::kGather: return gather(step);
      case Action::kAllReduce:
      case Action::kAllReduceInPlace:
      case Action::kMergeAndRun: return all_reduce(step);
      case Action::kAllGather: return all_gather(step);
      case Action::kReduceScatter: return reduce_scatter(step);
      case Action::kPassThrough: return {.values = step.values};
      default: return ask(step);
    }
  } catch (const Refusal& refusal) {
    return {.error = refusal.code, .any_error = refusal.any && layout_.replicas() > 1};
  }
}

bool Model::is_foreign(const Step& step) const {
  return step.place == Place::kForeignScope && layout_.kind != Kind::kDefault;
}

bool Model::is_part(const Variable& variable) const {
  return layout_.mirrors() && variable.synchronization == Synchronization::kOnRead;
}

bool Model::keeps_equal(const Variable& variable) const {
  return layout_.mirrors() && variable.synchronization != Synchronization::kOnRead &&
         variable.aggregation != Aggregation::kNone;
}

bool Model::in_replicas(const Step& step) const {
  return step.place == Place::kReplica && layout_.kind != Kind::kDefault;
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

Expected Model::reduce(const Step& step) const {
  require(step.op != Op::kMax);
  require(!in_replicas(step) && step.place != Place::kForeignScope, "wrong_context");
  if (step.action == Action::kBroadcast) {
    require(layout_.kind != Kind::kDefault, "unimplemented");
    Expected expected;
    for (const Leaves& value : step.values)
      expected.values.push_back(Leaves(static_cast<std::size_t>(step.destinations), value.front()));
    return expected;
  }
  require(step.form != Form::kInteger || step.op != Op::kMean);

  std::vector<Leaves> values = step.values;
  Source source = step.source;
  if (source == Source::kVariable) {
    const Variable& variable = variables_.at(static_cast<std::size_t>(step.variable));
    values.clear();
    for (int r = 0; r < layout_.replicas(); ++r)
      values.push_back({Leaf{variable.components[layout_.mirrors() ? static_cast<std::size_t>(r) : 0]}});
    const bool keeps = layout_.mirrors() && !is_part(variable);
    source = is_part(variable) ? Source::kPerReplica : Source::kPlain;
    if (keeps) {
      require(step.op == Op::kMean);
      for (int r = 0; r < layout_.replicas(); ++r)
        values[static_cast<std::size_t>(r)] =
            values[static_cast<std::size_t>(r / layout_.devices * layout_.devices)];
      return {.values = values};
    }
  }
  if (source == Source::kMirrored) {
    if (layout_.devices == 1)
      source = Source::kPlain;
    else if (!layout_.mirrors())
      source = Source::kPerReplica;
  }
  std::vector<Leaves> parts = values;
  if (source != Source::kPerReplica && layout_.replicas() > 1) {
    const bool one_per_worker = source == Source::kPlain && layout_.workers > 1;
    if (!one_per_worker) {
      require(step.op == Op::kMean || values.front().empty());
      return {.values = values};
    }
    parts.clear();
    for (int worker = 0; worker < layout_.workers; ++worker)
      parts.push_back(values[static_cast<std::size_t>(worker * layout_.devices)]);
  }
  Leaves result = reduced(step.op, parts);
  if (step.action == Action::kReduceTo)
    result = Leaves(static_cast<std::size_t>(step.destinations), result.front());
  return {.values = {result}};
}

Expected Model::reduce_along(const Step& step) const {
  require(step.op != Op::kMax);
  require(!in_replicas(step) && step.place != Place::kForeignScope, "wrong_context");
  std::vector<Array> values;
  for (int r = 0; r < layout_.replicas(); ++r) {
    const int first = r / layout_.devices * layout_.devices;
    if (step.source == Source::kVariable) {
      const auto& components = variables_.at(static_cast<std::size_t>(step.variable)).components;
      values.push_back(components[layout_.mirrors() ? static_cast<std::size_t>(r) : 0]);
    } else {
      const int of = step.source == Source::kPlain ? first : r;
      values.push_back(step.values[static_cast<std::size_t>(of)].front().values);
    }
  }
  const Type type = values.front().type;
  std::vector<Leaf> sums;
  Number summed = 0;
  for (const Array& value : values) {
    require_agreement(value.type == type);
    require_arithmetic(type);
    const std::vector<bool> axes = marked(step.axes, value.extents);
    Number elements = 1;
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      if (axes[axis]) elements *= static_cast<Number>(value.extents[axis]);
    summed += elements;
    sums.push_back({summed_along(value, axes)});
    require_agreement(sums.back().values.extents == sums.front().values.extents);
  }
  Array total = sums.front().values;
  for (std::size_t r = 1; r < sums.size(); ++r)
    for (std::size_t i = 0; i < total.elements.size(); ++i) total.elements[i] += sums[r].values.elements[i];
  if (step.op == Op::kMean) {
    total.type = mean_type(type);
    total = mapped(total, [&](Number sum) { return sum / summed; });
  }
  return {.values = {{Leaf{converted(total, total.type)}}}};
}

Expected Model::gather(const Step& step) const {
  require(!in_replicas(step) && step.place != Place::kForeignScope, "wrong_context");
  std::vector<Leaves> parts = step.values;
  if (step.source == Source::kPlain) {
    parts.clear();
    for (int worker = 0; worker < layout_.workers; ++worker)
      parts.push_back(step.values[static_cast<std::size_t>(worker * layout_.devices)]);
  }
  for (const Leaves& part : parts) require_agreement(part.size() == parts.front().size());
  Leaves result;
  for (std::size_t leaf = 0; leaf < parts.front().size(); ++leaf) {
    std::vector<Array> arrays;
    for (const Leaves& part : parts) arrays.push_back(dense(part[leaf]));
    result.push_back({gathered(arrays, step.axes.front())});
  }
  return {.values = {result}};
}

Expected Model::all_reduce(const Step& step) const {
  require(step.op != Op::kMax);
  require(step.form != Form::kInteger || step.op != Op::kMean);
  if (step.action == Action::kAllReduceInPlace && step.op == Op::kMean && layout_.replicas() > 1)
    for (const Leaf& leaf : step.values.front()) require(is_floating(leaf.values.type));
  return {.values = {reduced(step.op, step.values)}};
}

Expected Model::all_gather(const Step& step) const {
  for (const Leaves& value : step.values) require_agreement(value.size() == step.values.front().size());
  Leaves result;
  for (std::size_t leaf = 0; leaf < step.values.front().size(); ++leaf) {
    std::vector<Array> parts;
    for (const Leaves& value : step.values) {
      require(!value[leaf].rows, "unimplemented");
      parts.push_back(value[leaf].values);
    }
    result.push_back({gathered(parts, step.axes.front())});
  }
  return {.values = {result}};
}

Expected Model::reduce_scatter(const Step& step) const {
  require(step.op != Op::kMax);
  const Extents& extents = step.values.front().front().values.extents;
  const int axis = from_front(step.axes.front(), extents);
  std::int64_t all = 0;
  for (const std::int64_t part : step.parts) all += part;
  require_agreement(all == extents[static_cast<std::size_t>(axis)]);
  const Array sum = reduced(step.op, step.values).front().values;
  Expected expected;
  std::int64_t begin = 0;
  for (const std::int64_t part : step.parts) {
    expected.values.push_back({Leaf{sliced(sum, axis, begin, begin + part)}});
    begin += part;
  }
  return expected;
}

Expected Model::ask(const Step& step) const {
  const bool is_default = layout_.kind == Kind::kDefault;
  const bool across = step.place == Place::kMerge ||
                      (!is_default && (step.place == Place::kScope || step.place == Place::kUpdate));
  const bool has_strategy = !is_default && step.place != Place::kOutside;
  Expected expected;
  for (int r = 0; r < layout_.replicas(); ++r) {
    const bool numbered = step.place == Place::kUpdate && !is_default;
    const int number = !numbered ? -1 : layout_.mirrors() ? r % layout_.devices : 0;
    Leaves answers;
    for (const int answer : {has_strategy ? 1 : 0, across ? 0 : 1, across ? 1 : 0, number})
      answers.push_back({scalar(Type::kI32, answer)});
    expected.values.push_back(answers);
  }
  return expected;
}

}  // namespace cohort::model
