#include <cohort/input/files/fixed_length_record.h>

#include <utility>

#include <cohort/input/detail/file_source.h>

#include "array_rows.h"

namespace cohort {
namespace {

constexpr std::string_view kFixedLengthName = "fixed-length record";

class FixedLengthRecordFormat final : public detail::FileFormat<Tensor> {
 public:
  explicit FixedLengthRecordFormat(const FixedLengthRecordOptions& options) : options_(options) {
    if (options.record_bytes < 1 || options.header_bytes < 0 || options.footer_bytes < 0) {
      throw InvalidArgument(
          "fixed-length records of {} bytes, after a header of {} and before a footer of {}, are not "
          "possible; records have at least 1 byte, and the others at least 0",
          options.record_bytes, options.header_bytes, options.footer_bytes);
    }
  }

  [[nodiscard]] std::string_view name() const override { return kFixedLengthName; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> open(const std::string& path) const override {
    auto file = std::make_unique<detail::MappedFile>(path, kFixedLengthName);
    const std::int64_t records = records_of(path, file->size());
    return detail::iterate_rows(std::move(file), {.offset = static_cast<std::uint64_t>(options_.header_bytes),
                                                  .rows = records,
                                                  .row = {options_.record_bytes},
                                                  .dtype = DType::kUInt8});
  }

  [[nodiscard]] Cardinality cardinality(const std::string& path) const override {
    return Cardinality::of(records_of(path, detail::InputFile(path, kFixedLengthName).size_of_content()));
  }

 private:
  [[nodiscard]] std::int64_t records_of(const std::string& path, std::uint64_t bytes) const {
    const auto around =
        static_cast<std::uint64_t>(options_.header_bytes) + static_cast<std::uint64_t>(options_.footer_bytes);
    const auto record = static_cast<std::uint64_t>(options_.record_bytes);
    if (bytes < around) {
      throw DataLoss(
          "{}: {} bytes are fewer than the header of {} and the footer of {}; the file is truncated, "
          "or the options do not describe its format",
          path, bytes, options_.header_bytes, options_.footer_bytes);
    }
    if ((bytes - around) % record != 0) {
      throw DataLoss(
          "{}: {} bytes after the header are {} records of {} bytes and {} bytes more; the file is "
          "truncated, or the options do not describe its format",
          path, bytes - around, (bytes - around) / record, record, (bytes - around) % record);
    }
    return static_cast<std::int64_t>((bytes - around) / record);
  }

  FixedLengthRecordOptions options_;
};

}  // namespace

Dataset<Tensor> fixed_length_record_dataset(std::vector<std::string> files,
                                            const FixedLengthRecordOptions& options) {
  return Dataset<Tensor>(
      detail::read_files<Tensor>(std::move(files), std::make_shared<const FixedLengthRecordFormat>(options)));
}

}  // namespace cohort
