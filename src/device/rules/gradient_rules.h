// Rules of optimizers that keep velocities, or sums and means of squares; optimizer_step.h says what a rule
// is.
#pragma once

#include <cmath>
#include <cstddef>

#include "arithmetic.h"

namespace cohort {

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

/// s += gradient^2; variable -= rate * gradient / sqrt(s + epsilon)
struct AdagradStep {
  double rate = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 1;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// s = rho s + (1 - rho) gradient^2; change = sqrt(c + epsilon) / sqrt(s + epsilon) * gradient;
/// c = rho c + (1 - rho) change^2; variable -= rate * change
struct AdadeltaStep {
  double rate = 0;
  double rho = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// s = rho s + (1 - rho) gradient^2; centred, with a = rho a + (1 - rho) gradient, s - a^2 is what counts;
/// change = rate * gradient / sqrt(s + epsilon); variable -= change, or, with momentum,
/// velocity = momentum * velocity + change; variable -= velocity.
struct RmsPropStep {
  double rate = 0;
  double rho = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 1;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// RmsPropStep with momentum.
struct RmsPropMomentumStep {
  double rate = 0;
  double rho = 0;
  double epsilon = 0;
  double momentum = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// RmsPropStep with centred squares.
struct CenteredRmsPropStep {
  double rate = 0;
  double rho = 0;
  double epsilon = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// RmsPropStep with centred squares and momentum.
struct CenteredRmsPropMomentumStep {
  double rate = 0;
  double rho = 0;
  double epsilon = 0;
  double momentum = 0;

  static constexpr std::size_t kSlots = 3;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

/// s' = s + gradient^2; z += gradient + 2 shrinkage variable - (sqrt(s') - sqrt(s)) / rate * variable;
/// variable = (clamp(z, -l1, l1) - z) / (sqrt(s') / rate + 2 l2)
struct FtrlStep {
  double rate = 0;
  double l1 = 0;
  double l2 = 0;
  double shrinkage = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = nullptr;

  template <class T>
  class Element;
};

template <class T>
class SgdStep::Element {
 public:
  explicit constexpr Element(const SgdStep& step) : rate_(static_cast<Wide<T>>(step.rate)) {}

  constexpr Wide<T> updated(Wide<T> value, Wide<T> slope) const { return value - rate_ * slope; }

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

  constexpr Wide<T> updated(Wide<T> value, T& velocity, Wide<T> slope) const {
    const Wide<T> descent = rate_ * slope;
    const Wide<T> moved = momentum_ * static_cast<Wide<T>>(velocity) - descent;
    velocity = T(moved);
    return value + (nesterov_ ? momentum_ * moved - descent : moved);
  }

 private:
  Wide<T> rate_;
  Wide<T> momentum_;
  bool nesterov_;
};

template <class T>
class AdagradStep::Element {
 public:
  explicit constexpr Element(const AdagradStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)), epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& squares, Wide<T> slope) const {
    const Wide<T> sum = static_cast<Wide<T>>(squares) + slope * slope;
    squares = T(sum);
    return value - rate_ * slope / std::sqrt(sum + epsilon_);
  }

 private:
  Wide<T> rate_;
  Wide<T> epsilon_;
};

template <class T>
class AdadeltaStep::Element {
 public:
  explicit constexpr Element(const AdadeltaStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        rho_(static_cast<Wide<T>>(step.rho)),
        rest_(static_cast<Wide<T>>(1 - step.rho)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& squares, T& changes, Wide<T> slope) const {
    const Wide<T> mean = rho_ * static_cast<Wide<T>>(squares) + rest_ * slope * slope;
    const Wide<T> before = static_cast<Wide<T>>(changes);
    const Wide<T> change = std::sqrt(before + epsilon_) / std::sqrt(mean + epsilon_) * slope;
    squares = T(mean);
    changes = T(rho_ * before + rest_ * change * change);
    return value - rate_ * change;
  }

 private:
  Wide<T> rate_;
  Wide<T> rho_;
  Wide<T> rest_;
  Wide<T> epsilon_;
};

template <class T>
class RmsPropStep::Element {
 public:
  explicit constexpr Element(const RmsPropStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        rho_(static_cast<Wide<T>>(step.rho)),
        rest_(static_cast<Wide<T>>(1 - step.rho)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& squares, Wide<T> slope) const {
    const Wide<T> square = rho_ * static_cast<Wide<T>>(squares) + rest_ * slope * slope;
    squares = T(square);
    const Wide<T> change = rate_ * slope / std::sqrt(square + epsilon_);
    return value - change;
  }

 private:
  Wide<T> rate_;
  Wide<T> rho_;
  Wide<T> rest_;
  Wide<T> epsilon_;
};

template <class T>
class RmsPropMomentumStep::Element {
 public:
  explicit constexpr Element(const RmsPropMomentumStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        rho_(static_cast<Wide<T>>(step.rho)),
        rest_(static_cast<Wide<T>>(1 - step.rho)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)),
        momentum_(static_cast<Wide<T>>(step.momentum)) {}

  constexpr Wide<T> updated(Wide<T> value, T& squares, T& velocity, Wide<T> slope) const {
    const Wide<T> square = rho_ * static_cast<Wide<T>>(squares) + rest_ * slope * slope;
    squares = T(square);
    const Wide<T> change = rate_ * slope / std::sqrt(square + epsilon_);
    const Wide<T> moved = momentum_ * static_cast<Wide<T>>(velocity) + change;
    velocity = T(moved);
    return value - moved;
  }

 private:
  Wide<T> rate_;
  Wide<T> rho_;
  Wide<T> rest_;
  Wide<T> epsilon_;
  Wide<T> momentum_;
};

template <class T>
class CenteredRmsPropStep::Element {
 public:
  explicit constexpr Element(const CenteredRmsPropStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        rho_(static_cast<Wide<T>>(step.rho)),
        rest_(static_cast<Wide<T>>(1 - step.rho)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)) {}

  constexpr Wide<T> updated(Wide<T> value, T& squares, T& mean, Wide<T> slope) const {
    const Wide<T> square = rho_ * static_cast<Wide<T>>(squares) + rest_ * slope * slope;
    squares = T(square);
    const Wide<T> average = rho_ * static_cast<Wide<T>>(mean) + rest_ * slope;
    mean = T(average);
    const Wide<T> change = rate_ * slope / std::sqrt(square - average * average + epsilon_);
    return value - change;
  }

 private:
  Wide<T> rate_;
  Wide<T> rho_;
  Wide<T> rest_;
  Wide<T> epsilon_;
};

template <class T>
class CenteredRmsPropMomentumStep::Element {
 public:
  explicit constexpr Element(const CenteredRmsPropMomentumStep& step)
      : rate_(static_cast<Wide<T>>(step.rate)),
        rho_(static_cast<Wide<T>>(step.rho)),
        rest_(static_cast<Wide<T>>(1 - step.rho)),
        epsilon_(static_cast<Wide<T>>(step.epsilon)),
        momentum_(static_cast<Wide<T>>(step.momentum)) {}

  constexpr Wide<T> updated(Wide<T> value, T& squares, T& mean, T& velocity, Wide<T> slope) const {
    const Wide<T> square = rho_ * static_cast<Wide<T>>(squares) + rest_ * slope * slope;
    squares = T(square);
    const Wide<T> average = rho_ * static_cast<Wide<T>>(mean) + rest_ * slope;
    mean = T(average);
    const Wide<T> change = rate_ * slope / std::sqrt(square - average * average + epsilon_);
    const Wide<T> moved = momentum_ * static_cast<Wide<T>>(velocity) + change;
    velocity = T(moved);
    return value - moved;
  }

 private:
  Wide<T> rate_;
  Wide<T> rho_;
  Wide<T> rest_;
  Wide<T> epsilon_;
  Wide<T> momentum_;
};

template <class T>
class FtrlStep::Element {
 public:
  explicit constexpr Element(const FtrlStep& step)
      : inverse_rate_(static_cast<Wide<T>>(1 / step.rate)),
        l1_(static_cast<Wide<T>>(step.l1)),
        l2_(static_cast<Wide<T>>(2 * step.l2)),
        shrinkage_(static_cast<Wide<T>>(2 * step.shrinkage)) {}

  constexpr Wide<T> updated(Wide<T> value, T& squares, T& linear, Wide<T> slope) const {
    const Wide<T> before = static_cast<Wide<T>>(squares);
    const Wide<T> sum = before + slope * slope;
    const Wide<T> root = std::sqrt(sum);
    const Wide<T> z = static_cast<Wide<T>>(linear) + slope + shrinkage_ * value -
                      (root - std::sqrt(before)) * inverse_rate_ * value;
    squares = T(sum);
    linear = T(z);
    const Wide<T> clamped = z < -l1_ ? -l1_ : z > l1_ ? l1_ : z;
    return (clamped - z) / (root * inverse_rate_ + l2_);
  }

 private:
  Wide<T> inverse_rate_;
  Wide<T> l1_;
  Wide<T> l2_;
  Wide<T> shrinkage_;
};

}  // namespace cohort
