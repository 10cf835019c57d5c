// Variables that are saved under one strategy, or in one number of shards, and restored under or in another.
#include <map>
#include <memory>
#include <optional>

#include <cohort/value/variable.h>

#include "checkpoints.h"
#include "sharded.h"

namespace cohort::conformance {
namespace {

// Variables of each kind, saved under one strategy and restored under another.

constexpr std::string_view kRemainder = "an integer sum keeps its remainder";

struct SavedKind {
  VariableSynchronization synchronization = VariableSynchronization::kOnWrite;
  VariableAggregation aggregation = VariableAggregation::kNone;
  DType dtype = DType::kFloat32;
};

SavedKind kind_of(const Record& record) {
  constexpr auto kOnWrite = VariableSynchronization::kOnWrite;
  constexpr auto kOnRead = VariableSynchronization::kOnRead;
  static const std::map<std::string, SavedKind> kKinds{
      {"on_write_none", {kOnWrite, VariableAggregation::kNone}},
      {"on_write_mean", {kOnWrite, VariableAggregation::kMean}},
      {"on_read_sum", {kOnRead, VariableAggregation::kSum}},
      {"on_read_mean", {kOnRead, VariableAggregation::kMean}},
      {"on_read_first", {kOnRead, VariableAggregation::kOnlyFirstReplica}},
      {"on_read_sum_int", {kOnRead, VariableAggregation::kSum, DType::kInt32}}};
  return kKinds.at(record.arguments.at("kind").get<std::string>());
}

Variable made(const Strategy& strategy, const SavedKind& kind, const Tensor& initial) {
  const auto scope = strategy.scope();
  return Variable({.name = "v",
                   .initial_value = initial.cast(kind.dtype),
                   .synchronization = kind.synchronization,
                   .aggregation = kind.aggregation});
}

/// [3, 8]; replica r of an ON_READ variable has 2r more.
Variable filled(const Strategy& strategy, const SavedKind& kind) {
  Variable variable = made(strategy, kind, vector({3, 8}));
  if (kind.synchronization == VariableSynchronization::kOnRead) {
    strategy.run([&](ReplicaContext& replica) {
      const double more = 2.0 * replica.replica_id_in_sync_group();
      variable.assign(vector({3 + more, 8 + more}).cast(kind.dtype));
    });
  }
  return variable;
}

/// With the original's name for what holds the components.
Json show_variable(const Variable& variable, const SavedKind& kind, const std::string& strategy) {
  if (!strategy.starts_with("mirrored")) return {{"Variable", show(variable.read())}};
  const bool on_read = kind.synchronization == VariableSynchronization::kOnRead;
  return {{on_read ? "SyncOnReadVariable" : "MirroredVariable", show_components(variable)}};
}

std::string save(const CheckpointFolder& folder, const std::string& strategy_name, const SavedKind& kind,
                 Json* components) {
  const Strategy strategy = strategy_named(strategy_name);
  const Variable variable = filled(strategy, kind);
  const auto scope = strategy.scope();
  std::string path = folder.save(variable);
  if (components != nullptr) *components = show_variable(variable, kind, strategy_name);
  return path;
}

Json saved(const Record& record) {
  const SavedKind kind = kind_of(record);
  const CheckpointFolder folder;
  Json components;
  const std::string path = save(folder, strategy_of(record), kind, &components);
  const Tensor value = Tensor::zeros({2}, kind.dtype);
  restore(path, value);
  return {{"components", components}, {"saved", show(value)}};
}

Json restored(const Record& record) {
  const SavedKind kind = kind_of(record);
  const CheckpointFolder folder;
  const std::string path = save(folder, record.arguments.at("saved_by").get<std::string>(), kind, nullptr);
  const Strategy strategy = strategy_named(strategy_of(record));
  const Variable variable = made(strategy, kind, vector({0, 0}));
  const auto scope = strategy.scope();
  restore(path, variable);
  return {{"components", show_variable(variable, kind, strategy_of(record))},
          {"cross_replica_value", show(variable.read())}};
}

/// The sum that was saved, whose remainder is replica 0's.
Json with_remainder(const Record& record) {
  static const std::map<std::string, std::vector<int>> kSaved{{"default x1", {3, 8}},
                                                              {"mirrored x1", {3, 8}},
                                                              {"mirrored x2", {8, 18}},
                                                              {"central x2", {8, 18}},
                                                              {"mirrored x3", {15, 30}}};
  const std::vector<int>& saved = kSaved.at(record.arguments.at("saved_by").get<std::string>());
  const int replicas = strategy_of(record).back() - '0';
  Json components = Json::array();
  for (int r = 0; r < replicas; ++r) {
    Json component = Json::array();
    for (const int sum : saved) component.push_back(sum / replicas + (r == 0 ? sum % replicas : 0));
    components.push_back(component);
  }
  return {{"components", {{"SyncOnReadVariable", components}}}, {"cross_replica_value", saved}};
}

}  // namespace

std::vector<Family> checkpoint_variable_families() {
  return {{{"w2/checkpoint/*/save_on_*"}, saved},
          {{"w2/checkpoint/*/restore_on_*"},
           restored,
           {{"w2/checkpoint/mirrored2/restore_on_read_sum_int_from_*1", kRemainder, with_remainder},
            {"w2/checkpoint/mirrored2/restore_on_read_sum_int_from_*3", kRemainder, with_remainder},
            {"w2/checkpoint/mirrored3/restore_on_read_sum_int_from_*1", kRemainder, with_remainder},
            {"w2/checkpoint/mirrored3/restore_on_read_sum_int_from_*2", kRemainder, with_remainder}}}};
}

namespace {

// Variables in shards, saved in one number of shards and restored in another, also on parameter servers.

ShardedVariable made(const Tensor& whole, int shards) {
  return in_shards(whole, ShardLayout(whole.shape()[0], shards));
}

/// In so many shards; 0: a plain variable.
std::string save(const CheckpointFolder& folder, const Tensor& whole, int shards) {
  if (shards == 0) return folder.save(Variable({.initial_value = whole}));
  return folder.save(made(whole, shards));
}

Json restored(const std::string& path, const Shape& shape, int shards) {
  const Tensor zeros = Tensor::zeros(shape, DType::kFloat32);
  if (shards == 0) {
    const Variable variable({.initial_value = zeros});
    restore(path, variable);
    return {{"Variable", show(variable.read())}};
  }
  const ShardedVariable variable = made(zeros, shards);
  restore(path, variable);
  return {{"Sharded", show_shards(variable)}};
}

Json in_other_shards(const Record& record) {
  const CheckpointFolder folder;
  const Json& input = record.arguments;
  const Tensor whole = half_rows(input.at("rows").get<std::int64_t>());
  const std::string path = save(folder, whole, input.value("from_shards", 0));
  return restored(path, whole.shape(), input.at("to_shards").get<int>());
}

/// `[5, 2]` or `"5 x 3"`.
Shape shape_of(const Json& extents) {
  if (extents.is_array()) return Shape(extents.get<std::vector<std::int64_t>>());
  const auto& text = extents.get_ref<const std::string&>();
  return {std::stoll(text), std::stoll(text.substr(text.find('x') + 1))};
}

/// The lines name shapes alone. Each is made in two shards.
Json in_another_shape(const Record& record) {
  const CheckpointFolder folder;
  const Shape saved = shape_of(record.arguments.at("from"));
  const std::string path = save(folder, Tensor::full(saved, DType::kFloat32, 1), 2);
  return restored(path, shape_of(record.arguments.at("to")), 2);
}

Json keys_of_shards(const Record& /*record*/) {
  const CheckpointFolder folder;
  Checkpoint checkpoint;
  checkpoint.add("w", made(Tensor::full({5, 2}, DType::kFloat32, 1), 2));
  return keys_of(checkpoint.save(folder.path(), 1));
}

// ---- parameter servers

/// What a line names `ps2x3`: two servers and variables in three shards; otherwise a strategy without
/// servers.
class Place {
 public:
  explicit Place(const std::string& name)
      : strategy_(name.starts_with("ps") ? with_servers(name[2] - '0', name[4] - '0') : strategy_named(name)),
        is_sharded_(name.starts_with("ps")) {}

  [[nodiscard]] const Strategy& strategy() const { return strategy_; }
  [[nodiscard]] bool is_sharded() const { return is_sharded_; }

 private:
  Strategy with_servers(int servers, int shards) {
    return ParameterServerStrategy(servers_.emplace(servers).chief(),
                                   {.variable_partitioner = FixedShardsPartitioner(shards)});
  }

  std::optional<ServerThreads> servers_;
  Strategy strategy_;
  bool is_sharded_;
};

/// The three variables of these lines, under the current strategy.
struct Model {
  ShardedVariable w;
  Variable b;
  Variable step;

  explicit Model(const Tensor& table, float bias, std::int64_t steps)
      : w({.name = "w", .initial_value = table}),
        b({.name = "b", .initial_value = Tensor::scalar(bias)}),
        step({.name = "step", .initial_value = Tensor::scalar(steps)}) {}

  void add_to(Checkpoint& checkpoint) const {
    checkpoint.add("w", w);
    checkpoint.add("b", b);
    checkpoint.add("step", step);
  }
};

std::string save_model(const CheckpointFolder& folder, const std::string& under) {
  const Place place(under);
  const auto scope = place.strategy().scope();
  const Model model(half_rows(7), 7, 123);
  Checkpoint checkpoint;
  model.add_to(checkpoint);
  return checkpoint.save(folder.path(), 1);
}

Json saved_model(const Record& record) {
  const CheckpointFolder folder;
  const std::string path = save_model(folder, record.arguments.at("variables_under").get<std::string>());
  return {{"keys", keys_of(path)}, {"files", folder.entries()}};
}

Json restored_model(const Record& record) {
  const CheckpointFolder folder;
  const std::string path = save_model(folder, record.arguments.at("saved_under").get<std::string>());
  const Place place(record.arguments.at("restored_under").get<std::string>());
  const auto scope = place.strategy().scope();
  const Model model(Tensor::zeros({7, 2}, DType::kFloat32), 0, 0);
  Checkpoint checkpoint;
  model.add_to(checkpoint);
  checkpoint.restore(path).assert_consumed();
  return {{"w", place.is_sharded() ? show_shards(model.w) : show(model.w.read())},
          {"b", show(model.b.read())},
          {"step", show(model.step.read())}};
}

}  // namespace

std::vector<Family> checkpoint_shard_families() {
  const auto places = std::make_shared<ShardedPlaces>();
  const auto everywhere = [&](std::vector<std::string_view> patterns, Json (*use)(const Record&)) {
    return Family{std::move(patterns), [places, use](const Record& record) {
                    return places->everywhere([&] { return use(record); });
                  }};
  };
  const auto keys = [](const Record& /*record*/) { return Json::array({Json::array({"w", {5, 2}})}); };
  const auto keys_of_model = [](const Record& /*record*/) {
    Json entries = Json::array();
    entries.push_back({"b", Json::array()});
    entries.push_back({"step", Json::array()});
    entries.push_back({"w", {7, 2}});
    return Json{{"keys", entries}, {"files", Json::array({"step-1"})}};
  };
  Family sharded_keys = everywhere({"w2/checkpoint/sharded/sharded_keys"}, keys_of_shards);
  sharded_keys.differences.push_back({"*", "values have the names that the program gave", keys});
  return {everywhere({"w2/checkpoint/sharded/shards_*_to_*", "w2/checkpoint/sharded/plain_*_to_*"},
                     in_other_shards),
          everywhere({"w2/checkpoint/sharded/shards_mismatch_*"}, in_another_shape),
          sharded_keys,
          {{"w2/ps_checkpoint/ps/save_*"}, saved_model, {{"*", kCheckpointFolder, keys_of_model}}},
          {{"w2/ps_checkpoint/ps/restore_*"}, restored_model}};
}

}  // namespace cohort::conformance
