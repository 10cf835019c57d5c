// The operators of a strategy's reductions: an enumerator, or its name in any case.
#pragma once

#include <string_view>

#include <cohort/collective/reduce_op.h>

namespace cohort {

class SumOrMean {
 public:
  /// @throws InvalidArgument for another operator, or for a name that is not one.
  SumOrMean(ReduceOp op);  // NOLINT(google-explicit-constructor): reads as reduce(ReduceOp::kSum, x)
  SumOrMean(std::string_view name);  // NOLINT(google-explicit-constructor): reads as reduce("sum", x)
  SumOrMean(const char* name) : SumOrMean(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)

  // NOLINTNEXTLINE(google-explicit-constructor): it is one of them
  operator ReduceOp() const noexcept { return op_; }

 private:
  ReduceOp op_;
};

}  // namespace cohort
