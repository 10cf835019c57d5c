#include <cohort/device/dlpack.h>

#include <memory>
#include <utility>
#include <vector>

#include "device_runtime.h"

namespace cohort {
namespace {

/// What an exported DLManagedTensor points into; freed by its deleter.
struct Export {
  Export(Tensor source, std::function<void()> before_release)
      : tensor(std::move(source)), release(std::move(before_release)) {}
  Tensor tensor;
  std::function<void()> release;
  std::vector<std::int64_t> shape;
  DLManagedTensor managed{};
};

DLDataType dlpack_type(DType dtype) {
  const auto make = [&](DLDataTypeCode code) {
    return DLDataType{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
  };
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64: return make(kDLInt);
    case DType::kBFloat16: return make(kDLBfloat);
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64: return make(kDLFloat);
    default: return make(kDLUInt);
  }
}

/// kDLBool of DLPack 0.8 and later, which NumPy gives.
constexpr std::uint8_t kBoolCode = 6;

DType cohort_type(const DLDataType& type) {
  if (type.code == kBoolCode && type.bits == 8 && type.lanes == 1) return DType::kBool;
  for (const DType dtype : kAllDTypes) {
    const DLDataType candidate = dlpack_type(dtype);
    // bool shares its DLPack type with uint8, which comes first in the list.
    if (candidate.code == type.code && candidate.bits == type.bits && type.lanes == 1) return dtype;
  }
  throw InvalidArgument("DLPack element type (code {}, {} bits, {} lanes) has no counterpart in Cohort",
                        type.code, type.bits, type.lanes);
}

bool is_contiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 0) return true;
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

DLDevice dlpack_device(Device device) {
  return {is_cpu(device) ? kDLCPU : kDLCUDA, is_cpu(device) ? 0 : device.index()};
}

Device cohort_device(const DLDevice& device) {
  if (device.device_type == kDLCPU) return {};
  if (device.device_type == kDLCUDA && linked_device_runtime() != nullptr) {
    const Device gpu(DeviceKind::kCuda, device.device_id);
    require_exists(gpu);
    return gpu;
  }
  throw InvalidArgument("from_dlpack got memory on DLPack device type {}; this program takes {} memory only",
                        static_cast<int>(device.device_type),
                        linked_device_runtime() == nullptr ? "CPU" : "CPU and CUDA");
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  synchronize(tensor.device());
  return detail::export_dlpack(tensor, [] {});
}

DLManagedTensor* detail::export_dlpack(const Tensor& tensor, std::function<void()> release) {
  auto exported = std::make_unique<Export>(tensor, std::move(release));
  exported->shape.assign(tensor.shape().extents().begin(), tensor.shape().extents().end());
  DLManagedTensor& managed = exported->managed;
  managed.dl_tensor.data = tensor.data();
  managed.dl_tensor.device = dlpack_device(tensor.device());
  managed.dl_tensor.ndim = tensor.shape().rank();
  managed.dl_tensor.dtype = dlpack_type(tensor.dtype());
  managed.dl_tensor.shape = exported->shape.data();
  managed.dl_tensor.strides = nullptr;  // row-major contiguous
  managed.dl_tensor.byte_offset = 0;
  managed.manager_ctx = exported.get();
  managed.deleter = [](DLManagedTensor* self) {
    const std::unique_ptr<Export> given_back(static_cast<Export*>(self->manager_ctx));
    given_back->release();
  };
  return &exported.release()->managed;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) throw InvalidArgument("from_dlpack got a null pointer");
  if (managed->dl_tensor.device.device_type != kDLCUDA || linked_device_runtime() == nullptr)
    return detail::import_dlpack(managed, [] {});
  const Device device(DeviceKind::kCuda, managed->dl_tensor.device.device_id);
  return detail::import_dlpack(managed, [device] {
    try {
      synchronize(device);
    } catch (const std::exception&) {
      // A failed device no longer uses the memory.
    }
  });
}

Tensor detail::import_dlpack(DLManagedTensor* managed, std::function<void()> release) {
  std::shared_ptr<void> owner(managed, [](DLManagedTensor* given) {
    if (given->deleter != nullptr) given->deleter(given);
  });
  const DLTensor& source = managed->dl_tensor;
  const Device device = cohort_device(source.device);
  if (source.ndim < 0) throw InvalidArgument("from_dlpack got a tensor of {} axes", source.ndim);
  if (!is_contiguous(source)) {
    throw InvalidArgument(
        "from_dlpack got a strided tensor; make it contiguous (row-major) before the export");
  }
  const DType dtype = cohort_type(source.dtype);
  Shape shape(std::vector<std::int64_t>(source.shape, source.shape + source.ndim));
  const std::size_t bytes = shape.elements() * size_of(dtype);
  if (source.data == nullptr && bytes > 0) {
    throw InvalidArgument("from_dlpack got {} elements without memory", shape.elements());
  }
  auto* data = static_cast<std::byte*>(source.data) + source.byte_offset;
  const std::shared_ptr<void> used(owner.get(), [owner, release = std::move(release)](void*) { release(); });
  return Tensor::wrap(std::make_shared<const Buffer>(data, bytes, device, used), 0, shape, dtype);
}

}  // namespace cohort
