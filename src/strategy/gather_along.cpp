#include "gather_along.h"

#include <cohort/device/tensor_ops.h>

#include "collective/packing/gather_tensors.h"

namespace cohort {
namespace {

bool fit(const Shape& a, const Shape& b, int axis) {
  if (a.rank() != b.rank()) return false;
  const int along = axis < 0 ? axis + a.rank() : axis;
  for (int other = 0; other < a.rank(); ++other)
    if (other != along && a[other] != b[other]) return false;
  return true;
}

}  // namespace

Tensor gathered_along(Communicator& communicator, const Tensor& own, int axis, const CallPurpose& purpose) {
  const std::vector<Tensor> parts = all_gather_tensors(communicator, own);
  const auto name_of = [&](std::size_t member) {
    return describe(static_cast<int>(member), communicator.members()[member], {.caller = purpose.caller()});
  };
  for (std::size_t member = 1; member < parts.size(); ++member) {
    if (fit(parts[member].shape(), parts[0].shape(), axis)) continue;
    throw InvalidArgument(
        "shape mismatch: cannot gather along axis {}: {} has {}, {} has {}; only the extents "
        "along that axis may differ",
        axis, name_of(member), describe(parts[member]), name_of(0), describe(parts[0]));
  }
  return concatenate(parts, axis);
}

}  // namespace cohort
