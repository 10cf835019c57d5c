// Variables that real servers keep, made within scopes.
#include <thread>
#include <vector>

#include <cohort/remote/local_cluster.h>
#include <cohort/server/parameter_server_strategy.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/value/variable_creator_scope.h>

#include "common.h"
#include "server/server_task.h"
#include "server/server_variable.h"

namespace cohort::conformance {
namespace {

/// The servers of a line, in threads, until chief and worker have ended.
class Servers {
 public:
  explicit Servers(const Record& record)
      // `w2/placement/ps_w1_p2/...`
      : count_(std::stoi(record.id.substr(record.id.find("_p") + 2))),
        cluster_({{"chief", 1}, {"worker", 1}, {"ps", count_}}) {
    for (int id = 0; id < count_; ++id) {
      threads_.emplace_back([place = &cluster_.place({"ps", id})] { server::ServerTask(*place, 0).run(); });
    }
  }
  ~Servers() {
    { const ParameterServerStrategy worker(cluster_.place({"worker", 0})); }
    for (std::thread& thread : threads_) thread.join();
  }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  [[nodiscard]] const remote::TaskPlace& chief() const { return cluster_.place({"chief", 0}); }

 private:
  int count_;
  remote::LocalCluster cluster_;
  std::vector<std::thread> threads_;
};

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
  const Servers servers(record);
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
  const Servers servers(record);
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
  const Servers servers(record);
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
