// The wanted fields of a CSV file, row by row, as text, as numbers, and as a C++ value by its type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/input/files/csv_options.h>
#include <cohort/value/structure.h>

namespace cohort::detail {

/// `columns` is how many columns a row takes; unset for rows that are tensors, which take all.
/// @throws InvalidArgument for options that contradict each other or the rows.
void check_csv_options(const CsvOptions& options, std::optional<std::size_t> columns);

class CsvParser;
struct CsvField;

class CsvFile {
 public:
  /// Reads the header, if there is one. @throws Error as csv_dataset.
  CsvFile(const std::string& path, const CsvOptions& options, std::optional<std::size_t> columns);
  ~CsvFile();
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  /// Goes to the next row; false at the end. @throws DataLoss.
  bool next();
  /// Skips `count` rows; returns how many there were.
  std::int64_t skip(std::int64_t count);

  /// How many columns are wanted; 0 before the first row of a file without a header.
  [[nodiscard]] std::size_t columns() const { return wanted_.size(); }

  /// The `column`-th of the wanted fields of this row; valid until the next one.
  [[nodiscard]] std::string_view text(std::size_t column) const;
  /// Whether the field is empty, without even quotes.
  [[nodiscard]] bool is_missing(std::size_t column) const;
  /// Whether it is empty, in quotes or not.
  [[nodiscard]] bool is_empty(std::size_t column) const { return text(column).empty(); }
  /// @throws DataLoss when the field is not a number, or not one of `T`.
  template <Element T>
  [[nodiscard]] T number(std::size_t column) const;

 private:
  void read_header();
  /// @throws InvalidArgument when the program does not take files of that many fields per row.
  void choose_columns(std::size_t fields);
  [[nodiscard]] std::size_t find_column(const std::string& name) const;
  [[nodiscard]] const CsvField& field(std::size_t column) const;
  [[noreturn]] void throw_not_a_number(std::size_t column) const;
  [[noreturn]] void throw_does_not_fit(std::size_t column, DType dtype) const;
  /// An advice, where a line that begins with # is not what it should be.
  [[nodiscard]] std::string about_comments(bool begins_like_one) const;
  [[nodiscard]] std::string describe(std::size_t column) const;

  std::unique_ptr<CsvParser> parser_;
  CsvOptions options_;
  std::optional<std::size_t> row_columns_;  ///< how many an element takes; unset: all
  std::vector<std::string> header_;
  std::size_t fields_per_row_ = 0;  ///< 0 before the first row
  std::vector<std::size_t> wanted_;
  std::vector<CsvField> row_;
  bool may_begin_with_comment_ = false;
};

/// What a field can be.
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
