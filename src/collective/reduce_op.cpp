#include <cohort/collective/reduce_op.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include <cohort/base/error.h>

namespace cohort {
namespace {
constexpr std::array kAllOps{ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kProd};
}

std::string_view to_string(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::kSum: return "sum";
    case ReduceOp::kMean: return "mean";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kProd: return "prod";
  }
  return "unknown";
}

ReduceOp parse_reduce_op(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const ReduceOp op : kAllOps) {
    if (to_string(op) == lower) return op;
  }
  throw InvalidArgument("unknown reduce op '{}'; known: sum, mean, min, max, prod.", name);
}

void detail::throw_not_legal(ReduceOp op, DType dtype) {
  if (dtype == DType::kBool) {
    throw InvalidArgument(
        "{} of bool is not defined; use min (all true), max (any true) or cast to an integer", to_string(op));
  }
  throw InvalidArgument("the mean of {} is a fraction; cast to float32 or float64 first, or use sum",
                        to_string(dtype));
}

bool depends_on_order(ReduceOp op, DType dtype) noexcept {
  return is_floating(dtype) && op != ReduceOp::kMin && op != ReduceOp::kMax;
}

}  // namespace cohort
