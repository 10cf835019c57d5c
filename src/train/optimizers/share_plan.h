// Which elements of the variables each replica updates, where replicas share the work of an optimizer: about
// 1/N of all, wherever variables begin and end [Rajbhandari et al. 2020, ZeRO stage 1]. It follows from the
// variables' shapes, dtypes and the number of replicas, so all replicas know it without communication.
//
// A large variable is reduced, updated and gathered where it lies, in runs whose N equal parts belong to the
// replicas in their order. Small variables, and what is left over of large ones, travel together in a pack of
// each dtype, as in BatchReducer. Parts begin and end where blocks of kSquaresBlock elements do, or with
// their variable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/device/tensor_spec.h>

namespace cohort {

// Sums of the squares of gradients, block by block: a block is so many elements of one variable, counted from
// its first element. The sums of all blocks, added in the order of the variables, have the same bits wherever
// each block was summed; so a norm over all gradients does not depend on which worker has which part of them.

inline constexpr std::size_t kSquaresBlock = 1024;  ///< elements

[[nodiscard]] constexpr std::size_t blocks_of(std::size_t elements) noexcept {
  return (elements + kSquaresBlock - 1) / kSquaresBlock;
}

/// The sum of each block of a floating CPU tensor that begins where a block does; as many as `blocks_of`
/// says.
void block_squares(const Tensor& gradient, std::span<double> sums);

/// Elements `begin` to `end-1` of a variable, of which replica r has the r-th part.
struct SharedRun {
  std::size_t variable = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Elements of one replica in a pack.
struct PackedPart {
  std::size_t variable = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int replica = 0;
  std::int64_t place = 0;  ///< of the first one in the pack
};

struct SharedPack {
  DType dtype = DType::kFloat32;
  std::int64_t room = 0;  ///< elements of each replica
  std::vector<PackedPart> parts = {};
};

/// What one replica updates, in the order in which its slots lie.
struct SharePart {
  std::size_t variable = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class SharePlan {
 public:
  SharePlan(std::span<const TensorSpec> variables, int replicas);

  [[nodiscard]] int replicas() const noexcept { return replicas_; }
  [[nodiscard]] std::span<const SharedRun> runs() const noexcept { return runs_; }
  [[nodiscard]] std::span<const SharedPack> packs() const noexcept { return packs_; }

  /// Its part of each run, and then its parts in each pack.
  [[nodiscard]] std::vector<SharePart> parts_of(int replica) const;

 private:
  void add_runs(std::size_t variable, std::int64_t end, std::int64_t longest);
  void pack(std::span<const TensorSpec> variables, std::span<const std::int64_t> in_runs, DType dtype);

  int replicas_;
  std::vector<SharedRun> runs_;
  std::vector<SharedPack> packs_;
};

}  // namespace cohort
