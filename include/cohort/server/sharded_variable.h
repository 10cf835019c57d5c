// A ShardedVariable is several Variables, its shards, that are one along axis 0: a table too large for one
// parameter server, or whose load several are to share.
//
//     ParameterServerStrategy strategy(place, {.variable_partitioner = FixedShardsPartitioner(2)});
//     auto scope = strategy.scope();
//     const ShardedVariable table({.shape = {1000, 16}, .name = "table"});      // table/part_0, table/part_1
//     const Tensor rows = embedding_lookup(table, Tensor::from({3, 999}));
//
// Shards go to the servers in turn, as all variables. Any thread may call. A handle like Variable: copies
// denote the same shards, and functions that workers run take one as an argument. Other strategies, which
// have no partitioner, give it a single shard, so the same program runs with them.
//
// A change of the whole is checked as a whole first. It is one commit on all servers, but for replicas of one
// task that share the variable and change it together: they change one shard after the other. A read brings
// together values that servers had at nearly the same time, each shard's at one time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <cohort/server/index.h>
#include <cohort/server/shard_layout.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/indexed_slices.h>
#include <cohort/value/variable.h>

namespace cohort {

/// Makes the value of a shard, of this shape, whose first row is row `first_row` of the whole.
using ShardInitializer = std::function<Tensor(const Shape& shard, std::int64_t first_row)>;

class ShardedVariable {
 public:
  /// Asks the partitioner of the current strategy. The shards have the rows of one initial value. A scalar,
  /// and a variable that is made beside another one, is a single shard, which then has the variable's name.
  /// @throws as Variable; InvalidArgument for a partitioner that returns nonsense, naming it.
  explicit ShardedVariable(VariableOptions options);

  /// The same for values too large for the memory of this task: `initializer` is called once for each shard.
  /// What it returns may depend on how many shards there are unless it depends on the rows' numbers alone.
  /// @throws InvalidArgument also for a value of another shape or dtype than the options', and for options
  /// with an initial value.
  ShardedVariable(VariableOptions options, const ShardInitializer& initializer);

  /// The given variables, in this order, as one.
  /// @throws InvalidArgument for none, for several scalars, and for different dtypes or shapes of rows,
  /// naming the variable.
  explicit ShardedVariable(std::vector<Variable> variables, std::string name = "ShardedVariable");

  [[nodiscard]] const std::string& name() const& noexcept { return parts_->name; }
  [[nodiscard]] std::string name() && { return parts_->name; }
  [[nodiscard]] const Shape& shape() const& noexcept { return parts_->shape; }
  [[nodiscard]] Shape shape() && noexcept { return parts_->shape; }
  [[nodiscard]] DType dtype() const noexcept { return variables().front().dtype(); }
  [[nodiscard]] bool trainable() const noexcept { return variables().front().trainable(); }

  /// The shards.
  [[nodiscard]] const std::vector<Variable>& variables() const& noexcept { return parts_->variables; }
  [[nodiscard]] std::vector<Variable> variables() && { return parts_->variables; }

  /// What it is constructed from by a task that it is sent to. Internal.
  [[nodiscard]] std::tuple<std::vector<Variable>, std::string> parts_to_send() const {
    return {parts_->variables, parts_->name};
  }

  /// Which rows each shard has; a scalar counts as one row.
  [[nodiscard]] const ShardLayout& layout() const& noexcept { return parts_->layout; }
  [[nodiscard]] ShardLayout layout() && { return parts_->layout; }

  /// The whole value: all shards travel.
  [[nodiscard]] Tensor read() const;

  /// What `index` selects, for example `at({Slice{.begin = 2}, 0})`. Only the rows that are named travel.
  /// @throws InvalidArgument for a position that does not exist, more terms than axes, several Ellipses, or a
  /// step of 0.
  [[nodiscard]] Tensor at(const Index& index) const;
  [[nodiscard]] Tensor operator[](const Index& index) const { return at(index); }

  /// The rows that `mask` marks. @throws InvalidArgument unless it is bool, with one element per row.
  [[nodiscard]] Tensor masked(const Tensor& mask) const;

  /// As Variable's. @throws InvalidArgument when dtype or shape differ; then nothing is changed.
  const ShardedVariable& assign(const Tensor& value) const;
  const ShardedVariable& assign_add(const Tensor& value) const;
  const ShardedVariable& assign_sub(const Tensor& value) const;

  /// As Variable's: each shard gets its rows. @throws as Variable; then nothing is changed.
  const ShardedVariable& scatter_add(const IndexedSlices& rows) const;
  const ShardedVariable& scatter_sub(const IndexedSlices& rows) const;
  const ShardedVariable& scatter_mul(const IndexedSlices& rows) const;
  const ShardedVariable& scatter_div(const IndexedSlices& rows) const;
  const ShardedVariable& scatter_min(const IndexedSlices& rows) const;
  const ShardedVariable& scatter_max(const IndexedSlices& rows) const;
  const ShardedVariable& scatter_update(const IndexedSlices& rows) const;

  /// The gradient of each shard, for Optimizer::apply_gradients. A shard of which a sparse one names no row
  /// is there as well, so that all shards make the same number of steps.
  /// @throws InvalidArgument for a gradient of another dtype or shape.
  [[nodiscard]] std::vector<GradientAndVariable> split_gradient(const Tensor& gradient) const;
  [[nodiscard]] std::vector<SparseGradientAndVariable> split_gradient(const IndexedSlices& gradient) const;

 private:
  using AssignMember = const Variable& (Variable::*)(const Tensor&) const;
  using ScatterMember = const Variable& (Variable::*)(const IndexedSlices&) const;

  /// What copies share.
  struct Parts {
    std::vector<Variable> variables;
    std::string name;
    Shape shape;
    ShardLayout layout;
  };

  void assign_by(std::string_view operation, AssignMember member, const Tensor& value) const;
  void scatter_by(std::string_view operation, ScatterMember member, const IndexedSlices& rows) const;
  [[nodiscard]] std::vector<Tensor> split(const Tensor& value) const;
  [[nodiscard]] std::vector<IndexedSlices> split(const IndexedSlices& rows) const;

  std::shared_ptr<const Parts> parts_;
};

/// Rows of a variable, in the order of `rows` (int32 or int64, of any shape, whose axes come before those of
/// a row): of a variable that parameter servers keep only these travel, from all servers at once.
/// @throws InvalidArgument for a row that the variable does not have.
[[nodiscard]] Tensor embedding_lookup(const ShardedVariable& variable, const Tensor& rows);

}  // namespace cohort
