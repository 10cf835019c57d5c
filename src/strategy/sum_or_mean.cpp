#include <cohort/strategy/sum_or_mean.h>

#include <cohort/base/error.h>

namespace cohort {

SumOrMean::SumOrMean(ReduceOp op) : op_(op) {
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) return;
  throw InvalidArgument("strategies reduce by sum or mean, not {}; use a Communicator for the others",
                        to_string(op));
}

SumOrMean::SumOrMean(std::string_view name) : SumOrMean(parse_reduce_op(name)) {}

}  // namespace cohort
