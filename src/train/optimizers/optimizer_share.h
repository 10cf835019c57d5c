// What one replica has of a shared optimizer: its part of the slots, and the memory through which small
// variables travel. One thread at a time uses it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/train/optimizers/optimizer.h>

#include "share_plan.h"

namespace cohort {

/// One step of an optimizer on elements of the plan's variable number `variable`.
using UpdateElements = std::function<void(std::size_t variable, const Tensor& value,
                                          std::span<const Tensor> slots, const Tensor& gradient)>;

/// The slots of variables of one dtype: theirs, and what each slot begins with.
struct SlotKinds {
  DType dtype = DType::kFloat32;
  std::vector<double> beginnings = {};
  std::optional<std::size_t> master = {};  ///< the one that begins with the value
};
using SlotKindsOf = std::function<SlotKinds(DType variable)>;

class OptimizerShare {
 public:
  /// `values` are the replica's components of the plan's variables, on its device.
  OptimizerShare(std::shared_ptr<const SharePlan> plan, std::span<const Tensor> values, int replica,
                 const SlotKindsOf& slots);

  /// The gradients of the plan's variables, in its order.
  [[nodiscard]] std::span<Tensor> gradients() noexcept { return gradients_; }

  /// There is no step with these.
  void forget_gradients();

  /// The sum of the numbers of examples that the replicas have, as they are in this dtype.
  [[nodiscard]] double sum_examples(Communicator* communicator, double own, DType dtype);

  /// Sums the gradients of all replicas, of which this one keeps its share.
  void scatter(Communicator& communicator, bool in_place);

  /// The gradients are equal on all replicas already.
  void take_own_gradients();

  /// Sums the squares of all gradients, each replica those of its share; blocks have the bits that they have
  /// where one replica sums all of them.
  void sum_squares(Communicator* communicator);

  /// Those of a variable's gradient, block after block, added to `sum`.
  [[nodiscard]] double add_squares(double sum, std::size_t variable) const;

  /// Updates its share, and gathers those of all replicas; without a communicator there are no others.
  void update_and_gather(Communicator* communicator, const UpdateElements& update);

  /// A slot's parts that belong to a variable, with their places in it.
  struct SlotPart {
    std::int64_t begin;
    std::int64_t end;
    Tensor elements;
  };
  [[nodiscard]] std::vector<SlotPart> slot_parts(std::size_t variable, std::size_t slot) const;

  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }

 private:
  struct Part {
    SharePart place;
    Tensor value;
    std::vector<Tensor> slots;
    Tensor gradient = {};
    Tensor sum = {};  ///< where a run's part of the summed gradient goes, if not into the gradient
  };
  struct Pack {
    Tensor memory;
    std::size_t first_part;  ///< of this replica's in it
    std::size_t end_part;
  };
  void make_slots(const SlotKindsOf& slots_of);
  void make_slot(DType dtype, std::int64_t total, const SlotKinds& kinds, std::size_t slot);
  void make_sums();
  void scatter_pack(Communicator& communicator, std::size_t pack);
  void gather_pack(Communicator& communicator, std::size_t pack);
  [[nodiscard]] Tensor own_block(const Tensor& blocks) const;

  std::shared_ptr<const SharePlan> plan_;
  int replica_;
  std::vector<Tensor> values_;     ///< with one axis
  std::vector<Tensor> gradients_;  ///< those of the step; with one axis
  std::vector<Part> parts_;        ///< first those of the runs, then those in packs
  std::vector<Pack> packs_;
  std::optional<Tensor> examples_;
  std::optional<Tensor> squares_;         ///< of the blocks of all gradients
  std::vector<std::size_t> first_block_;  ///< of each variable's gradient in these, and their number
  std::size_t slot_bytes_ = 0;
  bool has_sums_ = false;
};

}  // namespace cohort
