// The parts of a ShardedOptimizer: what one replica has of it, and what the local replicas have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

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

/// What one replica has of a shared optimizer: its part of the slots, and the memory through which small
/// variables travel. One thread at a time uses it.
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

/// What the local replicas have in common: which variables there are, and how these are spread over all
/// replicas.
struct ShardedOptimizer::Shares {
  std::mutex mutex;  ///< guards the map and the plan while replicas begin; each replica uses its own share
  std::vector<Variable> variables;
  std::uint64_t fingerprint = 0;  ///< of these
  std::shared_ptr<const SharePlan> plan;
  std::map<int, std::unique_ptr<OptimizerShare>> by_replica;  ///< by local replica, -1 outside any scope

  /// Where the variables of a list are in the plan; by local replica too.
  struct Order {
    std::vector<std::shared_ptr<VariableState>> list;
    std::vector<std::size_t> places;
  };
  std::map<int, Order> orders;

  [[nodiscard]] std::size_t place_of(const Variable& variable) const;

  /// Plans the shares of these variables, or checks that the plan has them.
  void begin(std::vector<Variable> all);

  /// That of a local replica, which is made at first.
  OptimizerShare& share_of(int local_replica, const SlotKindsOf& slots);

  /// The places of the gradients' variables, each of which is there once.
  const std::vector<std::size_t>& places_of(int local_replica,
                                            const std::vector<GradientAndVariable>& gradients);
};

[[nodiscard]] StrategyExtended* strategy_of(const Variable& variable);
[[nodiscard]] std::string names_of(const std::vector<Variable>& variables);

}  // namespace cohort
