// Amounts of memory for people.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace cohort {

/// With three digits, so that columns stay narrow: `1.50 GiB`.
[[nodiscard]] inline std::string bytes_text(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  const int digits = unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", bytes, digits, kUnits[unit]);
}

}  // namespace cohort
