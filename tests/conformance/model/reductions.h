// What several contributions become: the arithmetic of the model's reductions and gatherings. Mistakes are
// Refusals.
#pragma once

#include <vector>

#include "refusal.h"
#include "step.h"

namespace cohort::model {

/// The dtype of a mean.
[[nodiscard]] Type mean_type(Type type);

inline void require_arithmetic(Type type) { require(type != Type::kBool); }

/// Whether rows fit the tensor that they are of.
[[nodiscard]] bool has_rows(const Leaf& leaf);

/// Whether two leaves can be reduced together.
[[nodiscard]] bool alike(const Leaf& a, const Leaf& b);

/// What is compared before all else: a replica that is the only odd one may be the only one that makes no
/// mistake, and then hears of those of the others.
void require_same_kind(const std::vector<Array>& arrays);  ///< dtype and rank
void require_alike(const std::vector<Leaves>& parts);

/// The sum or mean of what several contribute; a single contribution is the result as it is.
[[nodiscard]] Leaf reduced(Op op, const std::vector<Leaf>& parts);

/// Leaf by leaf.
[[nodiscard]] Leaves reduced(Op op, const std::vector<Leaves>& parts);

/// An axis counted from the front.
[[nodiscard]] int from_front(int axis, const Extents& extents);

/// Whether each axis is among `axes`, which name each once.
[[nodiscard]] std::vector<bool> marked(const std::vector<int>& axes, const Extents& extents);

/// Tensors one after the other.
[[nodiscard]] Array gathered(const std::vector<Array>& parts, int axis);

/// The tensor that has only the rows of a leaf, those named twice added up.
[[nodiscard]] Array dense(const Leaf& leaf);

}  // namespace cohort::model
