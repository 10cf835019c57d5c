// Random steps: mostly such as make sense for the variables that there are, now and then such as do not.
#pragma once

#include <cstdint>
#include <random>

#include "model.h"

namespace cohort::model {

class Program {
 public:
  /// The same steps for the same seed, in every process.
  Program(Layout layout, std::uint64_t seed) : layout_(layout), random_(seed) {}

  [[nodiscard]] Step next(const Model& model);

  /// How many steps this program has, if none of them fails.
  [[nodiscard]] int length() { return static_cast<int>(below(5)) + 2; }

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
  template <class T>
  T any_of(std::initializer_list<T> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(below(values.size())));
  }

  Type any_type() { return static_cast<Type>(below(kTypes)); }
  Op any_op() { return chance(3) ? Op::kMax : any_of({Op::kSum, Op::kMean}); }
  Number number(Type type);
  Extents extents(std::size_t least_rank = 0);
  Array array(Type type, const Extents& extents);
  Leaf rows_of(Type type, Type index_type, const Extents& dense);
  Leaves leaves(Form form);
  Leaf like(const Leaf& leaf);
  Extents ragged(Extents extents, int axis);

  Step make();
  Step change(const Model& model);
  Step scatter(const Model& model);
  Step follow(const Model& model);
  Step reduce(const Model& model);
  Step concatenate();
  Step in_replicas();

  /// Values for all replicas: other numbers, the same form.
  void fill(Step& step, const Leaves& first);
  void make_one_odd(Step& step);
  [[nodiscard]] bool others_hear_of_errors(const Model::Variable& variable) const;
  void place_across(Step& step);
  void make_all_equal(Step& step);

  Layout layout_;
  std::mt19937_64 random_;
};

}  // namespace cohort::model
