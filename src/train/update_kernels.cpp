#include "update_kernels.h"

#include <cohort/device/device_runtime.h>

namespace cohort {
namespace {

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

/// The gradient on the variable's device.
Tensor beside(const Tensor& variable, const Tensor& gradient) {
  return is_cpu(variable) ? gradient.on_host() : gradient.to(variable.device());
}

}  // namespace

void sgd_step(const Tensor& variable, const Tensor& gradient, const SgdStep& step) {
  const Tensor there = beside(variable, gradient);
  if (!is_cpu(variable)) return runtime_of(variable.device()).update(step, variable, there);
  visit_floating(variable, [&]<class T>(std::type_identity<T>) {
    const SgdElement<T> element(step);
    T* const values = variable.span<T>().data();
    const T* const slopes = there.span<T>().data();
    const std::size_t elements = variable.elements();
    for (std::size_t i = 0; i < elements; ++i) element.update(values[i], slopes[i]);
  });
}

void momentum_step(const Tensor& variable, const Tensor& velocity, const Tensor& gradient,
                   const MomentumStep& step) {
  const Tensor there = beside(variable, gradient);
  if (!is_cpu(variable)) return runtime_of(variable.device()).update(step, variable, velocity, there);
  visit_floating(variable, [&]<class T>(std::type_identity<T>) {
    const MomentumElement<T> element(step);
    T* const values = variable.span<T>().data();
    T* const velocities = velocity.span<T>().data();
    const T* const slopes = there.span<T>().data();
    const std::size_t elements = variable.elements();
    for (std::size_t i = 0; i < elements; ++i) element.update(values[i], velocities[i], slopes[i]);
  });
}

void adam_step(const Tensor& variable, const Tensor& first_moment, const Tensor& second_moment,
               const Tensor& gradient, const AdamStep& step) {
  const Tensor there = beside(variable, gradient);
  if (!is_cpu(variable))
    return runtime_of(variable.device()).update(step, variable, first_moment, second_moment, there);
  visit_floating(variable, [&]<class T>(std::type_identity<T>) {
    const AdamElement<T> element(step);
    T* const values = variable.span<T>().data();
    T* const firsts = first_moment.span<T>().data();
    T* const seconds = second_moment.span<T>().data();
    const T* const slopes = there.span<T>().data();
    const std::size_t elements = variable.elements();
    for (std::size_t i = 0; i < elements; ++i) element.update(values[i], firsts[i], seconds[i], slopes[i]);
  });
}

}  // namespace cohort
