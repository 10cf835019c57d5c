#include <cohort/input/files/npy.h>

#include <algorithm>
#include <utility>

#include "array_format.h"
#include "npy_header.h"

namespace cohort {
namespace {

using detail::MappedFile;

class NpyFormat final : public detail::ArrayFormat {
 public:
  explicit NpyFormat(const NpyOptions& options) : ArrayFormat("npy"), options_(options) {}

 private:
  [[nodiscard]] Header read_header(MappedFile& file) const override {
    const std::string& path = file.path();
    const std::size_t preamble = std::min<std::uint64_t>(file.size(), detail::kNpyPreambleBytes);
    const std::uint64_t end = detail::npy_header_bytes(file.bytes(0, preamble), path);
    if (end > file.size())
      throw DataLoss("{}: the header is {} bytes long, but the file {}; it is truncated", path, end,
                     file.size());
    detail::ArrayHeader array = detail::parse_npy_header(file.bytes(0, end), path);
    if (options_.dtype && *options_.dtype != array.dtype) {
      throw InvalidArgument("{}: the array is of {}, not {}; save it with astype('{}'), or ask for {}", path,
                            to_string(array.dtype), to_string(*options_.dtype), to_string(*options_.dtype),
                            to_string(array.dtype));
    }
    // numpy.save may have been called more often on one file; numpy.load reads the first array, too.
    const std::uint64_t rest = file.size() - end;
    const std::optional<std::uint64_t> own = detail::bytes_of(array);
    const bool has_more = own && *own < rest &&
                          detail::begins_npy(file.bytes(
                              end + *own, std::min<std::uint64_t>(rest - *own, detail::kNpyPreambleBytes)));
    return {std::move(array), end, has_more ? rest - *own : 0};
  }

  NpyOptions options_;
};

}  // namespace

Dataset<Tensor> npy_dataset(std::vector<std::string> files, const NpyOptions& options) {
  return Dataset<Tensor>(
      detail::read_files<Tensor>(std::move(files), std::make_shared<const NpyFormat>(options)));
}

}  // namespace cohort
