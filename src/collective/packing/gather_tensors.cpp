#include "collective/packing/gather_tensors.h"

namespace cohort {
namespace {

// A shape travels as one row of integers: dtype, rank, extents.
constexpr auto kRowLength = static_cast<std::int64_t>(Shape::kLargestRank) + 2;

Tensor shape_row(const Tensor& tensor) {
  Tensor row = Tensor::zeros({kRowLength}, DType::kInt64);
  const auto values = row.span<std::int64_t>();
  values[0] = static_cast<std::int64_t>(tensor.dtype());
  values[1] = tensor.shape().rank();
  for (int axis = 0; axis < tensor.shape().rank(); ++axis) {
    values[static_cast<std::size_t>(axis) + 2] = tensor.shape()[axis];
  }
  return row;
}

Shape shape_of(const Tensor& row) {
  const auto values = row.span<std::int64_t>();
  return Shape(std::span<const std::int64_t>(values).subspan(2, static_cast<std::size_t>(values[1])));
}

DType dtype_of(const Tensor& row) { return static_cast<DType>(row.span<std::int64_t>()[0]); }

}  // namespace

std::vector<Tensor> all_gather_tensors(Communicator& communicator, const Tensor& tensor) {
  const Tensor rows = Tensor::zeros({communicator.size(), kRowLength}, DType::kInt64);
  communicator.all_gather(shape_row(tensor), rows);

  std::vector<Shape> shapes;
  std::vector<std::size_t> counts;
  std::int64_t total = 0;
  for (int member = 0; member < communicator.size(); ++member) {
    const Tensor row = rows.row(member);
    if (dtype_of(row) != dtype_of(rows.row(0))) {
      const std::span<const MemberInfo> members = communicator.members();
      throw InvalidArgument("cannot gather {} of {} with {} of {}: dtypes must agree",
                            to_string(dtype_of(row)),
                            describe(member, members[static_cast<std::size_t>(member)]),
                            to_string(dtype_of(rows.row(0))), describe(0, members[0]));
    }
    shapes.push_back(shape_of(row));
    counts.push_back(shapes.back().elements());
    total += static_cast<std::int64_t>(counts.back());
  }

  const Tensor flat = Tensor::uninitialized({total}, tensor.dtype(), tensor.device());
  communicator.all_gather_uneven(tensor, flat, counts);
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const Shape& shape : shapes) {
    const auto end = begin + static_cast<std::int64_t>(shape.elements());
    parts.push_back(flat.rows(begin, end).reshape(shape));
    begin = end;
  }
  return parts;
}

}  // namespace cohort
