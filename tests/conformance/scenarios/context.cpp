// Which context the calling thread is in, and what it may do there.
#include <thread>

#include <cohort/strategy/mirrored_strategy.h>

#include "common.h"

namespace cohort::conformance {
namespace {

/// Only set_strategy can end a strategy's scope before the scopes inside of it.
class GlobalStrategy {
 public:
  explicit GlobalStrategy(const Strategy& strategy) { set_strategy(strategy); }
  ~GlobalStrategy() { set_strategy(std::nullopt); }
  GlobalStrategy(const GlobalStrategy&) = delete;
  GlobalStrategy& operator=(const GlobalStrategy&) = delete;
};

}  // namespace

std::vector<Scenario> context_scenarios() {
  return {
      {"ctx/scope",
       [](const Layout& l) {
         const auto scope = l.strategy().scope();
         return state(l);
       }},
      {"ctx/nested_other",
       [](const Layout& l) {
         const auto scope = l.strategy().scope();
         const MirroredStrategy other(cpu_devices(1));
         const auto inner = other.scope();
         return Json(get_strategy().num_replicas_in_sync());
       }},
      {"ctx/nested_default",
       [](const Layout& l) {
         const Strategy default_strategy = get_strategy();
         const auto scope = l.strategy().scope();
         const auto inner = default_strategy.scope();
         return state(l);
       }},
      {"ctx/scope_in_run",
       [](const Layout& l) {
         return show(l.run([&](int) {
           const auto scope = l.strategy().scope();
           return None();
         }));
       },
       {{"default1", kDefaultInside, [](const Layout&) { return Json(nullptr); }}}},
      {"ctx/other_thread",
       [](const Layout& l) {
         const auto scope = l.strategy().scope();
         Json seen;
         std::thread([&] { seen = state(l); }).join();
         return seen;
       }},
      {"ctx/in_replica_gather",
       [](const Layout& l) {
         return show(
             l.run([&](int r) { return l.strategy().gather(PerReplica<Tensor>({vector({1.0 * r})}), 0); }));
       },
       {{"default1", kDefaultInside, [](const Layout&) { return Json::array({0.0}); }}}},
      {"ctx/set_strategy_in_scope",
       [](const Layout& l) {
         const auto scope = l.strategy().scope();
         set_strategy(l.strategy());
         return Json("no error");
       },
       {{"default1", kDefaultInside, [](const Layout&) { return Json("no error"); }}}},
      {"ctx/exit_with_open_device_scope",
       [](const Layout& l) {
         const GlobalStrategy global(l.strategy());
         const DeviceScope device(Device::cpu(0));
         set_strategy(std::nullopt);
         return Json("no error");
       },
       {{"", "scopes nest", [](const Layout&) { return an_error(); }}}},
      {"ctx/exit_with_open_creator_scope",
       [](const Layout& l) {
         const GlobalStrategy global(l.strategy());
         const VariableCreatorScope creator(
             [](const NextCreator& next, VariableOptions options) { return next(std::move(options)); });
         set_strategy(std::nullopt);
         return Json("no error");
       }},
      {"ctx/all_reduce_in_cross",
       [](const Layout& l) {
         const auto scope = l.strategy().scope();
         const ReplicaContext* replica = get_replica_context();
         if (replica == nullptr) throw WrongContext("there is no replica context here");
         return show(replica->all_reduce(ReduceOp::kSum, number(1)));
       }},
  };
}

}  // namespace cohort::conformance
