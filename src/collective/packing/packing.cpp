#include <cohort/collective/packing.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace cohort {
namespace {

/// The packs made so far, and the open one of each dtype.
class Packer {
 public:
  explicit Packer(std::span<const TensorSpec> specs) : specs_(specs) {}

  /// Puts a tensor into the open pack of its dtype. Returns the pack's bytes.
  std::size_t add(std::size_t tensor) {
    Open& open = open_of(tensor);
    if (!open.pack) {
      open = {packs_.size(), 0};
      packs_.emplace_back();
    }
    packs_[*open.pack].push_back(tensor);
    return open.bytes += specs_[tensor].bytes();
  }

  /// Whether a pack of its dtype is open that is not empty, and has no room for it within `limit`.
  [[nodiscard]] bool overfills(std::size_t tensor, std::size_t limit) {
    const Open& open = open_of(tensor);
    return open.pack && open.bytes > 0 && open.bytes + specs_[tensor].bytes() > limit;
  }

  void add_alone(std::size_t tensor) { packs_.push_back({tensor}); }

  /// The next tensor of this one's dtype begins a new pack.
  void close_pack_of(std::size_t tensor) { open_of(tensor).pack.reset(); }

  [[nodiscard]] std::vector<Pack> take() { return std::move(packs_); }

 private:
  struct Open {
    std::optional<std::size_t> pack;
    std::size_t bytes = 0;
  };
  Open& open_of(std::size_t tensor) { return open_[static_cast<std::size_t>(specs_[tensor].dtype)]; }

  std::span<const TensorSpec> specs_;
  std::vector<Pack> packs_;
  std::array<Open, kAllDTypes.size()> open_;
};

}  // namespace

std::size_t CommunicationCost::smallest_lone_tensor() const noexcept {
  return static_cast<std::size_t>(latency_seconds * copied_bytes_per_second);
}

std::size_t CommunicationCost::best_bucket(std::size_t total_bytes) const noexcept {
  return static_cast<std::size_t>(
      std::sqrt(static_cast<double>(total_bytes) * latency_seconds * bytes_per_second));
}

std::vector<Pack> make_packs(std::span<const TensorSpec> specs, std::size_t bytes_per_pack,
                             const CommunicationCost& cost) {
  Packer packer(specs);
  if (bytes_per_pack > 0) {
    for (std::size_t tensor = specs.size(); tensor-- > 0;)
      if (packer.add(tensor) > bytes_per_pack) packer.close_pack_of(tensor);
    return packer.take();
  }
  const std::size_t alone = std::min(cost.smallest_lone_tensor(), kLargestCallBytes);
  for (std::size_t tensor = specs.size(); tensor-- > 0;) {
    if (specs[tensor].bytes() >= alone) {
      packer.add_alone(tensor);
      continue;
    }
    if (packer.overfills(tensor, kLargestCallBytes)) packer.close_pack_of(tensor);
    packer.add(tensor);
  }
  return packer.take();
}

std::vector<Pack> make_buckets(std::span<const TensorSpec> specs, std::size_t bytes_per_bucket,
                               const CommunicationCost& cost) {
  std::size_t total = 0;
  for (const TensorSpec& spec : specs) total += spec.bytes();
  const bool automatic = bytes_per_bucket == 0;
  // Not 0, so that empty tensors share a bucket too.
  const std::size_t full = std::max<std::size_t>(automatic ? cost.best_bucket(total) : bytes_per_bucket, 1);
  const std::size_t alone = automatic ? std::min(full, cost.smallest_lone_tensor()) : full;
  Packer packer(specs);
  for (std::size_t tensor = 0; tensor < specs.size(); ++tensor) {
    if (specs[tensor].bytes() >= alone)
      packer.add_alone(tensor);
    else if (packer.add(tensor) >= full)
      packer.close_pack_of(tensor);
  }
  std::vector<Pack> buckets = packer.take();
  std::ranges::sort(buckets, {}, [](const Pack& bucket) { return bucket.back(); });
  return buckets;
}

}  // namespace cohort
