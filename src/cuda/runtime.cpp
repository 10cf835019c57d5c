// The runtime of GPUs: memory from CUDA's stream-ordered pools, copies and kernels, all on the compute stream
// of the device (see stream.h), so that they take effect in the order of the calls.
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
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
#include <cohort/cuda/event.h>
#include <cohort/cuda/stream.h>

#include "base/timeline_spans.h"
#include "calls.h"
#include "capture.h"
#include "device/device_runtime.h"
#include "kernels.h"

namespace cohort::cuda {
namespace {

/// Copies between ordinary host memory and one GPU, through a ring of pinned blocks that the GPU reads and
/// writes by itself. Data for the GPU is copied into the ring, and the caller goes on; data from it passes
/// through the ring piece by piece. A block is used again when the GPU has finished with it, so callers wait
/// only when the GPU is a whole ring behind. Any thread may copy.
class StagingRing {
 public:
  explicit StagingRing(const Stream& stream);
  ~StagingRing();

  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  /// `copy.from` is ordinary host memory; it has been read on return.
  void upload(const BlockCopy& copy);

  /// `copy.to` is ordinary host memory; it has been written on return.
  void download(const BlockCopy& copy);

 private:
  struct Block {
    explicit Block(Device device);
    std::byte* memory;
    Event done;
  };

  /// Room for `bytes` in the ring, in the block that is current from now on. May wait for the GPU.
  [[nodiscard]] std::byte* take(std::size_t bytes);

  const Stream& stream_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t current_ = 0;
  std::size_t used_ = 0;  ///< bytes of the current block
};

constexpr std::size_t kBlocks = 8;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

/// Calls `visit(piece)` for pieces of `copy` that fit in a block: several rows, or a part of one.
template <class Visitor>
void for_each_piece(const BlockCopy& copy, const Visitor& visit) {
  const std::size_t width = std::min(copy.width, kBlockBytes);
  const bool one_by_one =
      copy.width > kBlockBytes || std::max(copy.to_pitch, copy.from_pitch) > calls::kMostPitch;
  const std::size_t rows = one_by_one ? 1 : std::max<std::size_t>(kBlockBytes / copy.width, 1);
  for (std::size_t row = 0; row < copy.count; row += rows) {
    for (std::size_t begin = 0; begin < copy.width; begin += width) {
      BlockCopy piece = copy;
      piece.to += row * copy.to_pitch + begin;
      piece.from += row * copy.from_pitch + begin;
      piece.width = std::min(width, copy.width - begin);
      piece.count = std::min(rows, copy.count - row);
      visit(piece);
    }
  }
}

/// Of the GPU's side of a piece, which is `pitch` unless it is one row.
std::size_t pitch_on_gpu(const BlockCopy& piece, std::size_t pitch) {
  return piece.count == 1 ? piece.width : pitch;
}

void copy_on_host(std::byte* to, std::size_t to_pitch, const std::byte* from, std::size_t from_pitch,
                  std::size_t width, std::size_t count) {
  for (std::size_t row = 0; row < count; ++row)
    std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
}

StagingRing::Block::Block(Device device)
    : memory(static_cast<std::byte*>(calls::host_alloc(kBlockBytes))), done(device) {}

StagingRing::StagingRing(const Stream& stream) : stream_(stream) {
  blocks_.reserve(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) blocks_.emplace_back(stream.device());
}

StagingRing::~StagingRing() {
  for (const Block& block : blocks_) calls::free_host(block.memory);
}

std::byte* StagingRing::take(std::size_t bytes) {
  if (used_ + bytes > kBlockBytes) {
    const std::size_t next = (current_ + 1) % kBlocks;
    blocks_[next].done.synchronize();
    current_ = next;
    used_ = 0;
  }
  std::byte* const room = blocks_[current_].memory + used_;
  used_ += bytes;
  return room;
}

void StagingRing::upload(const BlockCopy& copy) {
  const CurrentDevice current(stream_.device());
  const std::lock_guard lock(mutex_);
  for_each_piece(copy, [this](const BlockCopy& piece) {
    std::byte* const room = take(piece.width * piece.count);
    copy_on_host(room, piece.width, piece.from, piece.from_pitch, piece.width, piece.count);
    calls::memcpy_2d_async(piece.to, pitch_on_gpu(piece, piece.to_pitch), room, piece.width, piece.width,
                           piece.count, stream_.handle());
    blocks_[current_].done.record(stream_);
  });
}

void StagingRing::download(const BlockCopy& copy) {
  const CurrentDevice current(stream_.device());
  const std::lock_guard lock(mutex_);
  // The GPU copies the next piece while the host copies the one before.
  BlockCopy pending;
  std::size_t pending_block = 0;
  const std::byte* pending_room = nullptr;
  const auto finish = [&] {
    if (pending_room == nullptr) return;
    blocks_[pending_block].done.synchronize();
    copy_on_host(pending.to, pending.to_pitch, pending_room, pending.width, pending.width, pending.count);
  };
  for_each_piece(copy, [&](const BlockCopy& piece) {
    std::byte* const room = take(piece.width * piece.count);
    calls::memcpy_2d_async(room, piece.width, piece.from, pitch_on_gpu(piece, piece.from_pitch), piece.width,
                           piece.count, stream_.handle());
    blocks_[current_].done.record(stream_);
    finish();
    pending = piece;
    pending_block = current_;
    pending_room = room;
  });
  finish();
}

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
        if constexpr (requires { Rule::kNotRepeated; })
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
