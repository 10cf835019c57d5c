// Comma-separated text, as RFC 4180 has it, with other delimiters, comments and missing values: as
// rows of C++ values, as rows of tensors, or as one matrix.
//
//     struct House { std::string street; float rent; std::optional<int> year; };
//     COHORT_FIELDS(House, street, rent, year)
//
//     csv_dataset<House>({"a.csv", "b.csv"}, {.has_header = true, .columns = {"street", "rent", "built"}})
//     csv_dataset<Tensor>({"digits.csv"}, {.dtype = DType::kFloat32})
//
// Blank lines are skipped, and spaces around numbers. A field is a number only if all of it is one, perhaps
// with a sign, and its type can hold it: what is too small for a floating type becomes its nearest number, or
// 0; nothing is rounded to an integer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cohort/input/dataset.h>
#include <cohort/input/detail/csv_file.h>
#include <cohort/input/detail/file_source.h>
#include <cohort/input/files/csv_options.h>

namespace cohort {

/// One element per row. A `Row` is
/// - a Tensor, of shape [columns] and of `options.dtype`;
/// - a number or a std::string, which takes one column; a std::optional of one, for fields that may be empty,
///   where "" is an empty string, but no number;
/// - a tuple, pair, array or aggregate (COHORT_FIELDS) of these: as many columns, in their order.
/// Map rows of the latter kinds to tensors before they are batched.
/// @throws InvalidArgument without a file, and for options that contradict each other. When iterated:
/// Unavailable for a file that cannot be opened; InvalidArgument for a column that does not exist; DataLoss
/// naming file, line and field for a row of another number of fields, or a field of another type.
template <class Row>
[[nodiscard]] Dataset<Row> csv_dataset(std::vector<std::string> files, const CsvOptions& options = {});

/// All rows of one file as a matrix, shape [rows, columns] and of `options.dtype`.
/// @throws as csv_dataset; DataLoss when the file has no row.
[[nodiscard]] Tensor read_csv(const std::string& path, const CsvOptions& options = {});

// ---- implementation of the templates ----

namespace detail {

[[nodiscard]] FileFormatPtr<Tensor> csv_tensor_format(const CsvOptions& options);

template <class Row>
class CsvRows final : public ElementIterator<Row> {
 public:
  CsvRows(const std::string& path, const CsvOptions& options) : file_(path, options, kCsvColumns<Row>) {}

  std::optional<Row> next() override {
    if (!file_.next()) return std::nullopt;
    Row row;
    std::size_t column = 0;
    read_csv_fields(file_, column, row);
    return row;
  }

  std::int64_t skip(std::int64_t count) override { return file_.skip(count); }

 private:
  CsvFile file_;
};

template <class Row>
class CsvFormat final : public FileFormat<Row> {
 public:
  explicit CsvFormat(CsvOptions options) : options_(std::move(options)) {
    check_csv_options(options_, kCsvColumns<Row>);
  }

  [[nodiscard]] std::string_view name() const override { return "CSV"; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Row>> open(const std::string& path) const override {
    return std::make_unique<CsvRows<Row>>(path, options_);
  }

 private:
  CsvOptions options_;
};

}  // namespace detail

template <class Row>
Dataset<Row> csv_dataset(std::vector<std::string> files, const CsvOptions& options) {
  detail::FileFormatPtr<Row> format;
  if constexpr (std::is_same_v<Row, Tensor>)
    format = detail::csv_tensor_format(options);
  else
    format = std::make_shared<const detail::CsvFormat<Row>>(options);
  return Dataset<Row>(detail::read_files<Row>(std::move(files), std::move(format)));
}

}  // namespace cohort
