// One step of each optimizer, element by element, on CPUs and GPUs alike.
//
// What is common to all rules is in `ElementStep`. A new optimizer adds its rule, which optimizer_rules.h
// explains, to `OptimizerRule` here, and a kernel in src/cuda/kernels.h.
#pragma once

#include <limits>
#include <utility>
#include <variant>

#include "optimizer_rules.h"

namespace cohort {

/// What a step does beside its rule, in this order.
struct CommonStep {
  double gradient_factor = 1;  ///< what each element of the gradient is multiplied with first
  double largest_gradient = std::numeric_limits<double>::infinity();  ///< then it is clipped to this
  double weight_decay = 0;     ///< part of a value that is taken away before the rule
  double average_kept = 0;     ///< what the average of a variable's values keeps of itself
  bool takes_average = false;  ///< whether the variable becomes the average
  bool has_master = false;   ///< a slot after those of the rule: the value in float32, as all slots are then
  bool has_average = false;  ///< the last slot

  /// Whether the factor is all there is.
  [[nodiscard]] constexpr bool is_plain() const {
    return largest_gradient == std::numeric_limits<double>::infinity() && weight_decay == 0 && !has_master &&
           !has_average;
  }
  [[nodiscard]] constexpr std::size_t slots() const {
    return static_cast<std::size_t>(has_master) + static_cast<std::size_t>(has_average);
  }
};

using OptimizerRule =
    std::variant<SgdStep<double>, MomentumStep<double>, AdamStep<double, false>, AdamStep<double, true>,
                 AdamaxStep<double>, NadamStep<double>, AdagradStep<double>, AdadeltaStep<double>,
                 RmsPropStep<double, false, false>, RmsPropStep<double, false, true>,
                 RmsPropStep<double, true, false>, RmsPropStep<double, true, true>, FtrlStep<double>,
                 LionStep<double>, MomentsStep<double>, LambStep<double>>;

struct OptimizerStep {
  OptimizerRule rule;
  CommonStep common = {};
};

/// A rule with what is common to all. T is the type of a variable's elements; S that of its slots, which
/// is float if the variable has a master.
template <class Rule, class T, class S = T>
class ElementStep {
 public:
  constexpr ElementStep(const Rule& rule, const CommonStep& common)
      : rule_(converted<Wide<S>>(rule)),
        factor_(static_cast<Wide<T>>(common.gradient_factor)),
        largest_(static_cast<Wide<T>>(common.largest_gradient)),
        decay_(static_cast<Wide<T>>(common.weight_decay)),
        average_(converted<Wide<T>>(Decay<double>{common.average_kept})),
        takes_average_(common.takes_average) {}

  template <class... Slots>
  constexpr void update(T& value, T gradient, Slots&... slots) const {
    value = T(rule_.updated(static_cast<Wide<T>>(value), factor_ * static_cast<Wide<T>>(gradient), slots...));
  }

  /// The same with all that a step may have; `master` and `average` are null where the variable has none.
  template <class... Slots>
  constexpr void update_all(T& value, T gradient, S* master, S* average, Slots&... slots) const {
    if (master != nullptr && average != nullptr)
      update_with<true, true>(value, gradient, master, average, slots...);
    else if (master != nullptr)
      update_with<true, false>(value, gradient, master, average, slots...);
    else if (average != nullptr)
      update_with<false, true>(value, gradient, master, average, slots...);
    else
      update_with<false, false>(value, gradient, master, average, slots...);
  }

  /// The same where the compiler knows what there is: loops over elements are vectorized then.
  template <bool kHasMaster, bool kHasAverage, class... Slots>
  constexpr void update_with(T& value, T gradient, S* master, S* average, Slots&... slots) const {
    const Wide<T> slope = factor_ * static_cast<Wide<T>>(gradient);
    const Wide<T> bounded = slope > largest_ ? largest_ : slope < -largest_ ? -largest_ : slope;
    Wide<T> wide = static_cast<Wide<T>>(value);
    if constexpr (kHasMaster) wide = static_cast<Wide<T>>(*master);
    wide = rule_.updated(wide - decay_ * wide, bounded, slots...);
    if constexpr (kHasAverage) {
      const Wide<T> mean = kept(*average, average_.mean(static_cast<Wide<T>>(*average), wide));
      wide = takes_average_ ? mean : wide;
    }
    if constexpr (kHasMaster) *master = S(wide);
    value = T(wide);
  }

 private:
  decltype(converted<Wide<S>>(std::declval<Rule>())) rule_;
  Wide<T> factor_;
  Wide<T> largest_;
  Wide<T> decay_;
  Decay<Wide<T>> average_;
  bool takes_average_;
};

}  // namespace cohort
