// Rules of optimizers that keep moments of the gradients; optimizer_step.h says what a rule is.
#pragma once

#include <cmath>
#include <cstddef>

#include "arithmetic.h"

namespace cohort {

template <class T>
[[nodiscard]] constexpr T larger_of(T a, T b) {
  return a < b ? b : a;
}

/// m = beta_1 m + (1 - beta_1) gradient; v = beta_2 v + (1 - beta_2) gradient^2;
/// variable -= rate * m / (sqrt(v) + epsilon)
struct AdamStep {
  double rate = 0;  ///< corrected for the bias of both moments
  double beta_1 = 0;
  double beta_2 = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = "an update by Adam, which depends on the number of the step,";

  template <class T>
  class Element;
};

/// As AdamStep, but divides by the largest v that there was.
struct AmsGradStep {
  double rate = 0;
  double beta_1 = 0;
  double beta_2 = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 3;
  static constexpr const char* kNotRepeated = AdamStep::kNotRepeated;

  template <class T>
  class Element;
};

/// m as of AdamStep; u = max(beta_2 u, |gradient|); variable -= rate * m / (u + epsilon)
struct AdamaxStep {
  double rate = 0;  ///< corrected for the bias of m
  double beta_1 = 0;
  double beta_2 = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = "an update by Adamax, which depends on the number of the step,";

  template <class T>
  class Element;
};

/// m and v as of AdamStep;
/// variable -= (moment_rate * m + gradient_rate * gradient) / (sqrt(v / second_bias) + epsilon)
struct NadamStep {
  double moment_rate = 0;
  double gradient_rate = 0;
  double beta_1 = 0;
  double beta_2 = 0;
  double second_bias = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = "an update by Nadam, which depends on the number of the step,";

  template <class T>
  class Element;
};

/// variable -= rate * sign(beta_1 m + (1 - beta_1) gradient); m = beta_2 m + (1 - beta_2) gradient
struct LionStep {
  double rate = 0;
  double beta_1 = 0;
  double beta_2 = 0;

  static constexpr std::size_t kSlots = 1;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// m and v as of AdamStep; the variable stays.
struct MomentsStep {
  double beta_1 = 0;
  double beta_2 = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// Along `direction`, from what MomentsStep left: variable -= rate * direction; the slots stay.
struct LambStep {
  double rate = 0;  ///< with the ratio of the norms
  double first_bias = 0;
  double second_bias = 0;
  double epsilon = 0;
  double weight_decay = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = "an update by LAMB, which depends on the number of the step,";

  template <class T>
  class Element;
};

template <class T>
class AdamStep::Element {
 public:
  explicit constexpr Element(const AdamStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        beta_1_(static_cast<Wide<T>>(step.beta_1)),
        beta_2_(static_cast<Wide<T>>(step.beta_2)),
        rest_1_(static_cast<Wide<T>>(1 - step.beta_1)),
        rest_2_(static_cast<Wide<T>>(1 - step.beta_2)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& first_moment, T& second_moment, Wide<T> slope) const {
    const Wide<T> first = beta_1_ * static_cast<Wide<T>>(first_moment) + rest_1_ * slope;
    const Wide<T> second = beta_2_ * static_cast<Wide<T>>(second_moment) + rest_2_ * slope * slope;
    first_moment = T(first);
    second_moment = T(second);
    return value - rate_ * first / (std::sqrt(second) + epsilon_);
  }

 private:
  Wide<T> rate_;
  Wide<T> beta_1_;
  Wide<T> beta_2_;
  Wide<T> rest_1_;
  Wide<T> rest_2_;
  Wide<T> epsilon_;
};

template <class T>
class AmsGradStep::Element {
 public:
  explicit constexpr Element(const AmsGradStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        beta_1_(static_cast<Wide<T>>(step.beta_1)),
        beta_2_(static_cast<Wide<T>>(step.beta_2)),
        rest_1_(static_cast<Wide<T>>(1 - step.beta_1)),
        rest_2_(static_cast<Wide<T>>(1 - step.beta_2)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& first_moment, T& second_moment, T& largest,
                            Wide<T> slope) const {
    const Wide<T> first = beta_1_ * static_cast<Wide<T>>(first_moment) + rest_1_ * slope;
    const Wide<T> second = beta_2_ * static_cast<Wide<T>>(second_moment) + rest_2_ * slope * slope;
    first_moment = T(first);
    second_moment = T(second);
    const Wide<T> divisor = larger_of(static_cast<Wide<T>>(largest), second);
    largest = T(divisor);
    return value - rate_ * first / (std::sqrt(divisor) + epsilon_);
  }

 private:
  Wide<T> rate_;
  Wide<T> beta_1_;
  Wide<T> beta_2_;
  Wide<T> rest_1_;
  Wide<T> rest_2_;
  Wide<T> epsilon_;
};

template <class T>
class AdamaxStep::Element {
 public:
  explicit constexpr Element(const AdamaxStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        beta_1_(static_cast<Wide<T>>(step.beta_1)),
        beta_2_(static_cast<Wide<T>>(step.beta_2)),
        rest_1_(static_cast<Wide<T>>(1 - step.beta_1)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& first_moment, T& largest, Wide<T> slope) const {
    const Wide<T> first = beta_1_ * static_cast<Wide<T>>(first_moment) + rest_1_ * slope;
    const Wide<T> divisor = larger_of(beta_2_ * static_cast<Wide<T>>(largest), slope < 0 ? -slope : slope);
    first_moment = T(first);
    largest = T(divisor);
    return value - rate_ * first / (divisor + epsilon_);
  }

 private:
  Wide<T> rate_;
  Wide<T> beta_1_;
  Wide<T> beta_2_;
  Wide<T> rest_1_;
  Wide<T> epsilon_;
};

template <class T>
class NadamStep::Element {
 public:
  explicit constexpr Element(const NadamStep& step)
      : moment_rate_(static_cast<Wide<T>>(step.moment_rate)),
        gradient_rate_(static_cast<Wide<T>>(step.gradient_rate)),
        beta_1_(static_cast<Wide<T>>(step.beta_1)),
        beta_2_(static_cast<Wide<T>>(step.beta_2)),
        rest_1_(static_cast<Wide<T>>(1 - step.beta_1)),
        rest_2_(static_cast<Wide<T>>(1 - step.beta_2)),
        second_bias_(static_cast<Wide<T>>(1 / step.second_bias)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& first_moment, T& second_moment, Wide<T> slope) const {
    const Wide<T> first = beta_1_ * static_cast<Wide<T>>(first_moment) + rest_1_ * slope;
    const Wide<T> second = beta_2_ * static_cast<Wide<T>>(second_moment) + rest_2_ * slope * slope;
    first_moment = T(first);
    second_moment = T(second);
    return value -
           (moment_rate_ * first + gradient_rate_ * slope) / (std::sqrt(second * second_bias_) + epsilon_);
  }

 private:
  Wide<T> moment_rate_;
  Wide<T> gradient_rate_;
  Wide<T> beta_1_;
  Wide<T> beta_2_;
  Wide<T> rest_1_;
  Wide<T> rest_2_;
  Wide<T> second_bias_;
  Wide<T> epsilon_;
};

template <class T>
class LionStep::Element {
 public:
  explicit constexpr Element(const LionStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        beta_1_(static_cast<Wide<T>>(step.beta_1)),
        beta_2_(static_cast<Wide<T>>(step.beta_2)),
        rest_1_(static_cast<Wide<T>>(1 - step.beta_1)),
        rest_2_(static_cast<Wide<T>>(1 - step.beta_2)) {}

  constexpr Wide<T> updated(Wide<T> value, T& moment, Wide<T> slope) const {
    const Wide<T> before = static_cast<Wide<T>>(moment);
    const Wide<T> direction = beta_1_ * before + rest_1_ * slope;
    moment = T(beta_2_ * before + rest_2_ * slope);
    return direction > 0 ? value - rate_ : direction < 0 ? value + rate_ : value - direction;
  }

 private:
  Wide<T> rate_;
  Wide<T> beta_1_;
  Wide<T> beta_2_;
  Wide<T> rest_1_;
  Wide<T> rest_2_;
};

template <class T>
class MomentsStep::Element {
 public:
  explicit constexpr Element(const MomentsStep& step)
      : beta_1_(static_cast<Wide<T>>(step.beta_1)),
        beta_2_(static_cast<Wide<T>>(step.beta_2)),
        rest_1_(static_cast<Wide<T>>(1 - step.beta_1)),
        rest_2_(static_cast<Wide<T>>(1 - step.beta_2)) {}

  constexpr Wide<T> updated(Wide<T> value, T& first_moment, T& second_moment, Wide<T> slope) const {
    const Wide<T> first = beta_1_ * static_cast<Wide<T>>(first_moment) + rest_1_ * slope;
    const Wide<T> second = beta_2_ * static_cast<Wide<T>>(second_moment) + rest_2_ * slope * slope;
    first_moment = T(first);
    second_moment = T(second);
    return value;
  }

 private:
  Wide<T> beta_1_;
  Wide<T> beta_2_;
  Wide<T> rest_1_;
  Wide<T> rest_2_;
};

template <class T>
class LambStep::Element {
 public:
  explicit constexpr Element(const LambStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        first_bias_(static_cast<Wide<T>>(1 / step.first_bias)),
        second_bias_(static_cast<Wide<T>>(1 / step.second_bias)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)),
        weight_decay_(static_cast<Wide<T>>(step.weight_decay)) {}

  constexpr Wide<T> updated(Wide<T> value, T& first_moment, T& second_moment, Wide<T> /*slope*/) const {
    return value - rate_ * direction(value, first_moment, second_moment);
  }

  /// m / first_bias / (sqrt(v / second_bias) + epsilon) + weight_decay * variable
  [[nodiscard]] constexpr Wide<T> direction(Wide<T> value, T first_moment, T second_moment) const {
    const Wide<T> first = static_cast<Wide<T>>(first_moment) * first_bias_;
    const Wide<T> second = static_cast<Wide<T>>(second_moment) * second_bias_;
    return first / (std::sqrt(second) + epsilon_) + weight_decay_ * value;
  }

 private:
  Wide<T> rate_;
  Wide<T> first_bias_;
  Wide<T> second_bias_;
  Wide<T> epsilon_;
  Wide<T> weight_decay_;
};

}  // namespace cohort
