#include <cohort/device/device.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "device_runtime.h"

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
