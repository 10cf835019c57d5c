#include <cohort/collective/packing.h>

#include <array>
#include <optional>

#include <cohort/base/fingerprint.h>

namespace cohort {
namespace {

std::uint64_t layout_of(std::span<const Tensor> tensors) {
  Fingerprint layout;
  for (const Tensor& tensor : tensors) {
    layout.add(static_cast<std::uint64_t>(tensor.dtype())).add(tensor.shape().extents().size());
    for (const std::int64_t extent : tensor.shape().extents()) layout.add(static_cast<std::uint64_t>(extent));
  }
  return layout.value();
}

}  // namespace

PackedTensors pack(std::span<const Tensor> tensors) {
  std::array<std::int64_t, kAllDTypes.size()> totals{};
  for (const Tensor& tensor : tensors) {
    totals[static_cast<std::size_t>(tensor.dtype())] += static_cast<std::int64_t>(tensor.elements());
  }

  PackedTensors packed;
  packed.layout = layout_of(tensors);
  std::array<std::optional<Tensor>, kAllDTypes.size()> flat_of;
  std::array<std::int64_t, kAllDTypes.size()> filled{};
  for (const Tensor& tensor : tensors) {
    const auto slot = static_cast<std::size_t>(tensor.dtype());
    if (!flat_of[slot]) {
      flat_of[slot] = Tensor::uninitialized({totals[slot]}, tensor.dtype(), tensor.device());
      packed.flats.push_back(*flat_of[slot]);
    }
    const std::int64_t begin = filled[slot];
    filled[slot] += static_cast<std::int64_t>(tensor.elements());
    packed.views.push_back(flat_of[slot]->rows(begin, filled[slot]).reshape(tensor.shape()));
    packed.views.back().copy_from(tensor);
  }
  return packed;
}

}  // namespace cohort
