// How variables are cut, and which server each shard goes to: every one in turn.
#include <cohort/server/partitioners.h>

#include "common.h"
#include "server/shard_placer.h"

namespace cohort::conformance {
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
