#include "sharded.h"

#include <utility>

#include "../replay.h"

namespace cohort::conformance {
namespace {

Json outcome_of(const std::function<Json()>& scenario) {
  try {
    return scenario();
  } catch (const Error&) {
    return an_error();
  }
}

}  // namespace

ShardedVariable in_shards(const Tensor& whole, const ShardLayout& layout) {
  std::vector<Variable> shards;
  for (int shard = 0; shard < layout.shards(); ++shard) {
    const RowRange rows = layout.range(shard);
    shards.emplace_back(VariableOptions{.name = fmt::format("emb/part_{}", shard),
                                        .initial_value = whole.rows(rows.begin, rows.end).clone()});
  }
  return ShardedVariable(std::move(shards), "emb");
}

Json show_shards(const ShardedVariable& variable) {
  Json shards = Json::array();
  for (const Variable& shard : variable.variables()) shards.push_back(show(shard.read()));
  return shards;
}

Json ShardedPlaces::everywhere(const std::function<Json()>& scenario) {
  const Json plain = outcome_of(scenario);
  if (!strategy_) strategy_.emplace(servers_.emplace(3).chief());
  const auto scope = strategy_->scope();
  const Json kept = outcome_of(scenario);
  return same_outcome(plain, kept) ? plain : Json{{"plain", plain}, {"kept by servers", kept}};
}

Family ShardedPlaces::family(const std::shared_ptr<ShardedPlaces>& places,
                             std::vector<std::string_view> patterns, const ShardedUse& use,
                             std::vector<FamilyDifference> differences) {
  return {std::move(patterns),
          [places, use](const Record& record) {
            return places->everywhere([&] {
              return use(record, in_shards(counted_rows(record.arguments), layout_of(record.arguments)));
            });
          },
          std::move(differences)};
}

}  // namespace cohort::conformance
