#include "program.h"

#include <algorithm>

namespace cohort::model {

Number Program::number(Type type) {
  if (type == Type::kBool) return static_cast<Number>(below(2));
  if (is_floating(type)) return static_cast<Number>(below(21)) / 2 - 4;
  const bool is_unsigned = type >= Type::kU8 && type <= Type::kU64;
  // Large ones make sums of 8 bits wrap.
  if (bits(type) == 8 && chance(20)) return 100 + static_cast<Number>(below(28));
  return static_cast<Number>(below(10)) - (is_unsigned ? 0 : 4);
}

Extents Program::extents(std::size_t least_rank) {
  Extents result(least_rank + below(4 - least_rank));
  for (std::int64_t& extent : result) extent = chance(6) ? 0 : static_cast<std::int64_t>(1 + below(3));
  return result;
}

Array Program::array(Type type, const Extents& extents) {
  Array result = filled(type, extents, 0);
  for (Number& element : result.elements) element = stored(type, number(type));
  return result;
}

Leaf Program::rows_of(Type type, Type index_type, const Extents& dense) {
  const auto rows = static_cast<std::int64_t>(below(4));
  Array indices = filled(index_type, {rows}, 0);
  for (Number& index : indices.elements)
    index = static_cast<Number>(below(static_cast<std::size_t>(dense.front())));
  Extents of_values = dense;
  of_values.front() = rows;
  return {array(type, of_values), indices, dense};
}

Leaf Program::like(const Leaf& leaf) {
  return leaf.rows ? rows_of(leaf.values.type, leaf.rows->type, leaf.dense)
                   : Leaf{array(leaf.values.type, leaf.values.extents)};
}

Leaves Program::leaves(Form form) {
  const auto tensor = [&] { return Leaf{array(any_type(), extents())}; };
  const auto slices = [&] {
    Extents dense = extents(1);
    dense.front() = std::max<std::int64_t>(dense.front(), 1);
    return rows_of(any_type(), any_of({Type::kI32, Type::kI64}), dense);
  };
  Leaves result;
  switch (form) {
    case Form::kTensor: return {tensor()};
    case Form::kNumber: return {Leaf{array(Type::kF64, {})}};
    case Form::kInteger: return {Leaf{array(Type::kI32, {})}};
    case Form::kTuple: return {tensor(), Leaf{array(Type::kF64, {})}};
    case Form::kMap: return {tensor(), tensor()};
    case Form::kSlices: return {slices()};
    case Form::kOptional:
      if (chance(70)) result.push_back(tensor());
      return result;
    case Form::kList:
      for (std::size_t i = below(4); i > 0; --i) result.push_back(tensor());
      return result;
    case Form::kMixed:
      for (std::size_t i = below(4); i > 0; --i) result.push_back(chance(50) ? tensor() : slices());
      return result;
  }
  return result;
}

void Program::fill(Step& step, const Leaves& first) {
  for (int replica = 0; replica < layout_.replicas(); ++replica) {
    Leaves own;
    for (const Leaf& leaf : first) own.push_back(like(leaf));
    step.values.push_back(std::move(own));
  }
}

void Program::make_all_equal(Step& step) {
  for (Leaves& value : step.values) value = step.values.front();
}

void Program::make_one_odd(Step& step) {
  Leaves& value = step.values[below(step.values.size())];
  const bool fixed = step.form == Form::kNumber || step.form == Form::kInteger;
  if (value.empty() || fixed || layout_.replicas() == 1) return;
  const bool has_length =
      step.action != Action::kBatchReduceTo &&
      (step.form == Form::kList || step.form == Form::kMixed || step.form == Form::kOptional);
  Leaf& leaf = value.front();
  if (has_length && chance(40))
    value.pop_back();
  else if (!leaf.rows && chance(50))
    leaf.values.extents.push_back(1);
  else
    leaf.values = array(leaf.values.type == Type::kF32 ? Type::kF64 : Type::kF32, leaf.values.extents);
}

void Program::place_across(Step& step) {
  const std::size_t dice = below(100);
  step.place = dice < 40   ? Place::kOutside
               : dice < 75 ? Place::kScope
               : dice < 90 ? Place::kMerge
               : dice < 95 ? Place::kReplica
                           : Place::kForeignScope;
}

Step Program::make() {
  Step step{.action = Action::kMake, .place = any_of({Place::kScope, Place::kScope, Place::kReplica})};
  step.synchronization = any_of({Synchronization::kAuto, Synchronization::kOnWrite, Synchronization::kOnRead,
                                 Synchronization::kOnRead});
  if (chance(3)) step.synchronization = Synchronization::kNone;
  step.aggregation = static_cast<Aggregation>(below(4));
  if (chance(30)) step.trainable = chance(50);
  const bool floating = step.aggregation == Aggregation::kMean && !chance(5);
  const Type type = floating ? any_of({Type::kF16, Type::kBF16, Type::kF32, Type::kF64}) : any_type();
  fill(step, {Leaf{array(type, extents(below(2)))}});
  if ((step.place == Place::kReplica || layout_.workers > 1) && chance(4)) make_one_odd(step);
  return step;
}

Step Program::change(const Model& model) {
  Step step{.action = any_of({Action::kAssign, Action::kAssignAdd, Action::kAssignSub}),
            .place = any_of({Place::kOutside, Place::kScope, Place::kReplica, Place::kReplica,
                             Place::kReplica, Place::kMerge, Place::kUpdate, Place::kReplicaUpdate})};
  if (chance(3)) step.place = Place::kForeignScope;
  step.variable = static_cast<int>(below(model.variables().size()));
  const Model::Variable& variable = model.variables()[static_cast<std::size_t>(step.variable)];
  Array like = variable.components.front();
  if (chance(3)) like.type = like.type == Type::kF32 ? Type::kI32 : Type::kF32;
  if (chance(3)) like.extents.push_back(1);
  // The model adds exactly only what has 64 bits, and a difference below 0 would be near 2^64.
  if (like.type == Type::kU64 && step.action == Action::kAssignSub) step.action = Action::kAssign;
  fill(step, {Leaf{like}});
  if (chance(8)) {
    step.action = Action::kAssignNumber;
    const Array any = scalar(Type::kF64, static_cast<Number>(below(5)) / 2 - (chance(20) ? 1 : 0));
    for (Leaves& value : step.values) value = {Leaf{any}};
    if (step.place == Place::kReplicaUpdate) step.place = Place::kUpdate;
    return step;
  }
  const bool updates = step.place == Place::kUpdate || step.place == Place::kReplicaUpdate;
  const bool together = updates ? model.keeps_equal(variable) && (layout_.workers > 1 || chance(80))
                                : step.place != Place::kReplica;
  if (together || chance(10)) make_all_equal(step);
  if (step.place == Place::kReplica && others_hear_of_errors(variable) && chance(4)) make_one_odd(step);
  return step;
}

Step Program::scatter(const Model& model) {
  Step step = change(model);
  const auto first = static_cast<std::size_t>(Action::kScatterAdd);
  step.action = static_cast<Action>(first + below(7));
  const Model::Variable& variable = model.variables()[static_cast<std::size_t>(step.variable)];
  Extents dense = variable.components.front().extents;
  if (dense.empty() || dense.front() == 0) dense = {2};
  const Type type = chance(3) ? any_type() : variable.components.front().type;
  if (type == Type::kU64 && step.action == Action::kScatterSub) step.action = Action::kScatterAdd;
  const bool together = text(step.values.front()) == text(step.values.back());
  step.values.clear();
  fill(step, {rows_of(type, any_of({Type::kI32, Type::kI64}), dense)});
  const bool all_hear =
      together || layout_.workers == 1 || (step.place == Place::kReplica && others_hear_of_errors(variable));
  if (step.action == Action::kScatterDiv && !is_floating(type) && !all_hear)
    step.action = Action::kScatterMul;
  if (chance(3) && all_hear) {
    for (Leaves& value : step.values)
      if (!value.front().rows->elements.empty())
        value.front().rows->elements.front() = any_of<Number>({-1, 3});
  }
  if (together) make_all_equal(step);
  if (step.place == Place::kReplica && others_hear_of_errors(variable) && chance(4)) make_one_odd(step);
  return step;
}

/// Where a change is no collective, other workers learn only later that a replica could not make it.
bool Program::others_hear_of_errors(const Model::Variable& variable) const {
  return layout_.workers == 1 ||
         (variable.synchronization != Synchronization::kOnRead && variable.aggregation != Aggregation::kNone);
}

Step Program::follow(const Model& model) {
  Step step{
      .action = Action::kMovingAverage,
      .place = any_of({Place::kOutside, Place::kScope, Place::kReplica, Place::kReplica, Place::kMerge})};
  if (chance(3)) step.place = Place::kForeignScope;
  step.variable = static_cast<int>(below(model.variables().size()));
  Array like = model.variables()[static_cast<std::size_t>(step.variable)].components.front();
  if (chance(20)) like.type = any_of({Type::kI32, Type::kI8, Type::kF64, Type::kF32, Type::kF16});
  if (like.type == Type::kBool) like.type = Type::kF32;
  if (chance(3)) like.extents.push_back(1);
  fill(step, {Leaf{like}});
  if (step.place != Place::kReplica)
    make_all_equal(step);
  else if (chance(4))
    make_one_odd(step);
  step.decay = chance(3) ? 1.5 : any_of({0.0, 0.25, 0.5, 1.0});
  return step;
}

Step Program::reduce(const Model& model) {
  Step step{.action =
                any_of({Action::kReduce, Action::kReduce, Action::kReduce, Action::kReduceAlong,
                        Action::kReduceAlong, Action::kReduceTo, Action::kBatchReduceTo, Action::kMergeSum})};
  place_across(step);
  step.op = any_op();
  step.destinations = static_cast<int>(1 + below(3));
  if (step.action == Action::kReduce || step.action == Action::kReduceAlong) {
    step.source = any_of({Source::kPerReplica, Source::kPerReplica, Source::kPerReplica, Source::kPlain,
                          Source::kMirrored, Source::kVariable});
  }
  if (step.action == Action::kReduce && chance(10)) {
    step.source = Source::kStructure;
    const auto tensor = [&] { return Leaf{array(any_type(), extents())}; };
    fill(step, {tensor(), tensor(), tensor()});
    // Of the plain one a worker has one value, and the Mirrored is everywhere the same.
    for (std::size_t r = 0; r < step.values.size(); ++r) {
      step.values[r][1] = step.values[r - r % static_cast<std::size_t>(layout_.devices)][1];
      step.values[r][2] = step.values[0][2];
    }
    return step;
  }
  if (step.action == Action::kMergeSum) step.place = Place::kMerge;
  if (step.action == Action::kReduceAlong && step.source == Source::kMirrored) step.source = Source::kPlain;
  if (step.source == Source::kVariable) {
    step.variable = static_cast<int>(below(model.variables().size()));
    const auto rank =
        model.variables()[static_cast<std::size_t>(step.variable)].components.front().extents.size();
    for (std::size_t axis = 0; axis < rank; ++axis)
      if (chance(50)) step.axes.push_back(static_cast<int>(axis));
    return step;
  }
  const bool any_form = step.action == Action::kReduce && step.source != Source::kMirrored;
  step.form = any_form                                ? static_cast<Form>(below(9))
              : step.action == Action::kBatchReduceTo ? Form::kList
                                                      : Form::kTensor;
  fill(step, leaves(step.form));
  if (step.source != Source::kPerReplica) {
    make_all_equal(step);
    // With several workers each has a value of its own.
    if (step.source == Source::kPlain && layout_.workers > 1)
      for (Leaves& value : step.values)
        for (Leaf& leaf : value) leaf = like(leaf);
  }
  if (step.action == Action::kReduceAlong) {
    const auto rank = static_cast<int>(step.values.front().front().values.extents.size());
    for (int axis = 0; axis < rank; ++axis)
      if (chance(50)) step.axes.push_back(chance(30) ? axis - rank : axis);
    if (chance(3)) step.axes.push_back(rank);
    if (chance(3) && !step.axes.empty()) step.axes.push_back(step.axes.front());
    if (!step.axes.empty() && step.source == Source::kPerReplica && chance(50))
      for (Leaves& value : step.values) {
        Array& own = value.front().values;
        own = array(own.type, ragged(own.extents, step.axes.front()));
      }
  }
  if (step.source == Source::kPerReplica && chance(5)) make_one_odd(step);
  return step;
}

Extents Program::ragged(Extents extents, int axis) {
  const int rank = static_cast<int>(extents.size());
  const int along = axis < 0 ? axis + rank : axis;
  if (along >= 0 && along < rank)
    extents[static_cast<std::size_t>(along)] = static_cast<std::int64_t>(below(4));
  return extents;
}

Step Program::concatenate() {
  Step step{.action = any_of({Action::kGather, Action::kAllGather}), .place = Place::kReplica};
  if (step.action == Action::kGather) place_across(step);
  step.form = any_of({Form::kTensor, Form::kTensor, Form::kList, Form::kSlices});
  Leaves first = leaves(step.form);
  const auto rank = first.empty()
                        ? 1
                        : static_cast<int>(first.front().rows ? first.front().dense.size()
                                                              : first.front().values.extents.size());
  const int axis = rank == 0 ? 0 : static_cast<int>(below(static_cast<std::size_t>(rank)));
  step.axes = {chance(3) ? rank : chance(30) && rank > 0 ? axis - rank : axis};
  // Of one form, so that one axis fits all.
  for (Leaf& leaf : first)
    if (!leaf.rows) leaf = Leaf{array(any_type(), first.front().values.extents)};
  fill(step, first);
  if (step.form == Form::kTensor && chance(50))
    for (Leaves& value : step.values)
      value = {
          Leaf{array(value.front().values.type, ragged(value.front().values.extents, step.axes.front()))}};
  if (step.action == Action::kGather && chance(15)) step.source = Source::kPlain;
  if (step.source == Source::kPerReplica && step.form != Form::kSlices && chance(5)) make_one_odd(step);
  return step;
}

Step Program::in_replicas() {
  Step step{
      .action = any_of({Action::kAllReduce, Action::kAllReduce, Action::kAllReduce, Action::kAllReduceInPlace,
                        Action::kReduceScatter, Action::kMergeAndRun, Action::kPassThrough}),
      .place = Place::kReplica,
      .op = any_op()};
  switch (step.action) {
    case Action::kAllReduceInPlace: step.form = Form::kList; break;
    case Action::kReduceScatter:
    case Action::kMergeAndRun: step.form = Form::kTensor; break;
    default: step.form = static_cast<Form>(below(9));
  }
  Leaves first = leaves(step.form);
  if (step.action == Action::kReduceScatter) {
    Extents whole = extents(1);
    const int axis = static_cast<int>(below(whole.size()));
    std::int64_t all = 0;
    for (int replica = 0; replica < layout_.replicas(); ++replica) {
      step.parts.push_back(chance(70) ? 2 : static_cast<std::int64_t>(below(4)));
      all += step.parts.back();
    }
    whole[static_cast<std::size_t>(axis)] = all + (chance(5) ? 1 : 0);
    step.axes = {chance(30) ? axis - static_cast<int>(whole.size()) : axis};
    first = {Leaf{array(any_type(), whole)}};
  }
  fill(step, first);
  const bool agrees = step.action == Action::kPassThrough || step.action == Action::kReduceScatter;
  if (!agrees && chance(5)) make_one_odd(step);
  return step;
}

Step Program::next(const Model& model) {
  if (model.variables().empty() || chance(10)) return make();
  const std::size_t dice = below(100);
  if (dice < 22) return change(model);
  if (dice < 34) return scatter(model);
  if (dice < 40) return follow(model);
  if (dice < 62) return reduce(model);
  if (dice < 72) return concatenate();
  if (dice < 88) return in_replicas();
  if (dice < 97) {
    Step step{
        .action = Action::kRead,
        .place = any_of({Place::kOutside, Place::kScope, Place::kReplica, Place::kMerge, Place::kUpdate})};
    if (chance(5)) step.place = Place::kForeignScope;
    step.variable = static_cast<int>(below(model.variables().size()));
    return step;
  }
  if (dice < 98) {
    Step step{.action = Action::kBroadcast, .destinations = static_cast<int>(1 + below(3))};
    place_across(step);
    fill(step, leaves(Form::kTensor));
    make_all_equal(step);
    return step;
  }
  return {.action = Action::kAsk,
          .place = any_of({Place::kOutside, Place::kScope, Place::kReplica, Place::kMerge, Place::kUpdate})};
}

}  // namespace cohort::model
