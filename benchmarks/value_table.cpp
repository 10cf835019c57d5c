#include "value_table.h"

#include <algorithm>
#include <array>
#include <bit>
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

namespace {

template <class T>
void store_as(std::uint64_t integer, std::byte* to) {
  const T value = static_cast<T>(integer);
  std::memcpy(to, &value, sizeof(value));
}

/// The upper half of a float32, of which the lower is zero for integers of 8 bits.
void store_bfloat16(std::uint64_t integer, std::byte* to) {
  const auto bits =
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(integer)) >> 16);
  std::memcpy(to, &bits, sizeof(bits));
}

/// IEEE 754 binary16: 10 bits of fraction, and an exponent with a bias of 15.
void store_float16(std::uint64_t integer, std::byte* to) {
  std::uint16_t bits = 0;
  if (integer > 0) {
    const auto exponent = static_cast<std::uint64_t>(std::bit_width(integer) - 1);
    const std::uint64_t fraction = exponent <= 10 ? integer << (10 - exponent) : integer >> (exponent - 10);
    bits = static_cast<std::uint16_t>(((exponent + 15) << 10) | (fraction & 0x3ff));
  }
  std::memcpy(to, &bits, sizeof(bits));
}

constexpr std::array kFormats{
    NumberFormat{"float32", 4, std::uint64_t{1} << 24, store_as<float>},
    NumberFormat{"float64", 8, std::uint64_t{1} << 53, store_as<double>},
    NumberFormat{"float16", 2, std::uint64_t{1} << 11, store_float16},
    NumberFormat{"bfloat16", 2, std::uint64_t{1} << 8, store_bfloat16},
    NumberFormat{"int32", 4, (std::uint64_t{1} << 31) - 1, store_as<std::int32_t>},
};

template <class Integer>
ValueTable tabulate(const NumberFormat& format, Integer integer) {
  std::vector<std::byte> period(ValueTable::kPeriod * format.bytes);
  for (std::size_t i = 0; i < ValueTable::kPeriod; ++i)
    format.store(integer(i), period.data() + i * format.bytes);
  return {format.bytes, period};
}

}  // namespace

std::optional<NumberFormat> find_number_format(std::string_view name) {
  for (const NumberFormat& format : kFormats) {
    if (format.name == name) return format;
  }
  return std::nullopt;
}

std::uint64_t IntegerValues::integer(int member, std::size_t index) const {
  const std::uint64_t room = format_.integers / static_cast<std::uint64_t>(members_);
  return room == 0 ? 0 : 1 + mixed_bits(static_cast<std::uint64_t>(member), index) % room;
}

ValueTable IntegerValues::input(int member) const {
  return tabulate(format_, [&](std::size_t index) { return integer(member, index); });
}

ValueTable IntegerValues::reduced() const {
  return tabulate(format_, [&](std::size_t index) {
    std::uint64_t sum = 0;
    for (int member = 0; member < members_; ++member) sum += integer(member, index);
    return sum;
  });
}

}  // namespace cohort::bench
