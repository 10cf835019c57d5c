#include "model.h"

#include <algorithm>

namespace cohort::model {

Expected Model::apply(const Step& step) {
  try {
    if (is_scatter(step.action)) return scatter(step);
    switch (step.action) {
      case Action::kMake: return make(step);
      case Action::kAssign:
      case Action::kAssignAdd:
      case Action::kAssignSub: return assign(step);
      case Action::kAssignNumber: return assign_number(step);
      case Action::kRead: return read(step);
      case Action::kMovingAverage: return follow(step);
      case Action::kReduceAlong: return reduce_along(step);
      case Action::kReduce:
      case Action::kReduceTo:
      case Action::kBatchReduceTo:
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

bool Model::in_replicas(const Step& step) const {
  return step.place == Place::kReplica && layout_.kind != Kind::kDefault;
}

Expected Model::reduce(const Step& step) const {
  require(step.op != Op::kMax);
  require(!in_replicas(step) && step.place != Place::kForeignScope, "wrong_context");
  if (step.action == Action::kBroadcast) {
    require(layout_.kind != Kind::kDefault, "unimplemented");
    Expected expected;
    for (const Leaves& value : step.values)
      expected.values.emplace_back(static_cast<std::size_t>(step.destinations), value.front());
    return expected;
  }
  require(step.form != Form::kInteger || step.op != Op::kMean);

  if (step.source == Source::kStructure) return reduce_structure(step);
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
        values[static_cast<std::size_t>(r)] = values[layout_.first_of_worker(r / layout_.devices)];
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
      parts.push_back(values[layout_.first_of_worker(worker)]);
  }
  const Leaves result = reduced(step.op, parts);
  if (step.action == Action::kReduce || step.action == Action::kMergeSum) return {.values = {result}};
  Leaves by_destination;
  for (const Leaf& leaf : result)
    by_destination.insert(by_destination.end(), static_cast<std::size_t>(step.destinations), leaf);
  return {.values = {by_destination}};
}

/// Leaf by leaf. In a structure, the components of a Mirrored are contributions, too.
Expected Model::reduce_structure(const Step& step) const {
  Expected expected{.values = std::vector<Leaves>(step.values.size())};
  const Source of_mirrored = layout_.devices == 1 ? Source::kPlain : Source::kPerReplica;
  std::size_t leaf = 0;
  for (const Source source : {Source::kPerReplica, Source::kPlain, of_mirrored}) {
    Step part = step;
    part.source = source;
    for (Leaves& value : part.values) value = {value[leaf]};
    const std::vector<Leaves> results = reduce(part).values;
    for (std::size_t r = 0; r < step.values.size(); ++r)
      expected.values[r].push_back(results[results.size() == 1 ? 0 : r].front());
    ++leaf;
  }
  return expected;
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
  require_same_kind(values);
  const Type type = values.front().type;
  require_arithmetic(type);
  std::vector<Leaf> sums;
  Number summed = 0;
  for (const Array& value : values) {
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
      parts.push_back(step.values[layout_.first_of_worker(worker)]);
  }
  for (const Leaves& part : parts) require_agreement(part.size() == parts.front().size());
  Leaves result;
  for (std::size_t leaf = 0; leaf < parts.front().size(); ++leaf) {
    std::vector<Array> arrays;
    arrays.reserve(parts.size());
    for (const Leaves& part : parts) arrays.push_back(dense(part[leaf]));
    result.push_back({gathered(arrays, step.axes.front())});
  }
  return {.values = {result}};
}

Expected Model::all_reduce(const Step& step) const {
  require(step.op != Op::kMax);
  require(step.form != Form::kInteger || step.op != Op::kMean);
  if (step.action == Action::kAllReduceInPlace && step.op == Op::kMean && layout_.replicas() > 1) {
    require_alike(step.values);
    for (const Leaf& leaf : step.values.front()) require(is_floating(leaf.values.type));
  }
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
