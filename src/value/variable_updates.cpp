#include "variable_updates.h"

#include <algorithm>

#include "device/device_runtime.h"
#include "device/rules/arithmetic.h"

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

namespace {

template <class Operator, class T>
void require_computable(std::span<const T> values) {
  if constexpr (std::is_same_v<T, bool> && !std::is_same_v<Operator, Replace>)
    throw InvalidArgument("rows of bool variables take no arithmetic; use scatter_update");
  if constexpr (std::is_integral_v<T> && std::is_same_v<Operator, Divide>) {
    if (std::ranges::find(values, T{0}) != values.end())
      throw InvalidArgument("scatter_div: a row holds the integer 0; integers cannot be divided by it");
  }
}

/// Whether the values must be checked, not only their dtype.
template <class Operator>
bool depends_on_values(DType dtype) {
  return std::is_same_v<Operator, Divide> && !is_floating(dtype);
}

template <class Operator>
void combine_rows_on_device(const Tensor& component, const IndexedSlices& rows) {
  visit_dtype(component.dtype(), [&]<class T>(std::type_identity<T>) {
    const Tensor readable = depends_on_values<Operator>(component.dtype()) ? rows.values.on_host()
                                                                           : Tensor::zeros({0}, kDTypeOf<T>);
    require_computable<Operator>(std::span<const T>(readable.span<T>()));
  });
  const Device device = component.device();
  runtime_of(device).combine_rows(Operator::kName, component, rows.indices.to(device),
                                  rows.values.to(device));
}

template <class Operator>
void combine_rows(const Tensor& component, const IndexedSlices& rows) {
  if (!is_cpu(component)) return combine_rows_on_device<Operator>(component, rows);
  const Tensor indices = rows.indices.on_host().cast(DType::kInt64);
  const Tensor readable = rows.values.on_host();
  visit_dtype(component.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<const T> values = readable.span<T>();
    require_computable<Operator>(values);
    const std::size_t width = component.shape().row().elements();
    for (std::size_t i = 0; i < indices.elements(); ++i) {
      const auto row = static_cast<std::size_t>(indices.span<std::int64_t>()[i]);
      const std::span<T> target = component.span<T>().subspan(row * width, width);
      const std::span<const T> source = values.subspan(i * width, width);
      for (std::size_t j = 0; j < width; ++j) target[j] = combine<Operator>(target[j], source[j]);
    }
  });
}

}  // namespace

const RowUpdate kScatterAdd{"scatter_add", combine_rows<Add>, true};
const RowUpdate kScatterSub{"scatter_sub", combine_rows<Subtract>, true};
const RowUpdate kScatterMul{"scatter_mul", combine_rows<Multiply>, true};
const RowUpdate kScatterDiv{"scatter_div", combine_rows<Divide>, true};
const RowUpdate kScatterMin{"scatter_min", combine_rows<Minimum>, false};
const RowUpdate kScatterMax{"scatter_max", combine_rows<Maximum>, false};
const RowUpdate kScatterUpdate{"scatter_update", combine_rows<Replace>, false};

}  // namespace cohort
