#include "exact_values.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <cohort/base/error.h>

namespace cohort::bench {
namespace {

/// Shared by all members, where they have to agree on an element.
constexpr int kEverybody = -1;

/// A rank and how many there are.
struct RankOf {
  int rank;
  int size;
};

/// Up to this absolute value every integer is exact in T.
template <class T>
constexpr std::int64_t largest_integer() {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(kMost, std::numeric_limits<std::int64_t>::max()));
  }
  if constexpr (std::is_same_v<T, bfloat16>) return 1 << 8;
  if constexpr (std::is_same_v<T, float16>) return 1 << 11;
  if constexpr (std::is_same_v<T, float>) return 1 << 24;
  return std::int64_t{1} << 53;
}

/// Powers of two with exponents up to this (of either sign, where T has fractions) are exact in T.
template <class T>
constexpr int largest_exponent() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::digits - 1;
  if constexpr (std::is_same_v<T, float16>) return 14;
  if constexpr (std::is_same_v<T, double>) return 1022;
  return 126;
}

/// With more members than T has room for, only some contribute to an element, a different
/// choice for each, and never more than `most`.
bool contributes(RankOf member, std::uint64_t index, std::int64_t most) {
  const std::int64_t stride = (member.size + most - 1) / most;
  return (static_cast<std::uint64_t>(member.rank) + index) % static_cast<std::uint64_t>(stride) == 0;
}

/// A number from 0 to `room - 1`.
std::int64_t below(std::int64_t room, int member, std::uint64_t index) {
  return static_cast<std::int64_t>(mixed_bits(static_cast<std::uint64_t>(member), index) %
                                   static_cast<std::uint64_t>(room));
}

/// Positive integers so small that even the sum of all members is exact. Nothing overflows, for
/// libraries differ in what they make of that: some wrap, some saturate.
template <class T>
std::int64_t sum_input(RankOf member, std::uint64_t index) {
  constexpr std::int64_t kLargest = largest_integer<T>();
  const std::int64_t room = kLargest / member.size;
  if (room > 0) return 1 + below(room, member.rank, index);
  return contributes(member, index, kLargest) ? 1 : 0;
}

/// A common value plus a deviation that the next member takes back, so the mean is the common value.
template <class T>
std::int64_t mean_input(RankOf member, std::uint64_t index) {
  const int pair = member.rank / 2;
  const bool paired = member.rank % 2 == 1 || member.rank + 1 < member.size;
  const std::int64_t sign = member.rank % 2 == 0 ? 1 : -1;
  const std::int64_t room = largest_integer<T>() / (2 * static_cast<std::int64_t>(member.size));
  if (room > 0) {
    const std::int64_t common = 1 + below(room, kEverybody, index);
    return common + (paired ? sign * below(room, pair, index) : 0);
  }
  return paired && contributes({pair, (member.size + 1) / 2}, index, largest_integer<T>() / 2) ? sign : 0;
}

/// Numbers over the whole range of integers that T holds exactly.
template <class T>
T order_input(RankOf member, std::uint64_t index) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(mixed_bits(static_cast<std::uint64_t>(member.rank), index));
  } else {
    constexpr std::int64_t kLargest = largest_integer<T>();
    return convert_element<T>(static_cast<double>(below(2 * kLargest, member.rank, index) - kLargest));
  }
}

/// Powers of two, of either sign where T has one: no product of members leaves the exponents of T.
template <class T>
double product_input(RankOf member, std::uint64_t index) {
  if (!contributes(member, index, largest_exponent<T>())) return 1;
  const std::uint64_t bits = mixed_bits(static_cast<std::uint64_t>(member.rank), index);
  const double smaller = std::is_integral_v<T> ? 1 : 0.5;
  const bool negative = !std::is_unsigned_v<T> && (bits & 2) != 0;
  return ((bits & 1) != 0 ? 2 : smaller) * (negative ? -1 : 1);
}

/// One member in `members` stands out, on average, so that its loss shows.
bool bool_input(ReduceOp op, RankOf member, std::uint64_t index) {
  const bool stands_out = below(std::max(member.size, 2), member.rank, index) == 0;
  return op == ReduceOp::kMax ? stands_out : !stands_out;
}

/// The type that holds every partial result of T.
template <class T>
using Exact = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

template <class T>
T input(ReduceOp op, RankOf member, std::uint64_t index) {
  if constexpr (std::is_same_v<T, bool>) {
    return bool_input(op, member, index);
  } else {
    switch (op) {
      case ReduceOp::kSum: return convert_element<T>(static_cast<Exact<T>>(sum_input<T>(member, index)));
      case ReduceOp::kMean: return convert_element<T>(static_cast<Exact<T>>(mean_input<T>(member, index)));
      case ReduceOp::kProd: return convert_element<T>(static_cast<Exact<T>>(product_input<T>(member, index)));
      case ReduceOp::kMin:
      case ReduceOp::kMax: return order_input<T>(member, index);
    }
    throw Internal("operator {} has no exact inputs", to_string(op));
  }
}

/// All members' inputs of one element, reduced one after the other.
template <class T>
T expected(ReduceOp op, int members, std::uint64_t index) {
  const auto value = [&](int member) { return input<T>(op, {member, members}, index); };
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) {
    // Every dtype but uint64, of which all bits are used, fits into Exact.
    using Ordered = std::conditional_t<std::is_same_v<T, std::uint64_t>, T, Exact<T>>;
    auto best = convert_element<Ordered>(value(0));
    for (int member = 1; member < members; ++member) {
      const auto next = convert_element<Ordered>(value(member));
      best = op == ReduceOp::kMin ? std::min(best, next) : std::max(best, next);
    }
    return convert_element<T>(best);
  }
  auto total = convert_element<Exact<T>>(value(0));
  for (int member = 1; member < members; ++member) {
    const auto next = convert_element<Exact<T>>(value(member));
    total = op == ReduceOp::kProd ? total * next : total + next;
  }
  if (op == ReduceOp::kMean) total /= static_cast<Exact<T>>(members);
  return convert_element<T>(total);
}

/// The table of `value(index)`, which gives elements of the type that it is called with.
template <class Value>
ValueTable tabulate(DType dtype, Value value) {
  const std::size_t element_bytes = size_of(dtype);
  std::vector<std::byte> period(ValueTable::kPeriod * element_bytes);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T> type) {
    for (std::size_t i = 0; i < ValueTable::kPeriod; ++i) {
      const T element = value(type, i);
      std::memcpy(period.data() + i * element_bytes, &element, element_bytes);
    }
  });
  return {element_bytes, period};
}

}  // namespace

ValueTable ExactValues::input(int member) const {
  return tabulate(dtype_, [&]<class T>(std::type_identity<T>, std::size_t index) {
    return bench::input<T>(op_, {member, members_}, index);
  });
}

ValueTable ExactValues::reduced() const {
  return tabulate(dtype_, [&]<class T>(std::type_identity<T>, std::size_t index) {
    return expected<T>(op_, members_, index);
  });
}

}  // namespace cohort::bench
