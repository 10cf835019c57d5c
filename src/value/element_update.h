// How a value changes a component of the same dtype and shape: `assign`, `assign_add` and `assign_sub`.
#pragma once

#include <cohort/device/tensor.h>

#include "variable_purpose.h"

namespace cohort {

struct ElementUpdate {
  VariableOperation operation;
  void (*apply)(const Tensor& component, const Tensor& value);
};

extern const ElementUpdate kAssign;
extern const ElementUpdate kAssignAdd;
extern const ElementUpdate kAssignSub;

}  // namespace cohort
