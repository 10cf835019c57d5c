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

CommonStep common_of(const StepArguments& arguments) {
  return {.gradient_factor = arguments.gradient_factor,
          .largest_gradient = arguments.largest_gradient,
          .weight_decay = arguments.weight_decay,
          .average_kept = arguments.average_kept,
          .takes_average = arguments.takes_average,
          .has_master = arguments.has_master,
          .has_average = arguments.has_average};
}

/// S is the type of the slots: float beside a master, else that of the variable. Not inlined, since in one
/// function with the loops of all types the rule would not be, and its loop not vectorized.
template <class T, class S, class Rule, std::size_t... kSlot>
[[gnu::noinline]] void update_elements(const Rule& rule, const CommonStep& common, const Tensor& variable,
                                       std::span<const Tensor> slots, const Tensor& gradient,
                                       std::index_sequence<kSlot...>) {
  const ElementStep<Rule, T, S> element(rule, common);
  T* const values = variable.span<T>().data();
  [[maybe_unused]] const std::array<S*, sizeof...(kSlot)> of_slots{slots[kSlot].template span<S>().data()...};
  const T* const slopes = gradient.span<T>().data();
  const std::size_t elements = variable.elements();
  if (common.is_plain()) {
    if constexpr (std::is_same_v<T, S>)
      for (std::size_t i = 0; i < elements; ++i) element.update(values[i], slopes[i], of_slots[kSlot][i]...);
    return;
  }
  constexpr bool kHasMaster = !std::is_same_v<T, S>;
  S* const master = kHasMaster ? slots[Rule::kSlots].template span<S>().data() : nullptr;
  S* const average = common.has_average ? slots.back().template span<S>().data() : nullptr;
  if (common.has_average) {
    for (std::size_t i = 0; i < elements; ++i)
      element.template update_with<kHasMaster, true>(values[i], slopes[i], kHasMaster ? &master[i] : nullptr,
                                                     &average[i], of_slots[kSlot][i]...);
  } else {
    for (std::size_t i = 0; i < elements; ++i)
      element.template update_with<kHasMaster, false>(values[i], slopes[i], kHasMaster ? &master[i] : nullptr,
                                                      nullptr, of_slots[kSlot][i]...);
  }
}

}  // namespace

void apply_step(const OptimizerRule& rule, const StepArguments& arguments, const Tensor& variable,
                std::span<const Tensor> slots, const Tensor& gradient) {
  const CommonStep common = common_of(arguments);
  if (!is_cpu(variable)) {
    const Device device = variable.device();
    return runtime_of(device).update({rule, common}, variable, slots, gradient.to(device));
  }
  const Tensor there = gradient.on_host();
  std::visit(
      [&]<class Rule>(const Rule& own) {
        COHORT_CHECK(slots.size() == Rule::kSlots + common.slots());
        constexpr auto kSlots = std::make_index_sequence<Rule::kSlots>{};
        visit_floating(variable, [&]<class T>(std::type_identity<T>) {
          if constexpr (HalfElement<T>)
            if (common.has_master)
              return update_elements<T, float>(own, common, variable, slots, there, kSlots);
          update_elements<T, T>(own, common, variable, slots, there, kSlots);
        });
      },
      rule);
}

}  // namespace cohort
