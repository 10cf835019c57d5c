#include "page_tables.h"

#include <unistd.h>

#include <fmt/format.h>

namespace cohort {

std::optional<std::string> page_table_warning(std::size_t bytes_in_small_pages, int processes) {
  constexpr double kMostOfHeaps = 0.01;
  constexpr double kFewBytes = 256.0 * (1 << 20);
  static const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  const double heaps = static_cast<double>(bytes_in_small_pages) * processes;
  const double tables = heaps / page * sizeof(void*) * processes;
  if (tables <= kMostOfHeaps * heaps || tables < kFewBytes) return std::nullopt;
  return fmt::format(
      "the {} processes of this node may need {:.1f} GiB of page tables for their heaps of {:.1f} GiB, which "
      "have "
      "no huge pages: set COHORT_HUGE_PAGES=true on Linux 6.1 or later with transparent huge pages, or start "
      "fewer processes with several threads each",
      processes, tables / (1 << 30), heaps / (1 << 30));
}

}  // namespace cohort
