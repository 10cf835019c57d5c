// The rules of optimizers: what a step does to one element. Each is an aggregate of the step's constants, all
// of one type W, and a function `updated`, which changes the element's slots and returns its new value.
// `kSlots` is how many slots there are. A rule with a `kNotRepeated` depends on the number of the step, which
// a graph of a GPU would repeat as it was; the text tells users so.
//
// A step is described in doubles. `converted` rounds them to the type in which elements are computed, once,
// and so what follows from a constant is a member as well, computed in double.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "arithmetic.h"

namespace cohort {

/// The same rule with constants of type W. No rule has other members.
template <class W, template <class, bool...> class Rule, bool... kForm>
[[nodiscard]] constexpr Rule<W, kForm...> converted(const Rule<double, kForm...>& rule) {
  constexpr std::size_t kConstants = sizeof(rule) / sizeof(double);
  const auto constants = std::bit_cast<std::array<double, kConstants>>(rule);
  std::array<W, kConstants> rounded{};
  for (std::size_t i = 0; i < kConstants; ++i) rounded[i] = static_cast<W>(constants[i]);
  return std::bit_cast<Rule<W, kForm...>>(rounded);
}

/// Rounds `value` into a slot, and returns it as it was.
template <class W, class T>
constexpr W kept(T& slot, W value) {
  slot = T(value);
  return value;
}

/// The weights of a running mean: of what it was, and of what comes.
template <class W>
struct Decay {
  W old = 0;
  W rest = 1 - old;

  [[nodiscard]] constexpr W mean(W before, W value) const { return old * before + rest * value; }
  [[nodiscard]] constexpr W mean_square(W before, W value) const {
    return old * before + rest * value * value;
  }
};

/// variable -= rate * gradient
template <class W>
struct SgdStep {
  W rate = 0;

  static constexpr std::size_t kSlots = 0;

  [[nodiscard]] constexpr W updated(W value, W slope) const { return value - rate * slope; }
};

/// velocity = momentum * velocity - rate * gradient; variable += velocity, or, with
/// `nesterov`, momentum * velocity - rate * gradient.
template <class W>
struct MomentumStep {
  W rate = 0;
  W momentum = 0;
  W nesterov = 0;  ///< 1 or 0

  static constexpr std::size_t kSlots = 1;

  template <class T>
  constexpr W updated(W value, W slope, T& velocity) const {
    const W descent = rate * slope;
    const W moved = kept(velocity, momentum * static_cast<W>(velocity) - descent);
    return value + (nesterov != 0 ? momentum * moved - descent : moved);
  }
};

/// s += gradient^2; variable -= rate * gradient / sqrt(s + epsilon)
template <class W>
struct AdagradStep {
  W rate = 0;
  W epsilon = 0;

  static constexpr std::size_t kSlots = 1;

  template <class T>
  constexpr W updated(W value, W slope, T& squares) const {
    const W sum = kept(squares, static_cast<W>(squares) + slope * slope);
    return value - rate * slope / std::sqrt(sum + epsilon);
  }
};

/// s = rho s + (1 - rho) gradient^2; change = sqrt(c + epsilon) / sqrt(s + epsilon) * gradient;
/// c = rho c + (1 - rho) change^2; variable -= rate * change
template <class W>
struct AdadeltaStep {
  W rate = 0;
  Decay<W> rho = {};
  W epsilon = 0;

  static constexpr std::size_t kSlots = 2;

  template <class T>
  constexpr W updated(W value, W slope, T& squares, T& changes) const {
    const W mean = kept(squares, rho.mean_square(static_cast<W>(squares), slope));
    const W before = static_cast<W>(changes);
    const W change = std::sqrt(before + epsilon) / std::sqrt(mean + epsilon) * slope;
    changes = T(rho.mean_square(before, change));
    return value - rate * change;
  }
};

/// s = rho s + (1 - rho) gradient^2; centred, with a = rho a + (1 - rho) gradient, s - a^2 is what counts;
/// change = rate * gradient / sqrt(s + epsilon); variable -= change, or, with momentum,
/// velocity = momentum * velocity + change; variable -= velocity.
template <class W, bool kCentered, bool kMomentum>
struct RmsPropStep {
  W rate = 0;
  Decay<W> rho = {};
  W epsilon = 0;
  W momentum = 0;

  static constexpr std::size_t kSlots = 1 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0);

  /// The slots are s, a and the velocity, as far as there are such.
  template <class T, class... Others>
  constexpr W updated(W value, W slope, T& squares, Others&... others) const {
    T* const slots[] = {&squares, &others...};
    W square = kept(squares, rho.mean_square(static_cast<W>(squares), slope));
    if constexpr (kCentered) {
      const W average = kept(*slots[1], rho.mean(static_cast<W>(*slots[1]), slope));
      square = square - average * average;
    }
    const W change = rate * slope / std::sqrt(square + epsilon);
    if constexpr (!kMomentum) return value - change;
    T& velocity = *slots[kSlots - 1];
    return value - kept(velocity, momentum * static_cast<W>(velocity) + change);
  }
};

/// s' = s + gradient^2; z += gradient + 2 shrinkage variable - (sqrt(s') - sqrt(s)) / rate * variable;
/// variable = (clamp(z, -l1, l1) - z) / (sqrt(s') / rate + 2 l2)
template <class W>
struct FtrlStep {
  W rate = 0;
  W l1 = 0;
  W l2 = 0;
  W shrinkage = 0;
  W inverse_rate = 1 / rate;
  W twice_l2 = 2 * l2;
  W twice_shrinkage = 2 * shrinkage;

  static constexpr std::size_t kSlots = 2;

  template <class T>
  constexpr W updated(W value, W slope, T& squares, T& linear) const {
    const W before = static_cast<W>(squares);
    const W sum = kept(squares, before + slope * slope);
    const W root = std::sqrt(sum);
    const W z = kept(linear, static_cast<W>(linear) + slope + twice_shrinkage * value -
                                 (root - std::sqrt(before)) * inverse_rate * value);
    const W clamped = z < -l1 ? -l1 : z > l1 ? l1 : z;
    return (clamped - z) / (root * inverse_rate + twice_l2);
  }
};

/// m = beta_1 m + (1 - beta_1) gradient; v = beta_2 v + (1 - beta_2) gradient^2; the variable stays.
template <class W>
struct MomentsStep {
  Decay<W> beta_1 = {};
  Decay<W> beta_2 = {};

  static constexpr std::size_t kSlots = 2;

  template <class T>
  constexpr W updated(W value, W slope, T& first_moment, T& second_moment) const {
    first_moment = T(beta_1.mean(static_cast<W>(first_moment), slope));
    second_moment = T(beta_2.mean_square(static_cast<W>(second_moment), slope));
    return value;
  }
};

/// m and v as of MomentsStep; variable -= rate * m / (sqrt(v) + epsilon), where as of AMSGrad, whose third
/// slot it is, the largest v that there was counts.
template <class W, bool kAmsGrad>
struct AdamStep {
  W rate = 0;  ///< corrected for the bias of both moments
  Decay<W> beta_1 = {};
  Decay<W> beta_2 = {};
  W epsilon = 0;

  static constexpr std::size_t kSlots = kAmsGrad ? 3 : 2;
  static constexpr const char* kNotRepeated = "an update by Adam, which depends on the number of the step,";

  template <class T, class... Largest>
  constexpr W updated(W value, W slope, T& first_moment, T& second_moment, Largest&... largest) const {
    const W first = kept(first_moment, beta_1.mean(static_cast<W>(first_moment), slope));
    W second = kept(second_moment, beta_2.mean_square(static_cast<W>(second_moment), slope));
    ((second = kept(largest, std::max(static_cast<W>(largest), second))), ...);
    return value - rate * first / (std::sqrt(second) + epsilon);
  }
};

/// m as of MomentsStep; u = max(beta_2 u, |gradient|); variable -= rate * m / (u + epsilon)
template <class W>
struct AdamaxStep {
  W rate = 0;  ///< corrected for the bias of m
  Decay<W> beta_1 = {};
  W beta_2 = 0;
  W epsilon = 0;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = "an update by Adamax, which depends on the number of the step,";

  template <class T>
  constexpr W updated(W value, W slope, T& first_moment, T& largest) const {
    const W first = kept(first_moment, beta_1.mean(static_cast<W>(first_moment), slope));
    const W divisor = kept(largest, std::max(beta_2 * static_cast<W>(largest), slope < 0 ? -slope : slope));
    return value - rate * first / (divisor + epsilon);
  }
};

/// m and v as of MomentsStep;
/// variable -= (moment_rate * m + gradient_rate * gradient) / (sqrt(v / second_bias) + epsilon)
template <class W>
struct NadamStep {
  W moment_rate = 0;
  W gradient_rate = 0;
  Decay<W> beta_1 = {};
  Decay<W> beta_2 = {};
  W second_bias = 0;
  W epsilon = 0;
  W inverse_bias = 1 / second_bias;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = "an update by Nadam, which depends on the number of the step,";

  template <class T>
  constexpr W updated(W value, W slope, T& first_moment, T& second_moment) const {
    const W first = kept(first_moment, beta_1.mean(static_cast<W>(first_moment), slope));
    const W second = kept(second_moment, beta_2.mean_square(static_cast<W>(second_moment), slope));
    return value -
           (moment_rate * first + gradient_rate * slope) / (std::sqrt(second * inverse_bias) + epsilon);
  }
};

/// variable -= rate * sign(beta_1 m + (1 - beta_1) gradient); m = beta_2 m + (1 - beta_2) gradient
template <class W>
struct LionStep {
  W rate = 0;
  Decay<W> beta_1 = {};
  Decay<W> beta_2 = {};

  static constexpr std::size_t kSlots = 1;

  template <class T>
  constexpr W updated(W value, W slope, T& moment) const {
    const W before = static_cast<W>(moment);
    const W direction = beta_1.mean(before, slope);
    moment = T(beta_2.mean(before, slope));
    return direction > 0 ? value - rate : direction < 0 ? value + rate : value - direction;
  }
};

/// Along `direction`, from what MomentsStep left: variable -= rate * direction; the slots stay.
template <class W>
struct LambStep {
  W rate = 0;  ///< with the ratio of the norms
  W first_bias = 0;
  W second_bias = 0;
  W epsilon = 0;
  W weight_decay = 0;
  W inverse_first = 1 / first_bias;
  W inverse_second = 1 / second_bias;

  static constexpr std::size_t kSlots = 2;
  static constexpr const char* kNotRepeated = "an update by LAMB, which depends on the number of the step,";

  template <class T>
  constexpr W updated(W value, W /*slope*/, T& first_moment, T& second_moment) const {
    return value - rate * direction(value, first_moment, second_moment);
  }

  /// m / first_bias / (sqrt(v / second_bias) + epsilon) + weight_decay * variable
  template <class T>
  [[nodiscard]] constexpr W direction(W value, T first_moment, T second_moment) const {
    const W first = static_cast<W>(first_moment) * inverse_first;
    const W second = static_cast<W>(second_moment) * inverse_second;
    return first / (std::sqrt(second) + epsilon) + weight_decay * value;
  }
};

}  // namespace cohort
