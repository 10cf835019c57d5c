// Which tensors of a list share a collective. A collective of few bytes costs its latency
// and little else, so small tensors are put together; a large one goes alone, because
// copying it beside others would cost more than a collective of its own.
//
// A pack never mixes dtypes. Everything here follows from the specs alone, so members that
// agree on these make the same packs without communication.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <cohort/device/tensor_spec.h>

namespace cohort {

/// Numbers of the tensors in their list, in the order in which they lie in the pack.
using Pack = std::vector<std::size_t>;

/// What collectives cost, by which tensors are packed; by default round numbers for processes that share a
/// node. All members must use the same; a wrong one costs time, never correctness.
struct CommunicationCost {
  double latency_seconds = 5e-6;   ///< of a collective, started and waited for, beside its bytes
  double bytes_per_second = 1e10;  ///< all-reduced, counting one member's tensor
  double copied_bytes_per_second = 1e10;

  /// From here on a tensor goes alone: copying it takes longer than the latency that would be saved.
  [[nodiscard]] std::size_t smallest_lone_tensor() const noexcept;

  /// How large a bucket should be when communication overlaps with the computation that makes `total_bytes`
  /// of gradients. Buckets of b bytes leave exposed the last one, b / bandwidth, and cost a latency each,
  /// total / b of them; the sum is least at sqrt(total * latency * bandwidth).
  [[nodiscard]] std::size_t best_bucket(std::size_t total_bytes) const noexcept;
};

/// Upper limit of one call that packs make on CPUs, so that a call after it does not wait long for it; larger
/// tensors go in several calls (Communicator::largest_call_bytes). Also of a pack that is chosen by cost: at
/// this size the latency of a call hardly counts.
inline constexpr std::size_t kLargestCallBytes = std::size_t{32} << 20;

/// Packs for tensors that are all there at once, in the order of a forward pass. They are packed from
/// the last to the first: backward passes end with the first.
///
/// With `bytes_per_pack` above 0, the tensors of each dtype are put into one pack until it is larger
/// than that; one that is just as large still grows. With 0, lone tensors go alone, as do all of
/// kLargestCallBytes, and all others of a dtype together, up to kLargestCallBytes.
[[nodiscard]] std::vector<Pack> make_packs(std::span<const TensorSpec> specs, std::size_t bytes_per_pack,
                                           const CommunicationCost& cost = {});

/// Buckets for tensors that become ready one after the other, in the order of the list. A bucket is
/// full when it has `bytes_per_bucket`; a tensor as large as that has one of its own. With 0, the cost
/// decides what is alone and what is full. Ordered by when the last tensor of each becomes ready.
[[nodiscard]] std::vector<Pack> make_buckets(std::span<const TensorSpec> specs, std::size_t bytes_per_bucket,
                                             const CommunicationCost& cost = {});

}  // namespace cohort
