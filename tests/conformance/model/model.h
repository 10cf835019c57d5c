// What a program must do: the rules of tf.distribute, with the deliberate differences of docs/conformance.md,
// on plain arrays. One Model plays all replicas of all workers; it shares no code with the library.
#pragma once

#include <string>
#include <vector>

#include "step.h"

namespace cohort::model {

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
