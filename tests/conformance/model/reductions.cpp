#include "model.h"

#include <algorithm>

namespace cohort::model {

Type mean_type(Type type) {
  if (is_floating(type)) return type;
  return bits(type) <= 16 ? Type::kF32 : Type::kF64;
}

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

void require_same_kind(const std::vector<Array>& arrays) {
  for (const Array& array : arrays)
    require_agreement(array.type == arrays.front().type &&
                      array.extents.size() == arrays.front().extents.size());
}

void require_alike(const std::vector<Leaves>& parts) {
  for (const Leaves& part : parts) require_agreement(std::ranges::equal(part, parts.front(), alike));
}

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

Leaves reduced(Op op, const std::vector<Leaves>& parts) {
  for (const Leaves& part : parts) require_agreement(part.size() == parts.front().size());
  Leaves result;
  for (std::size_t leaf = 0; leaf < parts.front().size(); ++leaf) {
    std::vector<Leaf> of_leaf;
    of_leaf.reserve(parts.size());
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

Array gathered(const std::vector<Array>& parts, int axis) {
  require_same_kind(parts);
  require(!parts.front().extents.empty());
  const int along = from_front(axis, parts.front().extents);
  Extents others = parts.front().extents;
  others[static_cast<std::size_t>(along)] = 0;
  for (const Array& part : parts) {
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

}  // namespace cohort::model
