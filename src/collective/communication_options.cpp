#include <cohort/collective/communication_options.h>

#include <chrono>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

namespace cohort {

Deadline CommunicationOptions::deadline() const {
  if (!timeout_seconds) return Deadline::after(config().collective_timeout());
  if (!(*timeout_seconds >= 0)) {  // also for NaN
    throw InvalidArgument("timeout_seconds is {}; give a positive number, or 0 to wait for ever",
                          *timeout_seconds);
  }
  return Deadline::after(std::chrono::duration<double>(*timeout_seconds));
}

}  // namespace cohort
