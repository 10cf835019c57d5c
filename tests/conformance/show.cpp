#include "show.h"

namespace cohort::conformance {
namespace {

Json show_rows(const Tensor& doubles, const Shape& shape, int axis, std::size_t& next) {
  if (axis == shape.rank()) return show(doubles.span<double>()[next++]);
  Json list = Json::array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) list.push_back(show_rows(doubles, shape, axis + 1, next));
  return list;
}

}  // namespace

Json show(const Tensor& tensor) {
  std::size_t next = 0;
  return show_rows(tensor.cast(DType::kFloat64), tensor.shape(), 0, next);
}

Json show(const IndexedSlices& slices) {
  return {{"IndexedSlices", {{"indices", show(slices.indices)}, {"values", show(slices.values)}}}};
}

Json show_components(const Variable& variable) {
  return show(std::vector<Tensor>(variable.components().begin(), variable.components().end()));
}

}  // namespace cohort::conformance
