// What a program must do: the rules of tf.distribute, with the deliberate differences of docs/conformance.md,
// on plain arrays. One Model plays all replicas of all workers; it shares no code with the library.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "step.h"

namespace cohort::model {

// How it says that a step ends with an error.

struct Refusal {
  std::string code;  ///< the name of its ErrorCode
  bool any = false;  ///< who notices first decides on the kind
};

[[noreturn]] inline void refuse(const char* code = "invalid_argument") { throw Refusal{code}; }
inline void require(bool condition, const char* code = "invalid_argument") {
  if (!condition) refuse(code);
}
/// What replicas have to agree on.
inline void require_agreement(bool condition) {
  if (!condition) throw Refusal{"invalid_argument", true};
}

/// What each has to get right: one alone that does not is an error of which the others hear.
template <class T>
void require_each(const std::vector<T>& values, const std::function<bool(const T&)>& is_right) {
  const auto right = std::ranges::count_if(values, is_right);
  require(right > 0);
  require_agreement(right == std::ssize(values));
}

// What several contributions become: the arithmetic of its reductions and gatherings. Mistakes are Refusals.

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

struct Expected {
  std::string error = {};  ///< its code; empty: none

  /// Replicas differ, or the error follows a collective: who notices first decides on the kind.
  bool any_error = false;

  /// By replica of all workers, or one for all.
  std::vector<Leaves> values = {};
};

class Model {
 public:
  explicit Model(Layout layout) : layout_(layout) {}

  /// Carries out a step. After an error a program ends.
  [[nodiscard]] Expected apply(const Step& step);

  struct Variable {
    Synchronization synchronization;
    Aggregation aggregation;
    std::vector<Array> components;  ///< by replica of all workers; or a single copy
  };
  [[nodiscard]] const std::vector<Variable>& variables() const { return variables_; }

  /// Whether every write must leave the components of a variable equal.
  [[nodiscard]] bool keeps_equal(const Variable& variable) const;

 private:
  Expected make(const Step& step);
  Expected assign(const Step& step);
  Expected assign_number(const Step& step);
  Expected scatter(const Step& step);
  Expected read(const Step& step) const;
  Expected follow(const Step& step);
  Expected reduce(const Step& step) const;
  Expected reduce_structure(const Step& step) const;
  Expected reduce_along(const Step& step) const;
  Expected gather(const Step& step) const;
  Expected all_reduce(const Step& step) const;
  Expected all_gather(const Step& step) const;
  Expected reduce_scatter(const Step& step) const;
  Expected ask(const Step& step) const;

  [[nodiscard]] bool is_foreign(const Step& step) const;
  [[nodiscard]] bool is_part(const Variable& variable) const;  ///< ON_READ, one component per replica
  [[nodiscard]] bool in_replicas(const Step& step) const;
  [[nodiscard]] bool differ_from_each_other(const std::vector<Leaves>& values) const;
  void share_out(Variable& variable, const Array& sum) const;

  Layout layout_;
  std::vector<Variable> variables_;
};

}  // namespace cohort::model
