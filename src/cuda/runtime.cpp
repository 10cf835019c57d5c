// The runtime of GPUs: memory from CUDA's stream-ordered pools, copies and kernels, all on the compute stream
// of the device (see stream.h), so that they take effect in the order of the calls.
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/stream.h>

#include "base/timeline_spans.h"
#include "calls.h"
#include "capture.h"
#include "device/device_runtime.h"
#include "kernels.h"
#include "staging_ring.h"

namespace cohort::cuda {
namespace {

/// The program's spans, from here on, as ranges of NVTX, which profilers for GPUs show beside its kernels: if
/// one has started this process, it names its library in NVTX_INJECTION64_PATH.
void pass_spans_to_nvtx() noexcept {
  if (std::getenv("NVTX_INJECTION64_PATH") == nullptr) return;
  // What NVTX returns is the depth of ranges, or that nobody listens.
  static constexpr SpanListener kListener{.begin = [](const char* name) noexcept { nvtxRangePushA(name); },
                                          .end = []() noexcept { nvtxRangePop(); }};
  TimelineSpans::of_this_process().set_listener(kListener);
}

class Runtime final : public DeviceRuntime {
 public:
  [[nodiscard]] std::vector<Device> devices() const override;
  void require(Device device) const override;
  [[nodiscard]] std::string identity(Device device) const override;

  [[nodiscard]] std::shared_ptr<const Buffer> allocate(std::size_t bytes, Device device) override;
  [[nodiscard]] std::shared_ptr<const Buffer> allocate_staging(std::size_t bytes, Device device) override;

  void copy(const BlockCopy& copy) override;
  void copy_each(std::span<const Tensor> from, std::span<const Tensor> to) override;
  void copy_staged(const BlockCopy& copy) override;

  void fill(const Tensor& tensor, double value) override;
  void cast(const Tensor& from, const Tensor& to) override;
  void combine(ElementOperator op, const Tensor& target, const Tensor& value) override;
  void combine_rows(ElementOperator op, const Tensor& target, const Tensor& indices,
                    const Tensor& values) override;
  void reduce(ElementOperator op, std::span<const Tensor> inputs, const Tensor& output,
              std::size_t divisor) override;
  void update(const OptimizerStep& step, const Tensor& variable, std::span<const Tensor> slots,
              const Tensor& gradient) override;

  void synchronize(Device device) override;
  void drain(Device device) noexcept override;
  [[nodiscard]] int enter(Device device) override;
  void leave(int before) noexcept override;
};

/// Pinned pages must not be shared with other blocks; blocks of at least this size have pages of their own.
constexpr std::size_t kSmallestStaging = std::size_t{2} << 20;

template <class Body>
void launch(Device device, const Body& body) {
  constexpr std::size_t kThreads = 256;
  constexpr std::size_t kMostBlocks = 2048;  // fills the largest GPU several times over
  const std::size_t items = body.items();
  if (items == 0) return;
  const auto blocks = static_cast<unsigned>(std::min((items + kThreads - 1) / kThreads, kMostBlocks));
  const CurrentDevice current(device);
  calls::launch_kernel(kernel_of<Body>(), blocks, kThreads, &body, compute_stream(device).handle());
}

/// Never destroyed: tensors may be static.
StagingRing& staging_ring(Device device) {
  struct Slot {
    std::once_flag once;
    std::unique_ptr<StagingRing> ring;
  };
  static auto& slots = *new std::vector<Slot>(devices().size());
  Slot& slot = slots[static_cast<std::size_t>(device.index())];
  std::call_once(slot.once, [&] {
    const CurrentDevice current(device);
    slot.ring = std::make_unique<StagingRing>(compute_stream(device));
  });
  return *slot.ring;
}

/// The GPU of a copy between it and the host.
Device gpu_of(const BlockCopy& copy) { return is_cpu(copy.to_device) ? copy.from_device : copy.to_device; }

/// A graph's launches would access the same host memory at times when the host uses it for something else.
void require_copy_now(const BlockCopy& copy) {
  require_not_captured(gpu_of(copy), "a copy between the host and the GPU");
}

/// Whether CUDA takes the blocks in one call.
bool are_rows(const BlockCopy& copy) {
  return copy.count > 1 && std::max(copy.to_pitch, copy.from_pitch) <= calls::kMostPitch;
}

/// Calls `visit(to, from)` for each block.
template <class Visitor>
void for_each_block(const BlockCopy& copy, const Visitor& visit) {
  for (std::size_t block = 0; block < copy.count; ++block)
    visit(copy.to + block * copy.to_pitch, copy.from + block * copy.from_pitch);
}

void copy_within(const BlockCopy& copy) {
  const CurrentDevice current(copy.to_device);
  StreamHandle stream = compute_stream(copy.to_device).handle();
  if (are_rows(copy)) {
    calls::memcpy_2d_async(copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.width, copy.count,
                           stream);
    return;
  }
  if (copy.count > 1) {
    for_each_block(copy, [&](std::byte* to, const std::byte* from) {
      calls::memcpy_async(to, from, copy.width, stream);
    });
    return;
  }
  const std::ptrdiff_t distance = copy.to - copy.from;
  if (static_cast<std::size_t>(std::abs(distance)) >= copy.width) {
    calls::memcpy_async(copy.to, copy.from, copy.width, stream);
  } else if (distance != 0) {
    // Overlapping views of one storage, which CUDA cannot copy.
    const std::shared_ptr<const Buffer> aside = allocate_from_pool(copy.width, copy.to_device);
    calls::memcpy_async(aside->data(), copy.from, copy.width, stream);
    calls::memcpy_async(copy.to, aside->data(), copy.width, stream);
  }
}

/// On the target's stream; the source's stream waits until its memory has been read.
void copy_between(const BlockCopy& copy) {
  for (const Device device : {copy.from_device, copy.to_device})
    require_not_captured(device, "a copy between GPUs");
  const Stream& source = compute_stream(copy.from_device);
  const Stream& target = compute_stream(copy.to_device);
  open_memory(copy.from_device, copy.to_device);
  order(source, target);
  const CurrentDevice current(copy.to_device);
  const int to_device = copy.to_device.index();
  const int from_device = copy.from_device.index();
  if (are_rows(copy)) {
    calls::memcpy_2d_peer_async(copy.to, to_device, copy.to_pitch, copy.from, from_device, copy.from_pitch,
                                copy.width, copy.count, target.handle());
  } else {
    for_each_block(copy, [&](std::byte* to, const std::byte* from) {
      calls::memcpy_peer_async(to, to_device, from, from_device, copy.width, target.handle());
    });
  }
  order(target, source);
}

}  // namespace

std::vector<Device> Runtime::devices() const { return cuda::devices(); }

void Runtime::require(Device device) const { require_device(device); }

std::string Runtime::identity(Device device) const {
  // As nvidia-smi writes it.
  const auto& uuid = properties(device).uuid;
  const auto digits = [&](std::size_t begin, std::size_t end) {
    return fmt::format("{:02x}", fmt::join(uuid.begin() + begin, uuid.begin() + end, ""));
  };
  return fmt::format("GPU-{}-{}-{}-{}-{}", digits(0, 4), digits(4, 6), digits(6, 8), digits(8, 10),
                     digits(10, 16));
}

std::shared_ptr<const Buffer> Runtime::allocate(std::size_t bytes, Device device) {
  return allocate_from_pool(bytes, device);
}

std::shared_ptr<const Buffer> Runtime::allocate_staging(std::size_t bytes, Device device) {
  const CurrentDevice current(device);
  std::shared_ptr<const Buffer> block = cohort::allocate(std::max(bytes, kSmallestStaging), Device());
  if (!calls::host_register(block->data(), block->bytes())) {
    logging::debug("cannot pin {} bytes of host memory; copies to and from GPUs are slower", block->bytes());
    return block;
  }
  const Buffer& pinned = *block;
  return {new Buffer(pinned.data(), pinned.bytes(), pinned.device(), nullptr),
          [block = std::move(block), device](const Buffer* buffer) {
            release_on(device, [buffer] { calls::host_unregister(buffer->data()); });
            delete buffer;
          }};
}

void Runtime::copy(const BlockCopy& copy) {
  if (copy.width == 0 || copy.count == 0) return;
  if (is_cpu(copy.from_device) || is_cpu(copy.to_device)) require_copy_now(copy);
  if (is_cpu(copy.from_device))
    staging_ring(copy.to_device).upload(copy);
  else if (is_cpu(copy.to_device))
    staging_ring(copy.from_device).download(copy);
  else if (copy.from_device == copy.to_device)
    copy_within(copy);
  else
    copy_between(copy);
}

void Runtime::copy_each(std::span<const Tensor> from, std::span<const Tensor> to) {
  CopyEach body{};
  body.dtype = from.front().dtype();
  const Device device = from.front().device();
  for (std::size_t i = 0; i < from.size(); ++i) {
    body.pieces[body.count] = {from[i].data(), to[i].data(), body.items() + from[i].elements()};
    ++body.count;
    if (body.count < CopyEach::kMostPieces && i + 1 < from.size()) continue;
    launch(device, body);
    body.count = 0;
  }
}

void Runtime::copy_staged(const BlockCopy& copy) {
  require_copy_now(copy);
  const CurrentDevice current(gpu_of(copy));
  calls::memcpy_async(copy.to, copy.from, copy.width, compute_stream(gpu_of(copy)).handle());
}

void Runtime::fill(const Tensor& tensor, double value) {
  launch(tensor.device(), Fill{tensor.data(), tensor.elements(), tensor.dtype(), value});
}

void Runtime::cast(const Tensor& from, const Tensor& to) {
  launch(from.device(), Cast{from.data(), to.data(), from.elements(), from.dtype(), to.dtype()});
}

void Runtime::combine(ElementOperator op, const Tensor& target, const Tensor& value) {
  launch(target.device(), Combine{target.data(), value.data(), target.elements(), target.dtype(), op});
}

void Runtime::combine_rows(ElementOperator op, const Tensor& target, const Tensor& indices,
                           const Tensor& values) {
  launch(target.device(),
         CombineRows{target.data(), indices.data(), values.data(), indices.elements(),
                     target.shape().row().elements(), target.dtype(), op, indices.dtype() == DType::kInt64});
}

void Runtime::reduce(ElementOperator op, std::span<const Tensor> inputs, const Tensor& output,
                     std::size_t divisor) {
  COHORT_CHECK(inputs.size() <= Reduce::kMostInputs);
  Reduce body{};
  for (std::size_t i = 0; i < inputs.size(); ++i) body.inputs[i] = inputs[i].data();
  body.count = inputs.size();
  body.output = output.data();
  body.elements = output.elements();
  body.divisor = divisor;
  body.dtype = output.dtype();
  body.op = op;
  launch(output.device(), body);
}

void Runtime::update(const OptimizerStep& step, const Tensor& variable, std::span<const Tensor> slots,
                     const Tensor& gradient) {
  std::visit(
      [&]<class Rule>(const Rule& rule) {
        COHORT_CHECK(slots.size() == Rule::kSlots + step.common.slots());
        if constexpr (Rule::kNotRepeated != nullptr)
          require_not_captured(variable.device(), Rule::kNotRepeated);
        Update<Rule> body{.variable = variable.data(),
                          .gradient = gradient.data(),
                          .slots = {},
                          .master = step.common.has_master ? slots[Rule::kSlots].data() : nullptr,
                          .average = step.common.has_average ? slots.back().data() : nullptr,
                          .elements = variable.elements(),
                          .dtype = variable.dtype(),
                          .common = step.common,
                          .rule = rule};
        for (std::size_t i = 0; i < Rule::kSlots; ++i) body.slots[i] = slots[i].data();
        launch(variable.device(), body);
      },
      step.rule);
}

void Runtime::synchronize(Device device) { compute_stream(device).synchronize(); }

void Runtime::drain(Device device) noexcept {
  release_on(device, [device] { compute_stream(device).drain(); });
}

int Runtime::enter(Device device) { return CurrentDevice::enter(device); }

void Runtime::leave(int before) noexcept { CurrentDevice::leave(before); }

}  // namespace cohort::cuda

// The core finds this function in programs that link this module; see src/device/device.cpp.
extern "C" cohort::DeviceRuntime* cohort_device_runtime() noexcept;

cohort::DeviceRuntime* cohort_device_runtime() noexcept {
  // Not destroyed: static tensors may end after static objects.
  alignas(cohort::cuda::Runtime) static std::array<std::byte, sizeof(cohort::cuda::Runtime)> memory;
  static auto* const runtime = [] {
    cohort::cuda::pass_spans_to_nvtx();
    return new (memory.data()) cohort::cuda::Runtime;
  }();
  return runtime;
}
