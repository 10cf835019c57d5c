#include <cohort/collective/communication_options.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <string>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>

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

CommunicationScope::CommunicationScope(Communicator& communicator, const CommunicationOptions& options)
    : communicator_(communicator),
      outer_options_(communicator.options_),
      outer_timeout_(communicator.scope_timeout_),
      outer_purpose_(communicator.purpose_) {
  options.validate();
  communicator.options_ = outer_options_.merge(options);
  if (options.timeout_seconds) communicator.scope_timeout_ = options.timeout_seconds;
  communicator.calls_are_plain_ = false;
}

CommunicationScope::CommunicationScope(Communicator& communicator, const CommunicationOptions& options,
                                       CallPurpose& purpose)
    : CommunicationScope(communicator, options) {
  const std::uint64_t before = purpose.fingerprint_;
  purpose.outer_ = outer_purpose_;
  purpose.fingerprint_ =
      outer_purpose_ == nullptr
          ? purpose.own_fingerprint_
          : Fingerprint().add(outer_purpose_->fingerprint()).add(purpose.own_fingerprint_).value();
  if (purpose.fingerprint_ != before) purpose.spoken_.reset();
  communicator.purpose_ = &purpose;
}

CommunicationScope::~CommunicationScope() {
  communicator_.options_ = outer_options_;
  communicator_.scope_timeout_ = outer_timeout_;
  communicator_.purpose_ = outer_purpose_;
  communicator_.calls_are_plain_ = !outer_timeout_ && outer_purpose_ == nullptr &&
                                   outer_options_.implementation == CommunicationImplementation::kAuto &&
                                   outer_options_.hooks == nullptr;
}

}  // namespace cohort
