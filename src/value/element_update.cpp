#include "element_update.h"

#include "device/arithmetic.h"
#include "device/device_runtime.h"

namespace cohort {
namespace {

template <class Operator>
void combine_with(const Tensor& component, const Tensor& value) {
  visit_dtype(component.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      throw InvalidArgument("bool variables cannot be added to; use assign");
    } else if (!is_cpu(component)) {
      runtime_of(component.device()).combine(Operator::kName, component, value.to(component.device()));
    } else {
      const Tensor readable = value.on_host();
      const std::span<T> target = component.span<T>();
      const std::span<const T> source = readable.span<T>();
      for (std::size_t i = 0; i < target.size(); ++i) target[i] = combine<Operator>(target[i], source[i]);
    }
  });
}

void overwrite(const Tensor& component, const Tensor& value) { component.copy_from(value); }

}  // namespace

const ElementUpdate kAssign{"assign", overwrite};
const ElementUpdate kAssignAdd{"assign_add", combine_with<Add>};
const ElementUpdate kAssignSub{"assign_sub", combine_with<Subtract>};

}  // namespace cohort
