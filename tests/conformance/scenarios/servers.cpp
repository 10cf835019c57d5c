// Servers of a cluster, and methods that tasks call.
#include <fmt/format.h>

#include <cohort/remote/local_cluster.h>
#include <cohort/rpc/client.h>
#include <cohort/rpc/server.h>

#include "common.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNoNameOfProtocol = "one protocol, which has no name";
constexpr std::string_view kOwnTexts = "errors have texts of their own";

/// A task and its cluster, with P for the ports, which the system chooses.
Json show_place(const remote::TaskPlace& place) {
  const ClusterSpec spec = remote::cluster_spec(place);
  Json jobs = Json::object();
  for (const std::string& job : spec.jobs()) {
    for (const auto& [index, address] : spec.tasks(job))
      jobs[job][std::to_string(index)] = address.substr(0, address.rfind(':')) + ":P";
  }
  return {{"job", place.task.type}, {"index", place.task.id}, {"jobs", jobs}};
}

/// Lines whose outcome has what `show_place` shows, and two names of the protocol.
Family placed(std::string_view pattern, const std::vector<std::pair<std::string, int>>& jobs,
              const ClusterTask& task) {
  const auto shown = [=] { return show_place(remote::LocalCluster(jobs).place(task)); };
  const auto without_protocol = [](const Record& record) {
    Json outcome = record.outcome;
    outcome.erase("target");
    outcome.erase("protocol");
    return outcome;
  };
  return {{pattern},
          [=](const Record& /*record*/) { return shown(); },
          {{"*", kNoNameOfProtocol, without_protocol}}};
}

/// What `call` returns, as the original's status and value.
template <class T>
Json show_reply(const rpc::Reply<T>& reply) {
  if (!reply.is_ok()) return {false, an_error()};
  if constexpr (std::is_void_v<T>)
    return {true, nullptr};
  else
    return {true, reply.get()};
}

Json attempt(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error&) {
    return an_error();
  }
  return nullptr;
}

float reciprocal(float x, float y) {
  if (y == 0) throw InvalidArgument("bad: {} / {}", x, y);
  return x / y;
}

/// Methods add, fail, none and inc, and what becomes of right and wrong calls of them.
Json call_methods(const Record& /*record*/) {
  const remote::LocalCluster cluster({{"worker", 2}});
  float state = 0;
  rpc::Server server(cluster.place({"worker", 0}));
  const auto add = [](float x, float y) { return x + y; };
  server.register_method("add", add);
  server.register_method("fail", reciprocal);
  server.register_method("none", [](float /*x*/) {});
  server.register_method("inc", [&](float x) { return state += x; });
  Json result = Json::object();
  result["register_twice"] = attempt([&] { server.register_method("add", add); });
  server.start();
  result["start_again"] = attempt([&] { server.start(); });
  result["register_after_start"] = attempt([&] { server.register_method("late", add); });

  using Binary = float(float, float);
  const rpc::Client client(cluster.place({"worker", 1}), {"worker", 0});
  result["call"] = show_reply(client.call<Binary>("add", 2.0F, 3.0F));
  result["fail"] = show_reply(client.call<Binary>("fail", 1.0F, 0.0F));
  result["fail_value"] = attempt([&] { client.call<Binary>("fail", 1.0F, 0.0F).get(); });
  result["unknown_method"] = show_reply(client.call<Binary>("nope", 1.0F, 2.0F));
  result["too_few_args"] = show_reply(client.call<float(float)>("add", 1.0F));
  result["no_output"] = show_reply(client.call<void(float)>("none", 1.0F));
  client.call<float(float)>("inc", 1.0F).get();
  result["state"] = client.call<float(float)>("inc", 2.0F).get();
  for (const rpc::Method& method : client.list_methods()) result["methods"].push_back(method.name);
  return result;
}

/// The recorded line without Python's ways to call and to register, and with errors without texts.
Json as_called_here(const Record& record) {
  Json outcome = record.outcome;
  for (const char* key : {"register_plain", "register_nosig", "member"}) outcome.erase(key);
  for (const char* key : {"register_twice", "register_after_start", "fail_value"}) outcome[key] = an_error();
  for (const char* key : {"fail", "unknown_method", "too_few_args"}) outcome[key] = {false, an_error()};
  outcome["methods"] = {"add", "fail", "inc", "none"};
  return outcome;
}

Json connect_to_nobody(const Record& /*record*/) {
  const remote::LocalCluster cluster({{"worker", 2}});
  rpc::Client(cluster.place({"worker", 1}), {"worker", 0}, {.connect_timeout_seconds = 0.1});
  return "connected";
}

}  // namespace

std::vector<Family> server_families() {
  const auto refused = [](const Record& /*record*/) { return an_error(); };
  const auto without_job = [](const Record& /*record*/) {
    return show_place(remote::LocalCluster({{"worker", 1}}).place({"nope", 0}));
  };
  const auto without_tasks = [](const Record& /*record*/) {
    return Json(remote::LocalCluster({}).places().size());
  };
  return {
      placed("w2/server/*/dict_one_job_one_task", {{"worker", 1}}, {"worker", 0}),
      placed("w2/server/*/clusterspec", {{"worker", 1}}, {"worker", 0}),
      placed("w2/server/*/dict_two_tasks", {{"worker", 2}}, {"worker", 1}),
      placed("w2/server/*/dict_two_jobs", {{"worker", 1}, {"ps", 1}}, {"ps", 0}),
      {{"w2/server/*/job_bad"}, without_job},
      {{"w2/server/*/empty_dict"}, without_tasks},
      {{"w2/server/*/rpc"}, call_methods, {{"*", kOwnTexts, as_called_here}}},
      {{"w2/server/*/rpc_client_no_server"}, connect_to_nobody, {{"*", kOwnTexts, refused}}},
  };
}

}  // namespace cohort::conformance
