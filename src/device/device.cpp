#include <cohort/device/device.h>

#include <sys/mman.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/device/allocator.h>

#include "device_runtime.h"
#include "node_heap.h"

namespace cohort {
namespace {

bool strip_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

Device Device::parse(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view rest = lower;
  strip_prefix(rest, "/");
  strip_prefix(rest, "device:");

  const auto reject = [&]() -> Device {
    throw InvalidArgument("'{}' is not a device: a device is cpu:K or cuda:K with K = 0, 1, ...", name);
  };
  DeviceKind kind = DeviceKind::kCpu;
  if (strip_prefix(rest, "cpu")) {
    kind = DeviceKind::kCpu;
  } else if (strip_prefix(rest, "cuda") || strip_prefix(rest, "gpu")) {
    kind = DeviceKind::kCuda;
  } else {
    return reject();
  }
  if (rest.empty()) return {kind, 0};
  if (!strip_prefix(rest, ":")) return reject();
  int index = -1;
  const auto [stopped, status] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
  if (status != std::errc() || stopped != rest.data() + rest.size() || index < 0) return reject();
  return {kind, index};
}

std::string to_string(Device device) {
  return fmt::format("{}:{}", device.kind() == DeviceKind::kCpu ? "cpu" : "cuda", device.index());
}

std::vector<Device> cpu_devices(int count) {
  if (count < 1) throw InvalidArgument("cannot make {} CPU devices; ask for at least 1", count);
  std::vector<Device> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) devices.push_back(Device::cpu(index));
  return devices;
}

void require_exists(Device device) {
  if (!is_cpu(device)) runtime_of(device).require(device);
}

std::vector<Device> gpu_devices() {
  const DeviceRuntime* const runtime = linked_device_runtime();
  return runtime == nullptr ? std::vector<Device>() : runtime->devices();
}

void synchronize(Device device) {
  if (!is_cpu(device)) runtime_of(device).synchronize(device);
}

}  // namespace cohort

// A module for devices defines it. The reference is weak, so that programs without a module link; a link
// option of the module's own makes others link theirs.
extern "C" __attribute__((weak)) cohort::DeviceRuntime* cohort_device_runtime() noexcept;

namespace cohort {

DeviceRuntime* linked_device_runtime() noexcept {
  return cohort_device_runtime == nullptr ? nullptr : cohort_device_runtime();
}

DeviceRuntime& runtime_of(Device device) {
  COHORT_CHECK(!is_cpu(device));
  if (DeviceRuntime* const runtime = linked_device_runtime()) return *runtime;
  throw Unavailable(
      "device {} does not exist: this program has no GPU support; build Cohort with the CUDA toolkit and "
      "link cohort::cuda, or use a cpu:K device",
      to_string(device));
}

void copy_blocks(const BlockCopy& copy) {
  if (!is_cpu(copy.to_device)) return runtime_of(copy.to_device).copy(copy);
  if (!is_cpu(copy.from_device)) return runtime_of(copy.from_device).copy(copy);
  for (std::size_t block = 0; block < copy.count; ++block)
    std::memcpy(copy.to + block * copy.to_pitch, copy.from + block * copy.from_pitch, copy.width);
}

EnteredDevice::EnteredDevice(Device device) {
  if (is_cpu(device)) return;
  runtime_ = &runtime_of(device);
  before_ = runtime_->enter(device);
}

EnteredDevice::~EnteredDevice() {
  if (runtime_ != nullptr) runtime_->leave(before_);
}

namespace {

/// A block of the node heap; null when there is no heap or no room in it.
std::shared_ptr<const Buffer> allocate_shared(std::size_t bytes, Device device) {
  NodeHeap* heap = NodeHeap::of_this_process();
  std::byte* block = heap == nullptr ? nullptr : heap->allocate(bytes);
  if (block == nullptr) return nullptr;
  std::shared_ptr<void> owner(block, [heap, block, bytes](void*) { heap->release(block, bytes); });
  return std::make_shared<const Buffer>(block, bytes, device, std::move(owner));
}

}  // namespace

std::shared_ptr<const Buffer> allocate_private(std::size_t bytes, Device device) {
  if (!is_cpu(device)) return runtime_of(device).allocate(bytes, device);
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const std::size_t size = round_up(bytes == 0 ? 1 : bytes, alignment);
  void* memory = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (memory == nullptr) {
    throw Unavailable("out of memory: cannot allocate {} bytes on {}", bytes, to_string(device));
  }
  std::shared_ptr<void> owner(memory, [](void* pointer) { std::free(pointer); });
  if (alignment == kHugePage && config().huge_pages()) {
    // Only advice: if the kernel declines, the memory works all the same.
    static_cast<void>(madvise(memory, size, MADV_HUGEPAGE));
  }
  return std::make_shared<const Buffer>(static_cast<std::byte*>(memory), bytes, device, std::move(owner));
}

std::shared_ptr<const Buffer> allocate(std::size_t bytes, Device device) {
  if (!is_cpu(device)) return runtime_of(device).allocate(bytes, device);
  if (std::shared_ptr<const Buffer> shared = allocate_shared(bytes, device)) return shared;
  return allocate_private(bytes, device);
}

}  // namespace cohort
