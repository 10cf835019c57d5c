#include <cohort/cuda/dlpack.h>

#include <exception>

#include <cohort/base/error.h>
#include <cohort/device/dlpack.h>
#include <cohort/device/tensor.h>

namespace cohort::cuda {
namespace {

void order_at_release(Device device, StreamHandle earlier, StreamHandle later) noexcept {
  try {
    order(device, earlier, later);
  } catch (const std::exception&) {
    // A failed device no longer uses the memory.
  }
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& tensor, StreamHandle consumer) {
  const Device device = tensor.device();
  if (is_cpu(device))
    throw InvalidArgument("to_dlpack for a stream got {} on {}, which has no streams", describe(tensor),
                          to_string(device));
  const Stream& own = compute_stream(device);
  order(device, own.handle(), consumer);
  return cohort::detail::export_dlpack(
      tensor, [device, consumer, &own] { order_at_release(device, consumer, own.handle()); });
}

Tensor from_dlpack(DLManagedTensor* managed, StreamHandle producer) {
  if (managed == nullptr || managed->dl_tensor.device.device_type != kDLCUDA) {
    // cohort::from_dlpack refuses null, and takes ownership of a CPU tensor, which is then refused here.
    static_cast<void>(cohort::from_dlpack(managed));
    throw InvalidArgument("from_dlpack from a stream got CPU memory, which has no streams");
  }
  const Device device(DeviceKind::kCuda, managed->dl_tensor.device.device_id);
  const Stream& own = compute_stream(device);
  Tensor tensor = cohort::detail::import_dlpack(
      managed, [device, producer, &own] { order_at_release(device, own.handle(), producer); });
  order(device, producer, own.handle());
  return tensor;
}

}  // namespace cohort::cuda
