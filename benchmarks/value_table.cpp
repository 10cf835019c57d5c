#include "value_table.h"

#include <algorithm>
#include <cstring>

namespace cohort::bench {
namespace {

/// A multiple of every element's size and of a cache line: a buffer is written in aligned pieces.
constexpr std::size_t kChunk = 4096;

}  // namespace

ValueTable::ValueTable(std::size_t element_bytes, std::span<const std::byte> period)
    : element_bytes_(element_bytes), table_(period.size() + kChunk) {
  for (std::size_t i = 0; i < table_.size(); ++i) table_[i] = period[i % period.size()];
}

void ValueTable::write(std::span<std::byte> to, std::size_t first) const {
  std::size_t at = first % kPeriod;
  for (std::size_t done = 0; done < to.size(); done += kChunk) {
    std::memcpy(to.data() + done, table_.data() + at * element_bytes_, std::min(kChunk, to.size() - done));
    at = (at + kChunk / element_bytes_) % kPeriod;
  }
}

std::uint64_t ValueTable::count_wrong(std::span<const std::byte> values, std::size_t first) const {
  std::uint64_t wrong = 0;
  std::size_t at = first % kPeriod;
  for (std::size_t done = 0; done < values.size(); done += kChunk) {
    const std::size_t bytes = std::min(kChunk, values.size() - done);
    const std::byte* found = values.data() + done;
    const std::byte* wanted = table_.data() + at * element_bytes_;
    at = (at + kChunk / element_bytes_) % kPeriod;
    if (std::memcmp(found, wanted, bytes) == 0) continue;
    for (std::size_t i = 0; i < bytes; i += element_bytes_) {
      if (std::memcmp(found + i, wanted + i, element_bytes_) != 0) ++wrong;
    }
  }
  return wrong;
}

}  // namespace cohort::bench
