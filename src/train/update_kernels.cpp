#include "update_kernels.h"

#include <cmath>

namespace cohort {
namespace {

/// What elements of type T are computed in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Calls `function(std::type_identity<T>{})` with the element type of a floating dtype.
template <class Function>
void visit_floating(const Tensor& variable, Function function) {
  visit_dtype(variable.dtype(), [&]<class T>(std::type_identity<T> type) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>)
      function(type);
    else
      throw Internal("optimizers update floating variables, not {}", describe(variable));
  });
}

}  // namespace

void sgd_step(const Tensor& variable, const Tensor& gradient, double rate) {
  visit_floating(variable, [&]<class T>(std::type_identity<T>) {
    using W = Wide<T>;
    T* const values = variable.span<T>().data();
    const T* const slopes = gradient.span<T>().data();
    const std::size_t elements = variable.elements();
    const W step = static_cast<W>(rate);
    for (std::size_t i = 0; i < elements; ++i)
      values[i] = T(static_cast<W>(values[i]) - step * static_cast<W>(slopes[i]));
  });
}

void momentum_step(const Tensor& variable, const Tensor& velocity, const Tensor& gradient,
                   const MomentumStep& step) {
  visit_floating(variable, [&]<class T>(std::type_identity<T>) {
    using W = Wide<T>;
    T* const values = variable.span<T>().data();
    T* const velocities = velocity.span<T>().data();
    const T* const slopes = gradient.span<T>().data();
    const std::size_t elements = variable.elements();
    const W rate = static_cast<W>(step.rate);
    const W momentum = static_cast<W>(step.momentum);
    for (std::size_t i = 0; i < elements; ++i) {
      const W slope = static_cast<W>(slopes[i]);
      const W moved = momentum * static_cast<W>(velocities[i]) - rate * slope;
      velocities[i] = T(moved);
      const W change = step.nesterov ? momentum * moved - rate * slope : moved;
      values[i] = T(static_cast<W>(values[i]) + change);
    }
  });
}

void adam_step(const Tensor& variable, const Tensor& first_moment, const Tensor& second_moment,
               const Tensor& gradient, const AdamStep& step) {
  visit_floating(variable, [&]<class T>(std::type_identity<T>) {
    using W = Wide<T>;
    T* const values = variable.span<T>().data();
    T* const firsts = first_moment.span<T>().data();
    T* const seconds = second_moment.span<T>().data();
    const T* const slopes = gradient.span<T>().data();
    const std::size_t elements = variable.elements();
    const W rate = static_cast<W>(step.rate);
    const W beta_1 = static_cast<W>(step.beta_1);
    const W beta_2 = static_cast<W>(step.beta_2);
    const W rest_1 = static_cast<W>(1 - step.beta_1);
    const W rest_2 = static_cast<W>(1 - step.beta_2);
    const W epsilon = static_cast<W>(step.epsilon);
    for (std::size_t i = 0; i < elements; ++i) {
      const W slope = static_cast<W>(slopes[i]);
      const W first = beta_1 * static_cast<W>(firsts[i]) + rest_1 * slope;
      const W second = beta_2 * static_cast<W>(seconds[i]) + rest_2 * slope * slope;
      firsts[i] = T(first);
      seconds[i] = T(second);
      values[i] = T(static_cast<W>(values[i]) - rate * first / (std::sqrt(second) + epsilon));
    }
  });
}

}  // namespace cohort
