// One step of each optimizer, element by element, on CPUs and GPUs alike. 16-bit elements are
// computed in float32 and rounded once.
//
// A rule is a struct with the constants of a step, how many slots a variable has, and a class
// `Element<T>`: the constants as elements of type T need them, and what becomes of one element.
// A new optimizer adds its rule to `OptimizerStep` here, and a kernel in src/cuda/kernel_bodies.h.
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <variant>

#include <cohort/device/dtype.h>

namespace cohort {

/// The type in which elements of type T are computed.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// variable -= rate * gradient
struct SgdStep {
  double rate = 0;

  static constexpr std::size_t kSlots = 0;

  /// Why a graph of a GPU, which repeats a step as it was, cannot have one; null where it can.
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// velocity = momentum * velocity - rate * gradient; variable += velocity, or, with
/// `nesterov`, momentum * velocity - rate * gradient.
struct MomentumStep {
  double rate = 0;
  double momentum = 0;
  bool nesterov = false;

  static constexpr std::size_t kSlots = 1;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

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

struct OptimizerStep {
  std::variant<SgdStep, MomentumStep, AdamStep> rule;
  double gradient_factor = 1;  ///< what each element of the gradient is multiplied with first
};

template <class T>
class SgdStep::Element {
 public:
  explicit constexpr Element(const SgdStep& step) : rate_(static_cast<Wide<T>>(step.rate)) {}

  constexpr void update(T& value, Wide<T> slope) const {
    value = T(static_cast<Wide<T>>(value) - rate_ * slope);
  }

 private:
  Wide<T> rate_;
};

template <class T>
class MomentumStep::Element {
 public:
  explicit constexpr Element(const MomentumStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        momentum_(static_cast<Wide<T>>(step.momentum)),
        nesterov_(step.nesterov) {}

  constexpr void update(T& value, T& velocity, Wide<T> slope) const {
    const Wide<T> descent = rate_ * slope;
    const Wide<T> moved = momentum_ * static_cast<Wide<T>>(velocity) - descent;
    velocity = T(moved);
    const Wide<T> change = nesterov_ ? momentum_ * moved - descent : moved;
    value = T(static_cast<Wide<T>>(value) + change);
  }

 private:
  Wide<T> rate_;
  Wide<T> momentum_;
  bool nesterov_;
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

  constexpr void update(T& value, T& first_moment, T& second_moment, Wide<T> slope) const {
    const Wide<T> first = beta_1_ * static_cast<Wide<T>>(first_moment) + rest_1_ * slope;
    const Wide<T> second = beta_2_ * static_cast<Wide<T>>(second_moment) + rest_2_ * slope * slope;
    first_moment = T(first);
    second_moment = T(second);
    value = T(static_cast<Wide<T>>(value) - rate_ * first / (std::sqrt(second) + epsilon_));
  }

 private:
  Wide<T> rate_;
  Wide<T> beta_1_;
  Wide<T> beta_2_;
  Wide<T> rest_1_;
  Wide<T> rest_2_;
  Wide<T> epsilon_;
};

}  // namespace cohort
