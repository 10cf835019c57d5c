// How rows change the rows of a component: `scatter_add` and the other scatter functions. The rows have been
// checked to fit the component (see `validate`).
#pragma once

#include <cohort/value/indexed_slices.h>

#include "variable_purpose.h"

namespace cohort {

struct RowUpdate {
  VariableOperation operation;
  void (*apply)(const Tensor& component, const IndexedSlices& rows);
  bool aggregates;  ///< whether the rows of several replicas may be put together by SUM or MEAN
};

extern const RowUpdate kScatterAdd;
extern const RowUpdate kScatterSub;
extern const RowUpdate kScatterMul;
extern const RowUpdate kScatterDiv;
extern const RowUpdate kScatterMin;
extern const RowUpdate kScatterMax;
extern const RowUpdate kScatterUpdate;

}  // namespace cohort
