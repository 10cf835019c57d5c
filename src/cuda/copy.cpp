#include <cohort/cuda/copy.h>

#include <algorithm>
#include <memory>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/device/tensor.h>

#include "calls.h"

namespace cohort::cuda {

Tensor pinned(Shape shape, DType dtype) {
  const std::size_t bytes = shape.elements() * size_of(dtype);
  std::shared_ptr<void> memory(calls::host_alloc(std::max<std::size_t>(bytes, 1)), calls::free_host);
  auto* const data = static_cast<std::byte*>(memory.get());
  return Tensor::wrap(std::make_shared<const Buffer>(data, bytes, Device(), std::move(memory)), 0, shape,
                      dtype);
}

void copy_async(const Tensor& from, const Tensor& to, const Stream& stream) {
  if (from.dtype() != to.dtype() || from.shape() != to.shape()) {
    throw InvalidArgument("cannot copy {} into {}: dtype and shape must agree", describe(from), describe(to));
  }
  if (is_cpu(from) && is_cpu(to))
    throw InvalidArgument("copy_async of {}: neither side is on a GPU", describe(from));
  if (from.bytes() == 0) return;
  const CurrentDevice current(stream.device());
  calls::memcpy_async(to.data(), from.data(), from.bytes(), stream.handle());
}

}  // namespace cohort::cuda
