#include <cohort/collective/communication_options.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <string>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

namespace cohort {
namespace {

constexpr std::array kAllImplementations{CommunicationImplementation::kAuto,
                                         CommunicationImplementation::kRing,
                                         CommunicationImplementation::kNccl};

}  // namespace

std::string_view to_string(CommunicationImplementation implementation) noexcept {
  switch (implementation) {
    case CommunicationImplementation::kAuto: return "auto";
    case CommunicationImplementation::kRing: return "ring";
    case CommunicationImplementation::kNccl: return "nccl";
  }
  return "unknown";
}

CommunicationImplementation parse_communication_implementation(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const CommunicationImplementation implementation : kAllImplementations) {
    if (to_string(implementation) == lower) return implementation;
  }
  throw InvalidArgument("unknown communication implementation '{}'; known: auto, ring, nccl", name);
}

CommunicationOptions CommunicationOptions::merge(const CommunicationOptions& other) const {
  CommunicationOptions merged = *this;
  if (other.timeout_seconds) merged.timeout_seconds = other.timeout_seconds;
  if (other.bytes_per_pack != 0) merged.bytes_per_pack = other.bytes_per_pack;
  if (other.implementation != CommunicationImplementation::kAuto)
    merged.implementation = other.implementation;
  return merged;
}

void CommunicationOptions::validate() const {
  if (timeout_seconds && !(*timeout_seconds >= 0)) {  // also for NaN
    throw InvalidArgument("timeout_seconds is {}; give a positive number, or 0 to wait for ever",
                          *timeout_seconds);
  }
  if (const auto bytes = static_cast<std::int64_t>(bytes_per_pack); bytes < 0) {
    throw InvalidArgument("bytes_per_pack is {}; give a number of bytes, or 0 to leave it to the library",
                          bytes);
  }
}

std::chrono::duration<double> CommunicationOptions::timeout() const {
  return timeout_seconds ? std::chrono::duration<double>(*timeout_seconds) : config().collective_timeout();
}

Deadline CommunicationOptions::deadline() const {
  validate();
  return Deadline::after(timeout());
}

}  // namespace cohort
