// Variables of each kind, saved under one strategy and restored under another.
#include <map>

#include <cohort/value/variable.h>

#include "checkpoints.h"

namespace cohort::conformance {
namespace {

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

}  // namespace cohort::conformance
