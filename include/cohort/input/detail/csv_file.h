// The wanted fields of a CSV file, row by row, as text and as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/input/files/csv_options.h>

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

}  // namespace cohort::detail
