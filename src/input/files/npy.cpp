#include <cohort/input/files/npy.h>

#include <algorithm>

#include "array_rows.h"
#include "npy_header.h"

namespace cohort {
namespace {

using detail::MappedFile;

constexpr std::string_view kName = "npy";

class NpyFormat final : public detail::FileFormat<Tensor> {
 public:
  explicit NpyFormat(const NpyOptions& options) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> open(const std::string& path) const override {
    auto file = std::make_unique<MappedFile>(path, kName);
    const detail::ArrayLayout layout = read_layout(*file);
    return detail::iterate_rows(std::move(file), layout);
  }

  [[nodiscard]] Cardinality cardinality(const std::string& path) const override {
    MappedFile file(path, kName);
    return Cardinality::of(read_layout(file).rows);
  }

 private:
  [[nodiscard]] detail::ArrayLayout read_layout(MappedFile& file) const {
    const std::string& path = file.path();
    const std::size_t preamble = std::min<std::uint64_t>(file.size(), detail::kNpyPreambleBytes);
    const std::uint64_t end = detail::npy_header_bytes(file.bytes(0, preamble), path);
    if (end > file.size())
      throw DataLoss("{}: the header is {} bytes long, but the file {}; it is truncated", path, end,
                     file.size());
    const detail::ArrayHeader header = detail::parse_npy_header(file.bytes(0, end), path);
    if (options_.dtype && *options_.dtype != header.dtype) {
      throw InvalidArgument("{}: the array is of {}, not {}; save it with astype('{}'), or ask for {}", path,
                            to_string(header.dtype), to_string(*options_.dtype), to_string(*options_.dtype),
                            to_string(header.dtype));
    }
    const Shape shape = detail::checked_shape(header, file.size() - end, path);
    return {.offset = end,
            .rows = shape[0],
            .row = shape.row(),
            .dtype = header.dtype,
            .byte_order = header.byte_order};
  }

  NpyOptions options_;
};

}  // namespace

Dataset<Tensor> npy_dataset(std::vector<std::string> files, const NpyOptions& options) {
  return Dataset<Tensor>(
      detail::read_files<Tensor>(std::move(files), std::make_shared<const NpyFormat>(options)));
}

}  // namespace cohort
