// The variables of a job on its parameter servers, as one of its tasks knows them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/server/detail/codec.h>
#include <cohort/server/partitioners.h>

#include "client.h"
#include "server/serving/write.h"
#include "server/shards/shard_placer.h"
#include "value/variable_kinds.h"

namespace cohort::server {

/// Which variable of which server.
struct VariablePlace {
  int server = 0;
  VariableIndex index = 0;
};

/// A variable that a parameter server keeps, as a client sees it. Reads copy the value; where the server is
/// on the same node, straight out of its memory. Writes are made at once, or with the others of the execution
/// that is running.
class ServerVariable final : public AggregatingVariable {
 public:
  ServerVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner, const Shape& shape,
                 DType dtype, std::uint64_t number, std::shared_ptr<Client> client, VariablePlace place);

  [[nodiscard]] VariablePlace place() const noexcept { return place_; }

  [[nodiscard]] Client& client() const noexcept { return *client_; }

  /// For Client::read: all of the variable, or some of the rows (int64, one axis), in their order.
  [[nodiscard]] Wanted wanted(std::optional<Tensor> rows = {}) const;

  void apply_elsewhere(const OptimizerRecipe& optimizer, const TensorOrSlices& gradient) const override;

  [[nodiscard]] Tensor read_slot_elsewhere(std::uint8_t slot) const override;
  void assign_slot_elsewhere(std::uint8_t slot, const Tensor& value) const override;

 private:
  [[nodiscard]] Tensor read_across() const override;
  void assign_across(const ElementUpdate& update, const Tensor& value) const override;
  void scatter_across(const RowUpdate& update, const IndexedSlices& rows) const override;
  void write(const ElementUpdate& update, const Tensor& value) const override;
  void write_rows(const RowUpdate& update, const IndexedSlices& rows) const override;

  /// Whether several replicas of this task share the variable, and one of them calls.
  [[nodiscard]] bool is_shared_here() const;

  std::shared_ptr<Client> client_;
  VariablePlace place_;
};

/// Whose initial values count: those of the chief, or else of worker 0.
[[nodiscard]] ClusterTask giver_of_values(const remote::TaskPlace& place);

/// All of the job: a task makes them in turn on the servers, and finds them by the numbers that all tasks
/// know them by.
class ServerVariables final : public VariableKeeper, public VariableTable {
 public:
  /// `gives_values`: whether this task's initial values count. Null `client` for a task that has no
  /// variables. An empty `partitioner` cuts none into shards.
  ServerVariables(std::shared_ptr<Client> client, bool gives_values, Partitioner partitioner);
  ~ServerVariables() override;
  ServerVariables(const ServerVariables&) = delete;
  ServerVariables& operator=(const ServerVariables&) = delete;

  [[nodiscard]] Client& client() const noexcept { return *client_; }

  /// As ShardPlacer's.
  [[nodiscard]] std::optional<ShardLayout> cut(const Shape& shape, DType dtype) const {
    return placer_.cut(shape, dtype);
  }

  /// The one coordinator of the job, at the chief; set by the layer above.
  struct CoordinatorPlace {
    std::mutex mutex;
    std::weak_ptr<void> part;
    bool is_taken = false;  ///< by one that has perhaps ended
  };
  [[nodiscard]] CoordinatorPlace& coordinator() noexcept { return coordinator_; }

  /// For what may outlive this object.
  [[nodiscard]] std::shared_ptr<Connections> shared_connections() const noexcept {
    return {client_, &client_->connections()};
  }

  [[nodiscard]] std::shared_ptr<VariableState> make(VariableOptions options, const Tensor& initial_value,
                                                    const VariableState* beside,
                                                    std::shared_ptr<VariableOwner> owner) override;

  /// From now on, while this task runs functions for a coordinator, it makes no variables: the chief, which
  /// gives them to the functions as arguments, knows nothing of them.
  void set_runs_functions(bool runs) noexcept { runs_functions_.store(runs); }

  /// What another task needs to know of the variables but the `first` ones, in the order in which they were
  /// made.
  [[nodiscard]] std::vector<std::byte> describe_from(std::size_t first) const;

  /// The variables of a description can be found from now on, until they are forgotten.
  void learn(std::span<const std::byte> description, VariableOwner& owner);
  void forget_learned();

  /// How many were made.
  [[nodiscard]] std::size_t size() const;

  /// One that was learned.
  [[nodiscard]] Variable variable(std::uint64_t number) const override;

 private:
  [[nodiscard]] std::string names_on(int server, std::span<const VariableIndex> some) const;

  std::shared_ptr<Client> client_;
  bool gives_values_;
  std::atomic<bool> runs_functions_{false};
  CoordinatorPlace coordinator_;

  /// What all tasks know of a variable. The variable itself shares the strategy, which owns this object.
  struct Known {
    VariableOptions options;
    Shape shape;
    DType dtype;
    VariablePlace place;
    std::shared_ptr<ServerVariable> learned;  ///< from another task
  };

  mutable std::mutex mutex_;
  ShardPlacer placer_;  ///< its turns
  std::uint64_t next_number_ = 0;
  std::map<std::uint64_t, Known> known_;  ///< by number
  std::vector<std::uint64_t> made_;       ///< numbers, in the order in which they came to be known
};

}  // namespace cohort::server
