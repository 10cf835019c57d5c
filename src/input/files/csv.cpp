#include <cohort/input/files/csv.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace cohort {
namespace {

using detail::CsvFile;

DType dtype_of(const CsvOptions& options) { return options.dtype.value_or(DType::kFloat32); }

/// The numbers of the file's row, one after the other.
void read_numbers(const CsvFile& file, DType dtype, std::byte* to) {
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    T* const numbers = reinterpret_cast<T*>(to);
    for (std::size_t column = 0; column < file.columns(); ++column) numbers[column] = file.number<T>(column);
  });
}

class CsvTensorRows final : public ElementIterator<Tensor> {
 public:
  CsvTensorRows(const std::string& path, const CsvOptions& options)
      : file_(path, options, std::nullopt), dtype_(dtype_of(options)) {}

  std::optional<Tensor> next() override {
    if (!file_.next()) return std::nullopt;
    const std::size_t row_bytes = file_.columns() * size_of(dtype_);
    if (!block_ || block_->bytes() - used_ < row_bytes) {
      block_ = allocate_private(std::max(kBlockBytes, row_bytes), Device());
      used_ = 0;
    }
    read_numbers(file_, dtype_, block_->data() + used_);
    Tensor row = Tensor::wrap(block_, used_, {static_cast<std::int64_t>(file_.columns())}, dtype_);
    used_ += row_bytes;
    return row;
  }

  std::int64_t skip(std::int64_t count) override { return file_.skip(count); }

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

  CsvFile file_;
  DType dtype_;
  std::shared_ptr<const Buffer> block_;  ///< of several rows: an allocation for each would cost more than it
  std::size_t used_ = 0;
};

class CsvTensorFormat final : public detail::FileFormat<Tensor> {
 public:
  explicit CsvTensorFormat(CsvOptions options) : options_(std::move(options)) {
    detail::check_csv_options(options_, std::nullopt);
  }

  [[nodiscard]] std::string_view name() const override { return "CSV"; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> open(const std::string& path) const override {
    return std::make_unique<CsvTensorRows>(path, options_);
  }

 private:
  CsvOptions options_;
};

}  // namespace

detail::FileFormatPtr<Tensor> detail::csv_tensor_format(const CsvOptions& options) {
  return std::make_shared<const CsvTensorFormat>(options);
}

Tensor read_csv(const std::string& path, const CsvOptions& options) {
  detail::check_csv_options(options, std::nullopt);
  CsvFile file(path, options, std::nullopt);
  const DType dtype = dtype_of(options);
  std::vector<std::byte> numbers;
  std::int64_t rows = 0;
  for (; file.next(); ++rows) {
    const std::size_t end = numbers.size();
    numbers.resize(end + file.columns() * size_of(dtype));
    read_numbers(file, dtype, numbers.data() + end);
  }
  if (rows == 0) throw DataLoss("{}: no rows of numbers in the file", path);
  Tensor matrix = Tensor::uninitialized({rows, static_cast<std::int64_t>(file.columns())}, dtype);
  std::memcpy(matrix.data(), numbers.data(), numbers.size());
  return matrix;
}

}  // namespace cohort
