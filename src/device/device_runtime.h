// A DeviceRuntime serves the devices that are not CPUs: memory, copies, and the arithmetic on tensors that
// distribution itself needs. The core computes on CPU tensors itself and passes everything else to the
// runtime of the device. A module implements it (cohort::cuda); programs that link the module have it.
//
// Work on a device is queued: a call may return before it is done, and calls for one device take effect in
// their order, whichever thread makes them. When a call returns, it has read the host memory that it reads,
// and written the host memory that it writes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cohort/device/tensor.h>

#include "rules/arithmetic.h"

namespace cohort {

struct OptimizerStep;

/// Copies `count` blocks of `width` bytes, each `pitch` bytes after the one before. At least one of the
/// places is on a device.
struct BlockCopy {
  std::byte* to = nullptr;
  Device to_device = {};
  std::size_t to_pitch = 0;
  const std::byte* from = nullptr;
  Device from_device = {};
  std::size_t from_pitch = 0;
  std::size_t width = 0;
  std::size_t count = 1;
};

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  /// All that this process sees, by number.
  [[nodiscard]] virtual std::vector<Device> devices() const = 0;

  /// @throws Unavailable when there is no such device, saying which there are, or why none.
  virtual void require(Device device) const = 0;

  /// A text that identifies the device itself, whatever its number in a process.
  [[nodiscard]] virtual std::string identity(Device device) const = 0;

  /// As the function of this name in allocator.h.
  [[nodiscard]] virtual std::shared_ptr<const Buffer> allocate(std::size_t bytes, Device device) = 0;

  /// CPU memory for data on its way to or from `device`; collectives among processes of a node work on it in
  /// place. Expensive to make: keep it.
  [[nodiscard]] virtual std::shared_ptr<const Buffer> allocate_staging(std::size_t bytes, Device device) = 0;

  /// At least one of the places is on a device.
  virtual void copy(const BlockCopy& copy) = 0;

  /// Several copies within one device, of tensors of one dtype, in few kernels.
  virtual void copy_each(std::span<const Tensor> from, std::span<const Tensor> to) = 0;

  /// From or to staging memory, without waiting: its bytes must be left alone until `synchronize`.
  virtual void copy_staged(const BlockCopy& copy) = 0;

  // The tensors of a call are of one device, fit together, and have dtypes that the operator takes.

  virtual void fill(const Tensor& tensor, double value) = 0;
  virtual void cast(const Tensor& from, const Tensor& to) = 0;

  /// target[i] = target[i] op value[i]
  virtual void combine(ElementOperator op, const Tensor& target, const Tensor& value) = 0;

  /// The same for the rows of `target` that `indices` (int32 or int64, in range) name, in their order.
  virtual void combine_rows(ElementOperator op, const Tensor& target, const Tensor& indices,
                            const Tensor& values) = 0;

  /// output[i] = (inputs[0][i] op inputs[1][i] op ...) / divisor, with the rules of reduction.h; the
  /// operator is one of add, multiply, minimum and maximum, and only floating sums are divided.
  virtual void reduce(ElementOperator op, std::span<const Tensor> inputs, const Tensor& output,
                      std::size_t divisor) = 0;

  /// One step of an optimizer, whose rule says how many slots there are.
  virtual void update(const OptimizerStep& step, const Tensor& variable, std::span<const Tensor> slots,
                      const Tensor& gradient) = 0;

  /// Blocks the thread until everything that was queued for the device has been done.
  virtual void synchronize(Device device) = 0;

  /// The same for memory about to be released: without an error, even if the work has failed.
  virtual void drain(Device device) noexcept = 0;

  /// Makes the device the thread's current one in the runtime's library; returns the previous one.
  [[nodiscard]] virtual int enter(Device device) = 0;
  virtual void leave(int before) noexcept = 0;
};

/// The runtime of GPUs; null in programs that are not linked with one.
[[nodiscard]] DeviceRuntime* linked_device_runtime() noexcept;

/// The runtime of `device`, which is not a CPU.
/// @throws Unavailable in programs that are not linked with it.
[[nodiscard]] DeviceRuntime& runtime_of(Device device);

/// Between any devices, CPUs as well.
void copy_blocks(const BlockCopy& copy);

/// While it lives, code of other libraries on this thread finds the device chosen: the GPU of a
/// replica is CUDA's current device there.
class [[nodiscard]] EnteredDevice {
 public:
  explicit EnteredDevice(Device device);
  ~EnteredDevice();

  EnteredDevice(const EnteredDevice&) = delete;
  EnteredDevice& operator=(const EnteredDevice&) = delete;

 private:
  DeviceRuntime* runtime_ = nullptr;  // null for CPUs
  int before_ = 0;
};

}  // namespace cohort
