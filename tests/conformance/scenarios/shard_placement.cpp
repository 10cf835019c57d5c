// How variables are cut into shards, and which server each shard goes to.
#include <cohort/server/partitioners.h>

#include "common.h"
#include "server/shards/shard_placer.h"

namespace cohort::conformance {
namespace {

// How variables are cut, and which server each shard goes to: every one in turn.

// Into how many shards partitioners cut.

constexpr std::string_view kAtLeastOneShard = "a partitioner makes at least one shard";
constexpr std::string_view kEmptyIsOneShard = "an empty variable is one shard";

Shape shape_of(const Json& extents) { return Shape(extents.get<std::vector<std::int64_t>>()); }

/// What a line of golden2.jsonl asks of a partitioner; the older functions have the same rules.
Json counts_of(const Record& record) {
  const Json& input = record.arguments;
  const std::string kind = input.at("partitioner").get<std::string>();
  const Shape shape = shape_of(input.at("shape"));
  const DType dtype =
      input.contains("dtype") ? parse_dtype(input.at("dtype").get<std::string>()) : DType::kFloat32;
  const int axis = input.value("axis", 0);
  if (kind == "FixedShards" || kind == "fixed_size_partitioner") {
    return FixedShardsPartitioner(input.at("num_shards").get<int>())(shape, dtype, axis);
  }
  if (kind == "MinSize") {
    return MinSizePartitioner({.min_shard_bytes = input.at("min_shard_bytes").get<std::int64_t>(),
                               .max_shards = input.at("max_shards").get<int>()})(shape, dtype, axis);
  }
  if (kind == "min_max_variable_partitioner") {
    return MinSizePartitioner({.min_shard_bytes = input.at("min_slice_size").get<std::int64_t>(),
                               .max_shards = input.at("max_partitions").get<int>()})(shape, dtype, axis);
  }
  MaxSizePartitionerOptions options{.max_shard_bytes = input.at("max_shard_bytes").get<std::int64_t>()};
  if (!input.at("max_shards").is_null()) options.max_shards = input.at("max_shards").get<int>();
  return MaxSizePartitioner(options)(shape, dtype, axis);
}

/// The lines of partitioners that are called `name` in the older records.
void add_partitioner(std::vector<Scenario>& all, const std::string& name, const Partitioner& partitioner) {
  for (const char* extents : {"10x3", "6x1", "1x5", "100x4", "1000x256", "7", "3x10x2"}) {
    std::string list = fmt::format("[{}]", extents);
    std::ranges::replace(list, 'x', ',');
    const Shape shape = shape_of(Json::parse(list));
    all.push_back({fmt::format("partition/{}_{}", name, extents),
                   [=](const Layout& /*layout*/) { return Json(partitioner(shape, DType::kFloat32)); }});
  }
}

void add_refused(std::vector<Scenario>& all) {
  const auto add = [&](const char* name, const std::function<void()>& make,
                       const std::vector<Difference>& differences = {}) {
    all.push_back({fmt::format("partition/bad_{}", name),
                   [=](const Layout& /*layout*/) {
                     make();
                     return Json("made");
                   },
                   differences});
  };
  add("min0", [] { MinSizePartitioner({.min_shard_bytes = 0}); });
  add("min_shards0", [] { MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 0}); });
  add("max0", [] { MaxSizePartitioner({.max_shard_bytes = 0}); });
  add("max_shards0", [] { MaxSizePartitioner({.max_shard_bytes = 4, .max_shards = 0}); },
      {{"", kAtLeastOneShard, [](const Layout& /*layout*/) { return an_error(); }}});
}

/// Edge cases, which golden2.jsonl tells as expressions in Python.
Family edge(std::string_view pattern, const std::function<std::vector<int>()>& run,
            const std::vector<FamilyDifference>& differences = {}) {
  return {{pattern}, [run](const Record& /*record*/) { return Json(run()); }, differences};
}

}  // namespace

std::vector<Scenario> partitioner_scenarios() {
  std::vector<Scenario> all;
  add_partitioner(all, "fixed2", FixedShardsPartitioner(2));
  add_partitioner(all, "fixed4", FixedShardsPartitioner(4));
  add_partitioner(all, "min4_max2", MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 2}));
  add_partitioner(all, "min4_max10", MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 10}));
  add_partitioner(all, "min256k_max8", MinSizePartitioner({.min_shard_bytes = 256 << 10, .max_shards = 8}));
  add_partitioner(all, "min_default", MinSizePartitioner());
  add_partitioner(all, "max4", MaxSizePartitioner({.max_shard_bytes = 4}));
  add_partitioner(all, "max4_2", MaxSizePartitioner({.max_shard_bytes = 4, .max_shards = 2}));
  add_partitioner(all, "max1024", MaxSizePartitioner({.max_shard_bytes = 1024}));
  add_partitioner(all, "max64k", MaxSizePartitioner({.max_shard_bytes = 64 << 10}));
  all.push_back({"partition/axis1", [](const Layout& /*layout*/) {
                   return Json(FixedShardsPartitioner(2)({10, 3}, DType::kFloat32, 1));
                 }});
  all.push_back({"partition/axis_oob", [](const Layout& /*layout*/) {
                   return Json(MinSizePartitioner()({10, 3}, DType::kFloat32, 2));
                 }});
  all.push_back(
      {"partition/half", [](const Layout& /*layout*/) {
         return Json(MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 10})({6, 1}, DType::kFloat16));
       }});
  add_refused(all);
  return all;
}

std::vector<Family> partitioner_families() {
  const auto refused = [](const Record& /*record*/) { return an_error(); };
  const auto one_shard = [](const Record& /*record*/) { return Json{1, 1}; };
  const std::string_view empty = "w2/partitioner/none/fixed*_0x4";
  const auto fixed = [](int num_shards) {
    return [=] { return FixedShardsPartitioner(num_shards)({10}, DType::kFloat32); };
  };
  const auto min = [](const MinSizePartitionerOptions& options) {
    return [=] { return MinSizePartitioner(options)({0, 3}, DType::kFloat32); };
  };
  const auto max = [](const MaxSizePartitionerOptions& options) {
    return [=] { return MaxSizePartitioner(options)({3, 0}, DType::kFloat32); };
  };
  return {
      edge("w2/*/edge_fixed_zero", fixed(0), {{"*", kAtLeastOneShard, refused}}),
      edge("w2/*/edge_fixed_neg", fixed(-2), {{"*", kAtLeastOneShard, refused}}),
      edge("w2/*/edge_min_bytes_0", min({.min_shard_bytes = 0})),
      edge("w2/*/edge_min_bytes_neg", min({.min_shard_bytes = -1})),
      edge("w2/*/edge_min_zero_rows", min({.min_shard_bytes = 4, .max_shards = 4})),
      edge("w2/*/edge_max_bytes_neg", max({.max_shard_bytes = -5})),
      edge("w2/*/edge_max_shards_neg", max({.max_shard_bytes = 5, .max_shards = -1})),
      edge("w2/*/edge_max_zero_cols", max({.max_shard_bytes = 4}), {{"*", kEmptyIsOneShard, one_shard}}),
      {{"w2/partitioner/none/*", "w2/partitioner_v1/none/fixed_size_*", "w2/partitioner_v1/none/axis_size_*",
        "w2/partitioner_v1/none/min_max_*"},
       counts_of,
       {{empty, kEmptyIsOneShard, one_shard}}},
  };
}

namespace {

/// Variables that are created one after the other, as [server, rows] of each of their shards.
class Placement {
 public:
  Placement(Partitioner partitioner, int servers) : placer_(std::move(partitioner), servers) {}

  void create(const Shape& shape) {
    const std::optional<ShardLayout> layout = placer_.cut(shape, DType::kFloat32);
    Json shards = Json::array();
    for (int shard = 0; shard < (layout ? layout->shards() : 1); ++shard) {
      Json rows = nullptr;
      if (layout) {
        const RowRange range = layout->range(shard);
        rows = range.end - range.begin;
      } else if (shape.rank() > 0) {
        rows = shape[0];
      }
      shards.push_back({placer_.next_server(), rows});
    }
    variables_.push_back(shards);
  }

  [[nodiscard]] const Json& variables() const { return variables_; }

 private:
  ShardPlacer placer_;
  Json variables_ = Json::array();
};

Partitioner partitioner_of(const Json& described) {
  if (described.empty()) return {};
  const std::string& name = described.begin().key();
  const Json& options = described.begin().value();
  if (name == "FixedShards") return FixedShardsPartitioner(options.get<int>());
  if (name == "MaxSize") return MaxSizePartitioner({.max_shard_bytes = options.get<std::int64_t>()});
  return MinSizePartitioner(
      {.min_shard_bytes = options.at(0).get<std::int64_t>(), .max_shards = options.at(1).get<int>()});
}

Json placed_in_order(const Record& record) {
  Placement placement(partitioner_of(record.arguments.at("partitioner")),
                      record.arguments.at("num_ps").get<int>());
  for (const Json& extents : record.arguments.at("shapes")) {
    placement.create(Shape(extents.get<std::vector<std::int64_t>>()));
  }
  return placement.variables();
}

Json placed_alone(const Record& record) {
  Placement placement(FixedShardsPartitioner(record.arguments.at("k").get<int>()),
                      record.arguments.at("num_ps").get<int>());
  placement.create({record.arguments.at("rows").get<std::int64_t>(), 2});
  return placement.variables();
}

/// A variable of 4x2 whose partitioner returns what the line says.
Json placed_by_users_partitioner(const Record& record) {
  const std::string text = record.arguments.at("python").get<std::string>();
  // `w2/placement/ps_w1_p2/...`
  const int servers = std::stoi(record.id.substr(record.id.find("_p") + 2));
  Placement placement(
      [&](const Shape& /*shape*/, DType /*dtype*/) {
        if (text == "_raise()") throw std::runtime_error("the partitioner's own");
        return Json::parse(text).get<std::vector<int>>();
      },
      servers);
  placement.create({4, 2});
  return placement.variables();
}

}  // namespace

std::vector<Family> shard_placement_families() {
  return {
      {{"w2/placement/*/none_*", "w2/placement/*/fixed*", "w2/placement/*/min16_*", "w2/placement/*/max40_*"},
       placed_in_order},
      {{"w2/placement/*/rows*_shards*"}, placed_alone},
      {{"w2/placement/*/partitioner_*"}, placed_by_users_partitioner},
  };
}

}  // namespace cohort::conformance
