// Inputs whose reduction is known exactly, whatever the order of association, and whose
// every partial result is exact in the dtype itself, the 16-bit floats included. A result
// therefore has one right bit pattern per element, and each wrong element is a bug.
#pragma once

#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

#include "value_table.h"

namespace cohort::bench {

class ExactValues final : public ValueSource {
 public:
  /// `op` is legal for `dtype`.
  ExactValues(DType dtype, ReduceOp op, int members) : dtype_(dtype), op_(op), members_(members) {}

  [[nodiscard]] ValueTable input(int member) const override;
  [[nodiscard]] ValueTable reduced() const override;

 private:
  DType dtype_;
  ReduceOp op_;
  int members_;
};

}  // namespace cohort::bench
