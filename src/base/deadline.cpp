#include <cohort/base/deadline.h>

namespace cohort {

Deadline Deadline::after(std::chrono::duration<double> timeout) noexcept {
  // Beyond a century the addition below could overflow; no program waits that long on purpose.
  constexpr std::chrono::duration<double> kCentury = std::chrono::hours(24 * 365 * 100);
  if (!(timeout.count() > 0) || timeout > kCentury) return never();  // also for NaN
  return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout));
}

Deadline Deadline::plus(Clock::duration extra) const noexcept {
  return is_never() ? *this : Deadline(at_ + extra);
}

}  // namespace cohort
