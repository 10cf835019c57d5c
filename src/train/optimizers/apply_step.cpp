#include "apply_step.h"

#include <array>
#include <utility>

#include "device/device_runtime.h"

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

template <class T, class Rule, std::size_t... kSlot>
void update_elements(const Rule& rule, double gradient_factor, const Tensor& variable,
                     [[maybe_unused]] std::span<const Tensor> slots, const Tensor& gradient,
                     std::index_sequence<kSlot...>) {
  const typename Rule::template Element<T> element(rule);
  T* const values = variable.span<T>().data();
  [[maybe_unused]] const std::array<T*, sizeof...(kSlot)> of_slots{slots[kSlot].template span<T>().data()...};
  const T* const slopes = gradient.span<T>().data();
  const std::size_t elements = variable.elements();
  const auto factor = static_cast<Wide<T>>(gradient_factor);
  for (std::size_t i = 0; i < elements; ++i)
    element.update(values[i], of_slots[kSlot][i]..., factor * static_cast<Wide<T>>(slopes[i]));
}

}  // namespace

void apply_step(const OptimizerStep& step, const Tensor& variable, std::span<const Tensor> slots,
                const Tensor& gradient) {
  if (!is_cpu(variable)) {
    const Device device = variable.device();
    return runtime_of(device).update(step, variable, slots, gradient.to(device));
  }
  const Tensor there = gradient.on_host();
  std::visit(
      [&]<class Rule>(const Rule& rule) {
        COHORT_CHECK(slots.size() == Rule::kSlots);
        visit_floating(variable, [&]<class T>(std::type_identity<T>) {
          update_elements<T>(rule, step.gradient_factor, variable, slots, there,
                             std::make_index_sequence<Rule::kSlots>{});
        });
      },
      step.rule);
}

}  // namespace cohort
