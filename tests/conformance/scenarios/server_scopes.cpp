// Variables that real servers keep, made within scopes.
#include <vector>

#include <cohort/server/sharded_variable.h>
#include <cohort/value/variable_creator_scope.h>

#include "common.h"
#include "server/server_variable.h"
#include "server_threads.h"

namespace cohort::conformance {
namespace {

/// As [server, rows] of each shard.
Json place_of(const std::vector<Variable>& shards) {
  Json places = Json::array();
  for (const Variable& shard : shards) {
    const auto& kept = dynamic_cast<const server::ServerVariable&>(*shard.state());
    places.push_back({kept.place().server, shard.shape().rank() == 0 ? Json() : Json(shard.shape()[0])});
  }
  return places;
}
Json place_of(const Variable& variable) { return place_of(std::vector{variable}); }
Json place_of(const ShardedVariable& table) { return place_of(table.variables()); }

Json colocated(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief(),
                                         {.variable_partitioner = FixedShardsPartitioner(2)});
  const auto scope = strategy.scope();
  const Variable a({.name = "a"});
  const Variable b({.name = "b"});
  const auto beside = [&](const Variable& neighbour, std::int64_t rows) {
    const auto colocate = strategy.extended().colocate_vars_with(neighbour);
    return place_of(ShardedVariable({.shape = {rows}, .name = "beside"}));
  };
  const Json c = beside(a, 4);
  const Variable d({.name = "d"});
  const ShardedVariable table({.shape = {4}, .name = "sh"});
  const Json e = beside(table.variables()[1], 2);
  return {place_of(a), place_of(b), c, place_of(d), place_of(table), e};
}

Json created_by_creators(const Record& record) {
  const ServerThreads servers(servers_of(record));
  Json asked = Json::array();
  const auto noting = [&](const char* name) {
    return [&asked, name](const NextCreator& next, VariableOptions options) {
      asked.push_back(name);
      return next(std::move(options));
    };
  };
  const ParameterServerStrategy strategy(servers.chief());
  const VariableCreatorScope outside(noting("outer"));
  const auto scope = strategy.scope();
  const VariableCreatorScope inside(noting("inner"));
  const Variable variable({.name = "v"});
  return {asked, place_of(variable)};
}

Json in_nested_scopes(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const auto outer = strategy.scope();
  const auto inner = strategy.scope();
  return place_of(Variable({.name = "v"}));
}

}  // namespace

std::vector<Family> server_scope_families() {
  return {
      {{"w2/placement/*/colocate"}, colocated},
      {{"w2/placement/*/creator_scopes"}, created_by_creators},
      {{"w2/placement/*/nested_scope_same"}, in_nested_scopes},
  };
}

}  // namespace cohort::conformance
