// Clusters, their roles, and the resolvers.
#include <cstdlib>

#include <fmt/format.h>

#include <cohort/cluster/cluster_roles.h>
#include <cohort/cluster/cluster_spec_json.h>
#include <cohort/resolvers/slurm_cluster_resolver.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>
#include <cohort/resolvers/union_cluster_resolver.h>

#include "common.h"
#include "resolvers/list_notations.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kAsPrinted = "what Slurm really prints";
constexpr std::string_view kAsWhole = "a wrong TF_CONFIG is refused as a whole";

Json show_spec(const ClusterSpec& spec) { return Json::parse(to_json(spec)); }

ClusterSpec read_spec(const char* json) { return cluster_spec_from_json(json); }

Scenario scenario(std::string name, std::function<Json()> run, std::vector<Difference> differences = {}) {
  return {std::move(name), [run = std::move(run)](const Layout&) { return run(); }, std::move(differences)};
}

Difference comes_out(std::string_view why, Json outcome) {
  return {"", why, [outcome = std::move(outcome)](const Layout&) { return outcome; }};
}

/// What `ask` returns, or an error.
Json attempt(const std::function<Json()>& ask) {
  try {
    return ask();
  } catch (const Error&) {
    return an_error();
  }
}

// ---- Slurm

void add_slurm_lists(std::vector<Scenario>& all) {
  struct HostList {
    const char* name;
    const char* list;
    std::vector<Difference> differences = {};
  };
  const std::vector<HostList> lists = {{"n[1-2],m5,o[3-4,6,7-9]", "n[1-2],m5,o[3-4,6,7-9]"},
                                       {"n[0001-0003],m5,o[009-011]", "n[0001-0003],m5,o[009-011]"},
                                       {"a1,a2,a2", "a1,a2,a2"},
                                       {"n[1]", "n[1]"},
                                       {"n[1,3]", "n[1,3]"},
                                       {"n[08-11]", "n[08-11]"},
                                       {"n[9-11]", "n[9-11]"},
                                       {"a[1-2]b", "a[1-2]b", {comes_out(kAsPrinted, {"a1b", "a2b"})}},
                                       {"n[3-1]", "n[3-1]", {comes_out(kAsPrinted, an_error())}},
                                       {"n[1-2", "n[1-2"},
                                       {"n1-2]", "n1-2]"},
                                       {"empty", ""},
                                       {"n[a-b]", "n[a-b]"},
                                       {"n[1-2],", "n[1-2],"},
                                       {",n1", ",n1"},
                                       {"n[1 -2]", "n[1 -2]", {comes_out(kAsPrinted, an_error())}},
                                       {"n1 ,n2", "n1 ,n2", {comes_out(kAsPrinted, an_error())}},
                                       {"a.b.c[1-2]", "a.b.c[1-2]"}};
  for (const HostList& one : lists)
    all.push_back(scenario(
        fmt::format("slurm/hostlist/{}", one.name), [=] { return show(expand_host_list(one.list)); },
        one.differences));
  for (const char* list : {"3(x2),2,1", "1", "2,2", "", "a", "3x2", "0", "3(x0)", "2(x2)2"})
    all.push_back(scenario(fmt::format("slurm/tasks_per_node/{}", *list == '\0' ? "empty" : list),
                           [=] { return show(expand_tasks_per_node(list)); }));
}

struct Step {
  const char* hosts = "t02n13,t02n41,t02n43";
  const char* tasks = "1,1,1";
  const char* count = "3";
  const char* rank = "0";
  const char* gpus = "0";
};

Environment variables_of(const Step& step) {
  return {{"SLURM_PROCID", step.rank},
          {"SLURM_STEP_NUM_TASKS", step.count},
          {"SLURM_STEP_NODELIST", step.hosts},
          {"SLURM_STEP_TASKS_PER_NODE", step.tasks},
          {"CUDA_VISIBLE_DEVICES", step.gpus}};
}

Json resolved(const Step& step, SlurmOptions options) {
  // The tests use no GPU, so its number does not matter; the value that would be set is shown.
  const bool sets_gpus = std::exchange(options.auto_set_gpu, false);
  const SlurmClusterResolver resolver(options, variables_of(step));
  return {{"before_cluster_spec", {nullptr, nullptr, ""}},
          {"cluster", show_spec(resolver.cluster_spec())},
          {"task_info", {*resolver.task_type(), *resolver.task_id()}},
          {"master", resolver.master()},
          {"rpc_layer", resolver.rpc_layer()},
          {"gpus", sets_gpus ? resolver.own_gpus() : step.gpus},
          {"num_accelerators", resolver.num_accelerators()},
          {"environment", resolver.environment()}};
}

void add_slurm(std::vector<Scenario>& all) {
  const Step simple;
  const Step uneven{.tasks = "2(x2),1", .count = "5", .rank = "1", .gpus = "0,1"};
  const SlurmOptions with_ps{.jobs = {{"ps", 1}, {"worker", 4}}};
  const auto add = [&](const char* name, const Step& step, const SlurmOptions& options,
                       std::vector<Difference> differences = {}) {
    all.push_back(scenario(
        fmt::format("slurm/{}", name), [=] { return resolved(step, options); }, std::move(differences)));
  };
  add("simple", simple, {});
  add("simple_rank2", {.rank = "2"}, {});
  add("rpc_empty", simple, {.rpc_layer = ""});
  add("port_base", simple, {.jobs = {{"ps", 1}, {"worker", 2}}, .port_base = 9000});
  add("multi_task", uneven, with_ps);
  const Step four_gpus{.tasks = "2(x2),1", .count = "5", .rank = "1", .gpus = "0,1,2,3"};
  add("multi_gpu", four_gpus, with_ps);
  SlurmOptions left_alone = with_ps;
  left_alone.auto_set_gpu = false;
  add("auto_set_gpu_false", uneven, left_alone);
  add("chief_ps_worker", {.tasks = "2(x2),1", .count = "5", .rank = "4", .gpus = "0,1"},
      {.jobs = {{"chief", 1}, {"worker", 2}, {"ps", 2}}});
  const auto keeps_order = [&](const Step& step) {
    return std::vector{comes_out(kAsPrinted, resolved(step, {}))};
  };
  const Step two_hosts{.hosts = "b,a", .tasks = "1(x2)", .count = "2"};
  add("unsorted_hosts", two_hosts, {}, keeps_order(two_hosts));
  const Step numbered{.hosts = "n[9-11]", .tasks = "1(x3)", .count = "3"};
  add("host_sort_lexical", numbered, {}, keeps_order(numbered));
  add("too_many_gpus", simple, {.gpus_per_node = 1, .gpus_per_task = 2});
  const SlurmOptions no_gpus{.gpus_per_node = 0, .gpus_per_task = 0};
  add("zero_gpus", simple, no_gpus, {comes_out("clusters without GPUs", resolved(simple, no_gpus))});
  add("procid_out_of_range", {.rank = "7"}, {});
  add("tasks_per_node_shorter", {.tasks = "1(x2)"}, {});
  for (const char* name :
       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"}) {
    all.push_back(scenario(fmt::format("slurm/missing_{}", name), [=] {
      Environment variables = variables_of({});
      variables.erase(name);
      return show_spec(SlurmClusterResolver({}, variables).cluster_spec());
    }));
  }
  all.push_back(scenario("slurm/no_cuda_var",
                         [] {
                           Environment variables = variables_of({});
                           variables.erase("CUDA_VISIBLE_DEVICES");
                           return Json(SlurmClusterResolver({}, variables).num_accelerators());
                         },
                         {comes_out("clusters without GPUs", {{"GPU", 0}})}));
}

// ---- TF_CONFIG

Json or_null(const auto& value) { return value ? Json(*value) : Json(nullptr); }

Json read_config(const std::optional<std::string>& text, const TfConfigOptions& options) {
  Environment variables;
  if (text) variables.emplace("TF_CONFIG", *text);
  const TfConfigClusterResolver resolver(options, variables);
  const auto or_empty = [](const std::string& layer) { return layer.empty() ? Json(nullptr) : Json(layer); };
  return {{"task_type", or_null(resolver.task_type())},
          {"task_id", or_null(resolver.task_id())},
          {"rpc_layer", or_empty(resolver.rpc_layer())},
          {"environment", or_empty(resolver.environment())},
          {"cluster", show_spec(resolver.cluster_spec())},
          {"master", attempt([&] { return Json(resolver.master()); })},
          {"master_w1", resolver.cluster_spec().empty() ? Json("") : attempt([&] {
             return Json(resolver.master("worker", 1));
           })},
          {"num_accelerators", resolver.num_accelerators()}};
}

std::string with_task(std::string_view task) {
  constexpr std::string_view kJobs =
      R"("cluster": {"ps": ["p0:1", "p1:2"], "worker": ["w0:1", "w1:2", "w2:3"]})";
  return fmt::format(R"({{{}, "task": {}}})", kJobs, task);
}

void add_tf_config(std::vector<Scenario>& all) {
  const auto add = [&](const char* name, const std::optional<std::string>& text,
                       std::vector<Difference> differences = {}, const TfConfigOptions& options = {}) {
    all.push_back(scenario(
        fmt::format("tfconfig/{}", name), [=] { return read_config(text, options); },
        std::move(differences)));
  };
  add("rpc_layer", with_task(R"({"type": "ps", "index": 0})"), {}, {.rpc_layer = "grpc"});
  add("unset", std::nullopt);
  add("empty_object", "{}");
  add("list", "[]");
  add("one_task", R"({"cluster": {"worker": ["w0:1"]}, "task": {"type": "worker", "index": 0}})");
  add("sparse", R"({"cluster": {"worker": {"1": "w1:2"}}, "task": {"type": "worker", "index": 1}})");

  for (const auto& [name, text] : std::vector<std::pair<const char*, std::string>>{
           {"empty_string", ""},
           {"malformed", "{"},
           {"index_bad", with_task(R"({"type": "worker", "index": "x"})")},
           {"cluster_string", R"({"cluster": "x", "task": {"type": "worker", "index": 0}})"},
           {"job_string", R"({"cluster": {"worker": "w0:1"}, "task": {"type": "worker", "index": 0}})"}})
    add(name, text, {comes_out(kAsWhole, an_error())});

  for (const auto& [name, task, type, id] : std::vector<std::tuple<const char*, const char*, Json, Json>>{
           {"index_out_of_range", R"({"type": "worker", "index": 9})", "worker", 9},
           {"type_int", R"({"type": 123456, "index": 0})", "123456", 0},
           {"type_unknown", R"({"type": "boss", "index": 0})", "boss", 0},
           {"no_task", "{}", nullptr, nullptr}}) {
    add(name, with_task(task),
        {comes_out("TF_CONFIG says nothing of accelerators",
                   {{"task_type", type},
                    {"task_id", id},
                    {"rpc_layer", nullptr},
                    {"environment", nullptr},
                    {"cluster", {{"ps", {"p0:1", "p1:2"}}, {"worker", {"w0:1", "w1:2", "w2:3"}}}},
                    {"master", an_error()},
                    {"master_w1", "w1:2"},
                    {"num_accelerators", Json::object()}})});
  }
}

// ---- clusters and the other resolvers

void add_cluster_specs(std::vector<Scenario>& all) {
  static const ClusterSpec kSpec(std::map<std::string, ClusterSpec::Tasks, std::less<>>{
      {"worker", {{0, "a:1"}, {1, "b:2"}}}, {"ps", {{3, "c:3"}}}});
  all.push_back(scenario(
      "clusterspec/basic",
      [] {
        std::vector<int> indices;
        for (const auto& [index, address] : kSpec.tasks("ps")) indices.push_back(index);
        return Json{show_spec(kSpec), kSpec.jobs(),   kSpec.num_tasks("worker"),
                    indices,          !kSpec.empty(), !ClusterSpec().empty()};
      },
      {comes_out("jobs by name", {show_spec(kSpec), {"ps", "worker"}, 2, Json::array({3}), true, false})}));
  all.push_back(scenario("clusterspec/task_address", [] { return Json(kSpec.task_address("worker", 1)); }));
  all.push_back(scenario("clusterspec/unknown_job", [] { return Json(kSpec.num_tasks("x")); }));
  all.push_back(scenario("clusterspec/unknown_job_addr", [] { return Json(kSpec.task_address("x", 0)); }));
  all.push_back(
      scenario("clusterspec/job_tasks", [] { return Json(kSpec.tasks("ps")); },
               {comes_out("the cluster's tasks by number", Json::array({Json::array({3, "c:3"})}))}));
  for (const auto& [name, text] :
       std::vector<std::pair<const char*, const char*>>{{"dense_as_dict", R"({"w": {"0": "a", "1": "b"}})"},
                                                        {"bad_none", "null"},
                                                        {"bad_int", "5"},
                                                        {"bad_list", R"(["a"])"},
                                                        {"bad_str_task", R"({"w": "a"})"},
                                                        {"bad_int_addr", R"({"w": [1]})"},
                                                        {"bad_str_index", R"({"w": {"0": "a"}})"},
                                                        {"bad_none_addr", R"({"w": [null]})"}})
    all.push_back(
        scenario(fmt::format("clusterspec/{}", name), [text = text] { return show_spec(read_spec(text)); }));
}

std::shared_ptr<const ClusterResolver> simple(const char* json, SimpleClusterOptions options = {}) {
  return std::make_shared<SimpleClusterResolver>(read_spec(json), "worker", 0, nullptr, std::move(options));
}

void add_unions(std::vector<Scenario>& all) {
  const auto add = [&](const char* name, const char* first, const char* second) {
    all.push_back(scenario(fmt::format("union/{}", name), [=] {
      return show_spec(UnionClusterResolver({simple(first), simple(second)}).cluster_spec());
    }));
  };
  add("lists", R"({"worker": ["h4", "h5"]})", R"({"worker": ["h0", "h1", "h2"]})");
  add("jobs", R"({"worker": ["h4"]})", R"({"ps": ["p0"]})");
  add("overlap_sparse", R"({"worker": {"1": "h4"}})", R"({"worker": {"1": "h5"}})");
  add("list_and_sparse", R"({"worker": ["h4"]})", R"({"worker": {"1": "h5"}})");
  all.push_back(scenario("union/props", [] {
    const UnionClusterResolver both({simple(R"({"worker": ["h4"]})", {.master = "m1", .rpc_layer = "grpc"}),
                                     simple(R"({"worker": ["h5"]})", {.master = "m2"})});
    return Json{*both.task_type(), *both.task_id(), both.rpc_layer(), both.master()};
  }));
}

void add_simple_resolvers(std::vector<Scenario>& all) {
  static const ClusterSpec kSpec{{"worker", {"a:1", "b:2"}}};
  all.push_back(scenario("simple/master", [] {
    const SimpleClusterOptions options{.master = "m", .num_accelerators = {{"GPU", 3}}};
    SimpleClusterOptions with_layer = options;
    with_layer.rpc_layer = "grpc";
    const SimpleClusterResolver resolver(kSpec, {}, {}, nullptr, options);
    return Json{resolver.master(),
                resolver.master("worker", 1),
                SimpleClusterResolver(kSpec, {}, {}, nullptr, with_layer).master("worker", 1),
                or_null(resolver.task_type()),
                or_null(resolver.task_id()),
                resolver.environment(),
                resolver.num_accelerators()};
  }));
  all.push_back(
      scenario("simple/master_unknown", [] { return Json(SimpleClusterResolver(kSpec).master("ps", 0)); }));
}

// ---- roles

void add_roles(std::vector<Scenario>& all) {
  static const ClusterSpec kChief{{"chief", {"c:1"}}, {"worker", {"a:1", "b:2"}}, {"ps", {"p:1"}}};
  static const ClusterSpec kNoChief{{"worker", {"a:1", "b:2"}}, {"ps", {"p:1"}}};
  const std::vector<ClusterTask> tasks = {{"chief", 0},  {"chief", 1}, {"worker", 0},    {"worker", 1},
                                          {"worker", 2}, {"ps", 0},    {"evaluator", 0}, {"boss", 0}};
  for (const auto& [cluster, spec] : {std::pair("chief", &kChief), std::pair("nochief", &kNoChief)}) {
    for (const ClusterTask& task : tasks) {
      const std::string suffix = fmt::format("_{}_{}{}", cluster, task.type, task.id);
      const auto add = [&](const char* question, std::function<Json()> ask) {
        all.push_back(scenario(fmt::format("mwutil/{}{}", question, suffix), std::move(ask)));
      };
      add("is_chief", [spec = spec, task] { return Json(is_chief(*spec, task)); });
      add("worker_count", [spec = spec, task] { return Json(worker_count(*spec, task.type)); });
      add("id_in_cluster", [spec = spec, task] { return Json(id_in_cluster(*spec, task)); });
      add("collective_leader", [spec = spec, task] {
        const std::optional<ClusterTask> leader = collective_leader(*spec, task);
        return Json(leader ? fmt::format("/job:{}/replica:0/task:{}", leader->type, leader->id) : "");
      });
    }
  }
  all.push_back(scenario("mwutil/two_chiefs", [] {
    return Json(is_chief({{"chief", {"a:1", "b:2"}}}, {"chief", 0}));
  }));
}

}  // namespace

std::vector<Scenario> cluster_scenarios() {
  std::vector<Scenario> all;
  add_slurm_lists(all);
  add_slurm(all);
  add_tf_config(all);
  add_cluster_specs(all);
  add_unions(all);
  add_simple_resolvers(all);
  add_roles(all);
  return all;
}

}  // namespace cohort::conformance
