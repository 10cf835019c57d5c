// The fields of a CSV row into a C++ value, by its type.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cohort/input/detail/csv_file.h>
#include <cohort/value/structure.h>

namespace cohort::detail {

template <class T>
concept CsvValue = Element<T> || std::same_as<T, std::string>;

template <class T>
constexpr std::size_t count_csv_columns();

template <class Fields>
constexpr std::size_t sum_csv_columns() {
  return []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return (std::size_t{0} + ... +
            count_csv_columns<std::remove_cvref_t<std::tuple_element_t<kIndex, Fields>>>());
  }
  (std::make_index_sequence<std::tuple_size_v<Fields>>{});
}

template <class T>
constexpr std::size_t count_csv_columns() {
  if constexpr (kIsInstance<T, std::optional>) {
    static_assert(CsvValue<typename T::value_type>, "an optional of a CSV row holds a number or a string");
    return 1;
  } else if constexpr (TupleLike<T>) {
    return sum_csv_columns<T>();
  } else if constexpr (WithFields<T>) {
    return sum_csv_columns<decltype(cohort_fields(std::declval<T&>()))>();
  } else {
    static_assert(
        CsvValue<T>,
        "not a row of a CSV file: use Tensor, or numbers, std::string, optionals of these, and tuples, "
        "arrays and aggregates (COHORT_FIELDS) of them");
    return 1;
  }
}

/// How many columns a value takes.
template <class T>
inline constexpr std::size_t kCsvColumns = count_csv_columns<T>();

/// Reads `value` from the row's fields from `column` on, and moves `column` past them.
template <class T>
void read_csv_fields(const CsvFile& file, std::size_t& column, T& value) {
  if constexpr (Element<T>) {
    value = file.number<StoredElement<T>>(column++);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = file.text(column++);
  } else if constexpr (kIsInstance<T, std::optional>) {
    constexpr bool kIsNumber = Element<typename T::value_type>;
    if (kIsNumber ? file.is_empty(column) : file.is_missing(column)) {
      value.reset();
      ++column;
    } else {
      read_csv_fields(file, column, value.emplace());
    }
  } else {
    const auto each = [&](auto&... fields) { (read_csv_fields(file, column, fields), ...); };
    if constexpr (TupleLike<T>)
      std::apply(each, value);
    else if constexpr (WithFields<T>)
      std::apply(each, cohort_fields(value));
  }
}

}  // namespace cohort::detail
