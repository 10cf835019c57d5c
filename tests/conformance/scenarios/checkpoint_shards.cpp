// Variables in shards, saved in one number of shards and restored in another, also on parameter servers.
#include <memory>
#include <optional>

#include "checkpoints.h"
#include "sharded_places.h"

namespace cohort::conformance {
namespace {

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
