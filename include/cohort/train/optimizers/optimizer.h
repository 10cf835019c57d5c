// Optimizers turn gradients into updates of variables. `apply_gradients`, called by
// every replica, sums the gradients over all replicas and then updates each replica's
// component; since all see the same sums, the components stay equal.
//
// A gradient is therefore this replica's part of the gradient of the whole batch: scale
// the loss by the global batch size, not by the replica's (see losses/average_loss.h).
//
// What an optimizer keeps for a variable from step to step (its slots) are variables
// too, made at the variable's first update and colocated with it.
//
// A variable that a parameter server keeps is updated there: gradients travel, slots stay.
// The server makes the optimizer anew from its options, see optimizer_registry.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/train/optimizers/step_arguments.h>
#include <cohort/train/optimizers/update_options.h>
#include <cohort/train/schedules/learning_rate_schedule.h>
#include <cohort/value/tensor_or_slices.h>
#include <cohort/value/variable.h>

namespace cohort {

class ReplicaContext;

struct GradientAndVariable {
  Tensor gradient;
  Variable variable;
};

/// A gradient that names the rows that a step touches, as that of an embedding.
struct SparseGradientAndVariable {
  IndexedSlices gradient;
  Variable variable;
};

/// What `apply_gradients` does with the gradients before it updates the variables.
enum class GradientAggregation {
  kSum,         ///< sums them over all replicas; the caller's tensors are left alone
  kSumInPlace,  ///< the same in the caller's tensors, which must not overlap: less than half the time
  kNone,        ///< nothing: they are equal on all replicas already, as GradientBuckets leaves them
};

struct ApplyOptions {
  GradientAggregation aggregation = GradientAggregation::kSum;

  /// Unset, what the gradients are of is the program's matter, and they are applied as they are summed. Set,
  /// they are those of the sum of the losses of so many examples, of this replica (a sum of weights where
  /// examples have some; 0 for a replica without examples), and their mean over the examples of all replicas
  /// is applied, so that uneven batches weigh rightly. The numbers are summed along with the gradients. If
  /// no replica has examples, there is no step. With `kNone`, it is the number of all replicas' examples.
  std::optional<double> examples = {};
};

class Optimizer {
 public:
  virtual ~Optimizer();

  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Called inside `run` (or outside any scope), with the same variables on every replica.
  /// @throws WrongContext in cross-replica context; InvalidArgument when a gradient does not have its
  /// variable's shape and dtype, or the variable is not floating or has two gradients, naming it, for a
  /// negative number of examples, for a schedule's rate that is negative or not finite, and where gradients
  /// are summed, when replicas pass other variables or another order (variables of no strategy are not told
  /// apart); what all_reduce throws.
  void apply_gradients(const std::vector<GradientAndVariable>& gradients, const ApplyOptions& options = {});

  /// The same with sparse gradients, and dense ones of further variables as part of the same step. Of a
  /// variable that a parameter server keeps, only the rows that are named travel and change, and so do their
  /// slots. For any other variable this is a step with the dense gradient, which is zero elsewhere. A row
  /// that is named several times has the sum of its gradients.
  /// @throws also InvalidArgument for rows that the variable does not have, naming it.
  void apply_sparse_gradients(const std::vector<SparseGradientAndVariable>& sparse,
                              const std::vector<GradientAndVariable>& gradients = {},
                              const ApplyOptions& options = {});

  /// The learning rate of the next step. Not to be called while replicas run.
  [[nodiscard]] double learning_rate() const;

  /// The rate of the following steps, a number or a function of the steps made: a LearningRateSchedule. All
  /// workers set it alike, and not while replicas run. A parameter server is told the rate with each step.
  /// @throws InvalidArgument for a number that is negative or not finite.
  void set_learning_rate(LearningRateSchedule rate);

  /// The number that `set_learning_rate` was last given, which a checkpoint keeps; none where the rate is
  /// that of the options, or a schedule.
  [[nodiscard]] std::optional<double> rate_by_hand() const noexcept { return rate_by_hand_; }

  /// What is done beside the optimizer's own rule. All workers set it alike, before the first step and before
  /// slots are made.
  /// @throws InvalidArgument for an option out of its range, and once there are steps or slots.
  void set_update_options(const UpdateOptions& options);
  [[nodiscard]] const UpdateOptions& update_options() const noexcept { return update_options_; }

  /// What losses are to be multiplied with, in a replica or outside; 1 without the option.
  [[nodiscard]] double loss_scale() const;

  /// Whether a step updates each element by itself, as a ShardedOptimizer needs it; not so where a step needs
  /// a norm of the whole variable.
  [[nodiscard]] virtual bool is_elementwise() const noexcept { return true; }

  /// How often gradients were applied. Not to be called while replicas run.
  [[nodiscard]] std::int64_t iterations() const;

  /// Calls of `apply_gradients` since the last step, of which the gradients are added up. Not to be called
  /// while replicas run.
  [[nodiscard]] std::int64_t accumulated_calls() const;

  /// The slots of a variable, in the order in which the optimizer documents them; none before its first
  /// update or `make_slots`. Not to be called while replicas run.
  [[nodiscard]] std::vector<Variable> slots(const Variable& variable) const;

  /// What the optimizer's own slots of a variable are called after its own name.
  [[nodiscard]] std::span<const std::string> slot_names() const noexcept { return slot_names_; }

  /// All slots of a variable of this dtype: also the "master" and the "average" that options ask for.
  [[nodiscard]] std::vector<std::string> all_slot_names(DType dtype) const;
  [[nodiscard]] DType slot_dtype(DType dtype) const noexcept;
  [[nodiscard]] double slot_beginning(std::size_t slot) const { return slot_beginnings_.at(slot); }

  // For what begins with a state of its own, as a training that goes on from a checkpoint; all workers call
  // these alike, and not while replicas run.

  /// Makes the slots of these variables before their first updates; those that are there stay.
  /// @throws WrongContext inside `run`, and outside the scope of the variables' strategy; InvalidArgument for
  /// a variable whose slots a parameter server keeps.
  void make_slots(std::span<const Variable> variables);

  /// Exchanges the variables with their averages, to evaluate these, and again to go on.
  /// @throws WrongContext inside `run`; InvalidArgument for a variable without an average, naming it, before
  /// any is exchanged.
  void swap_averages(std::span<const Variable> variables);

  /// The next step is number `iterations + 1`, of gradients from now on. @throws InvalidArgument below 0.
  void set_iterations(std::int64_t iterations);

  /// The scale and the steps since it changed, as a checkpoint keeps them.
  [[nodiscard]] std::pair<double, std::int64_t> loss_scale_state() const;
  void set_loss_scale_state(double scale, std::int64_t steps);

  // The value of a slot, wherever it is kept, for checkpoints; in cross-replica context.

  /// Whether slots are spread over the workers, which then read each of them together.
  [[nodiscard]] virtual bool shares_slots() const noexcept { return false; }

  /// Slot number `slot` of a variable that has slots: a tensor of its shape and dtype.
  [[nodiscard]] virtual Tensor read_slot(const Variable& variable, std::size_t slot) const;
  virtual void assign_slot(const Variable& variable, std::size_t slot, const Tensor& value);

 protected:
  /// `slot_names` are the names of a variable's slots, after its own; what they begin with is in
  /// `beginnings`, or zero.
  explicit Optimizer(double learning_rate, std::vector<std::string> slot_names = {},
                     std::vector<double> beginnings = {});

  /// How a parameter server makes the same optimizer, for a step at this rate; the default is that it cannot.
  /// @throws Unimplemented saying how to register an optimizer.
  [[nodiscard]] virtual OptimizerRecipe recipe(double learning_rate) const;

  /// A step of one component of a variable, in place, by all that the arguments say. All have the same shape
  /// and floating dtype, but slots beside a master, which is the one after the optimizer's own, are float32.
  virtual void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                      const StepArguments& arguments) const = 0;

 private:
  friend class OptimizerOnServer;  // a parameter server's, which keeps slots and steps itself
  friend class ShardedOptimizer;   // calls another optimizer's update

  struct ReplicaState;

  void apply(const ReplicaContext& replica, const std::vector<GradientAndVariable>& gradients,
             const std::vector<SparseGradientAndVariable>& elsewhere, const ApplyOptions& options);

  /// Sums the gradients, which fit their variables, and updates these; `elsewhere` are of variables on
  /// servers.
  virtual void step(const ReplicaContext& replica, const std::vector<GradientAndVariable>& gradients,
                    const std::vector<SparseGradientAndVariable>& elsewhere, const ApplyOptions& options);

  /// Makes the slots of variables that may have some; what `make_slots` has checked.
  virtual void add_slots(std::span<const Variable> variables);

  [[nodiscard]] virtual bool has_slots(const Variable& variable) const;
  virtual void swap_average(const Variable& variable);

  /// Adds the gradients to those of the calls before, which `state` keeps; whether it is time for a step.
  bool accumulate(ReplicaState& state, const std::vector<GradientAndVariable>& gradients,
                  const ApplyOptions& options) const;
  void require_named_once(const std::vector<GradientAndVariable>& gradients,
                          const std::vector<SparseGradientAndVariable>& sparse);
  void clip_own(ReplicaState& state, const std::optional<double>& examples) const;

  /// Whether a step depends on the squares of all its gradients' elements, and on those of each gradient.
  [[nodiscard]] bool needs_all_squares() const noexcept;
  [[nodiscard]] bool needs_own_squares() const noexcept;

  /// `squares` is the sum of all gradients', if that is needed. None where it overflowed.
  std::optional<StepArguments> begin_checked_step(ReplicaState& state, const std::optional<double>& examples,
                                                  double squares);

  /// Of a gradient with this sum of squares.
  [[nodiscard]] StepArguments clipped(double squares, StepArguments arguments) const;
  [[nodiscard]] StepArguments arguments_for(ReplicaState& state, const Tensor& gradient,
                                            const StepArguments& arguments) const;
  [[nodiscard]] const ReplicaState& any_state() const;

  /// Of one step, without what the gradients are of.
  [[nodiscard]] StepArguments arguments_of(std::int64_t step, double learning_rate) const;

  /// Counts a step of this replica. `examples` are those of all replicas.
  StepArguments begin_step(std::optional<double> examples);
  [[nodiscard]] ReplicaState& state_of_this_replica();
  [[nodiscard]] std::vector<Variable> new_slots(const Variable& variable) const;
  [[nodiscard]] const std::vector<Variable>& slots_of(ReplicaState& state, const Variable& variable) const;
  void update_component(ReplicaState& state, const Variable& variable, const Tensor& gradient,
                        const StepArguments& arguments) const;
  void update_shared(const ReplicaContext& replica, const CallPurpose& purpose, ReplicaState& state,
                     const std::vector<GradientAndVariable>& gradients, const StepArguments& arguments) const;

  LearningRateSchedule rate_;
  std::optional<double> rate_by_hand_;
  std::vector<std::string> slot_names_;
  std::vector<double> slot_beginnings_;
  UpdateOptions update_options_;
  mutable std::mutex mutex_;                             ///< guards the map; each replica uses its own state
  std::map<int, std::unique_ptr<ReplicaState>> states_;  ///< by local replica, -1 outside any scope
  std::unique_ptr<ReplicaState> beginning_;              ///< what the states of replicas begin with
};

}  // namespace cohort
