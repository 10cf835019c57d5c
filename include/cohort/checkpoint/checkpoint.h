// A Checkpoint is a set of named values that are saved together and restored together: variables of every
// kind, the state of optimizers, positions in datasets, random generators, and the program's own tensors,
// numbers, texts and structures.
//
//     Checkpoint checkpoint(strategy);
//     checkpoint.add("dense/kernel", kernel);
//     checkpoint.add("adam", optimizer, {{kernel}});
//     checkpoint.add("position", position);                       // of a dataset; it is changed by restore
//     checkpoint.save("checkpoints", step);                       // makes checkpoints/step-100
//     checkpoint.save_async("checkpoints", step);                 // the same, while the program goes on
//     checkpoint.restore("checkpoints/step-100").assert_consumed();
//
// What is saved does not depend on who saves: another strategy, number of workers, or number of shards can
// restore it. Each value is written once, and workers share the writing evenly. All workers see one folder,
// and make the same calls in the same order, in cross-replica context; a failure of one is an error on all of
// them, which names it. One thread at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <cohort/checkpoint/detail/values.h>
#include <cohort/checkpoint/replica_numbers.h>
#include <cohort/checkpoint/restore_status.h>
#include <cohort/device/tensor.h>
#include <cohort/input/pass.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/metrics/metric.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/variable.h>

namespace cohort {

namespace checkpoint {
class BackgroundSave;
class Workers;
class WriterLock;

/// How a value is read and restored. Internal.
struct NamedValue {
  DType dtype = DType::kFloat32;
  std::function<Shape()> shape = {};
  std::function<Tensor()> read = {};
  std::function<void(const Tensor&)> restore = {};
  bool has_any_length = false;  ///< it takes the length that it was saved with
  bool is_collective = false;   ///< all workers read it together
  bool is_everywhere = false;   ///< every worker has the same; otherwise the first worker's is saved
};
}  // namespace checkpoint

struct CheckpointOptions {
  /// How long workers wait for the slowest of them to read or write its part; 0: for ever.
  double timeout_seconds = 1800;
};

class Checkpoint {
 public:
  /// Of the workers of `strategy`.
  explicit Checkpoint(Strategy strategy = get_strategy(), const CheckpointOptions& options = {});
  /// Waits for a save that is under way, and logs its failure.
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Adds a value. If the latest restore left it over, it is restored now.
  ///
  /// An ON_READ variable is saved as its aggregate over all replicas; restored, each replica has its part of
  /// a SUM, and otherwise the aggregate. A ShardedVariable is one value, as if it had one shard. Of tensors,
  /// numbers, texts and variables of no strategy, the first worker's are saved, and restored on all; those
  /// that are referred to live as long as the Checkpoint.
  /// @throws InvalidArgument for a name that is taken, empty or not UTF-8, for an ON_READ variable without
  /// aggregation, which has no common value; for a restore at once, as restore().
  void add(const std::string& name, const Variable& variable);
  void add(const std::string& name, const ShardedVariable& variable);
  void add(const std::string& name, const Tensor& tensor);
  void add(const std::string& name, std::string& text);
  template <Element T>
  requires(!std::is_const_v<T>) void add(const std::string& name, T& number) {
    add_value(name, {.dtype = kDTypeOf<T>,
                     .shape = [] { return Shape(); },
                     .read = [&number] { return Tensor::scalar(number); },
                     .restore = [&number](const Tensor& saved) { number = saved.item<T>(); }});
  }

  /// Numbers, as many as there are; restored, as many as there were.
  template <Element T>
  requires(!std::is_const_v<T> && !std::is_same_v<T, bool>) void add(const std::string& name,
                                                                     std::vector<T>& numbers) {
    add_value(name, {.dtype = kDTypeOf<T>,
                     .shape = [&numbers] { return Shape{static_cast<std::int64_t>(numbers.size())}; },
                     .read = [&numbers] { return Tensor::from(std::span<const T>(numbers)); },
                     .restore =
                         [&numbers](const Tensor& saved) {
                           const std::span<const T> values = saved.span<T>();
                           numbers.assign(values.begin(), values.end());
                         },
                     .has_any_length = true});
  }

  /// What an optimizer keeps for these variables: their slots, as in `NAME/kernel/first_moment`,
  /// `NAME/iterations`, a number for each of them, `NAME/learning_rate`, if the program set a number, and
  /// `NAME/loss_scale`, if it has one. Slots that no update has made yet are made. A rate that the restored
  /// training is to have instead is set after the restore; update options are set before this call.
  /// @throws also as Optimizer::make_slots; InvalidArgument for no variables, and for two of one name.
  void add(const std::string& name, Optimizer& optimizer, std::span<const Variable> variables,
           std::span<const ShardedVariable> sharded = {});

  /// Where a pass over a dataset stands, as `NAME/pass` and `NAME/elements`. The program sets it from its
  /// iterator before it saves, and goes on with `begin_at(position)`.
  void add(const std::string& name, DatasetPosition& position);

  /// As [replicas, numbers], those of each replica in a row. All workers gather them together.
  void add(const std::string& name, const ReplicaNumbers& numbers);

  /// What a metric has seen, as the numbers of its replicas.
  void add(const std::string& name, const MetricHandle& metric) {
    add(name, ReplicaNumbers{[metric](int local_replica) { return metric.sums(local_replica); }});
  }

  /// A random generator of the standard library, or one that is written to streams and read from them alike.
  template <checkpoint::RandomGenerator Generator>
  void add(const std::string& name, Generator& generator) {
    add_text(
        name, [&generator] { return checkpoint::to_text(generator); },
        [&generator](const std::string& text) { checkpoint::from_text(text, generator); });
  }

  /// The parts of a structure: of a map as `NAME/KEY`, and otherwise as `NAME/0`, `NAME/1`, and so on. A
  /// structure has the same parts when it is restored.
  template <checkpoint::WithParts Structure>
  void add(const std::string& name, Structure& structure) {
    checkpoint::for_each_part(
        structure, [&](const auto& key, auto& part) { add(fmt::format("{}/{}", name, key), part); });
  }

  /// Writes the values to the new folder `folder/step-STEP`, which appears when it is complete and on disk,
  /// or not at all. Returns its path.
  /// @throws Unavailable when a file cannot be written or another job writes to `folder`, naming file, worker
  /// and cause; InvalidArgument when there is such a checkpoint already, and where workers have other values.
  std::string save(const std::string& folder, std::int64_t step);

  /// Copies this worker's part of the values, and returns; a thread writes it while the program goes on and
  /// may change the values. The copy's memory is kept for the next save. What goes wrong is thrown by the
  /// next call of save_async, save, restore or wait, on all workers; that call does nothing else then. One
  /// save at a time: these calls first wait for the one that is under way.
  std::string save_async(const std::string& folder, std::int64_t step);

  /// Waits until the latest save has ended. @throws what went wrong in it, as save(), once.
  void wait();

  /// Gives the values what the checkpoint at `path` has. Everything is read and checked before anything is
  /// changed, which takes memory for one copy.
  /// @throws Unavailable when it cannot be read; DataLoss when it is damaged, naming file and value;
  /// InvalidArgument for values of another dtype or shape, naming all of them. Then nothing is changed.
  /// Whatever a value throws that cannot take what was read, as one on a server that is lost: then other
  /// values may have changed.
  RestoreStatus restore(const std::string& path);

  /// Whose workers save and restore together.
  [[nodiscard]] const Strategy& strategy() const noexcept { return strategy_; }

 private:
  friend class CheckpointManager;

  /// `lock` is the first worker's on `folder`, or null: then it is taken for this save. The first worker's
  /// `metrics` are stored.
  std::string save(const std::string& folder, std::int64_t step, const checkpoint::WriterLock* lock,
                   const std::map<std::string, double>& metrics);
  std::string save_async(const std::string& folder, std::int64_t step, const checkpoint::WriterLock* lock,
                         const std::map<std::string, double>& metrics);
  checkpoint::Workers begin_save(const char* function, const std::string& folder, std::int64_t step);
  void add_value(const std::string& name, checkpoint::NamedValue value);
  void add_text(const std::string& name, std::function<std::string()> read,
                std::function<void(const std::string&)> restore);

  Strategy strategy_;
  CheckpointOptions options_;
  std::map<std::string, checkpoint::NamedValue> values_;
  std::shared_ptr<checkpoint::Restored> restored_;          ///< by the latest restore; null before
  std::unique_ptr<checkpoint::BackgroundSave> background_;  ///< null before the first one
};

}  // namespace cohort
