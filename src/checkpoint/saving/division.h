// Which worker writes what: each value once, evenly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cohort::checkpoint {

struct Divisible {
  std::uint64_t bytes_of_row = 0;
  std::int64_t rows = 1;
};

struct Part {
  std::size_t value = 0;  ///< its index
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  int worker = 0;
};

/// The parts by value and first row. Values stay whole unless they are larger than a worker's fair share,
/// for other programs read them more easily. No worker has more than twice the share and one row.
[[nodiscard]] std::vector<Part> divide(const std::vector<Divisible>& values, int workers);

}  // namespace cohort::checkpoint
