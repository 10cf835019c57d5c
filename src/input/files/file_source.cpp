#include <cohort/input/detail/file_source.h>

namespace cohort::detail {

void require_files(const std::vector<std::string>& files, std::string_view format) {
  if (files.empty()) throw InvalidArgument("a dataset of {} files needs at least one file", format);
}

}  // namespace cohort::detail
