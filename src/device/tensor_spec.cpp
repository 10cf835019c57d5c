#include <cohort/device/tensor_spec.h>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>

namespace cohort {

std::string describe(const TensorSpec& spec) {
  std::string text = fmt::format("{}{}", to_string(spec.dtype), to_string(spec.shape));
  if (!spec.name.empty()) text += fmt::format(" '{}'", spec.name);
  return text;
}

std::uint64_t layout_of(std::span<const TensorSpec> specs) {
  Fingerprint layout;
  for (const TensorSpec& spec : specs) {
    layout.add(static_cast<std::uint64_t>(spec.dtype)).add(spec.shape.extents().size());
    for (const std::int64_t extent : spec.shape.extents()) layout.add(static_cast<std::uint64_t>(extent));
  }
  return layout.value();
}

}  // namespace cohort
