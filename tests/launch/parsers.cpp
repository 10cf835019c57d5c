#include "parsers.h"

#include <functional>
#include <stdexcept>
#include <typeinfo>

#include <cohort/base/error.h>
#include <cohort/cluster/cluster_spec_json.h>
#include <cohort/cluster/launcher_place.h>
#include <cohort/launch/kubernetes_cluster_resolver.h>
#include <cohort/launch/slurm_cluster_resolver.h>
#include <cohort/launch/slurm_lists.h>
#include <cohort/launch/tf_config_cluster_resolver.h>

namespace cohort::testing {
namespace {

void expect_error_or_none(const char* reader, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    const bool is_users_mistake =
        error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnavailable;
    if (!is_users_mistake || std::string(error.what()).empty())
      throw std::logic_error(std::string(reader) + " refuses it by: " + error.what());
  } catch (const std::exception& error) {
    throw std::logic_error(std::string(reader) + " lets through: " + error.what());
  }
}

void use(const ClusterResolver& resolver) {
  const ClusterSpec spec = resolver.cluster_spec();
  if (cluster_spec_from_json(to_json(spec)) != spec) throw std::runtime_error("a cluster that JSON changes");
  static_cast<void>(resolver.master());
}

}  // namespace

void read_in_every_way(const std::string& text) {
  expect_error_or_none("expand_host_list", [&] { static_cast<void>(expand_host_list(text)); });
  expect_error_or_none("expand_tasks_per_node", [&] { static_cast<void>(expand_tasks_per_node(text)); });
  expect_error_or_none("cluster_spec_from_json", [&] { static_cast<void>(cluster_spec_from_json(text)); });
  expect_error_or_none("TF_CONFIG", [&] { use(TfConfigClusterResolver({}, {{"TF_CONFIG", text}})); });
  expect_error_or_none("the list of pods",
                       [&] { use(KubernetesClusterResolver(text, {.own_pod = "a"}, {})); });
  expect_error_or_none("a rank", [&] {
    static_cast<void>(launcher_place({{"OMPI_COMM_WORLD_RANK", text}, {"OMPI_COMM_WORLD_SIZE", text}}));
  });
  for (const char* name :
       {"SLURM_PROCID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}) {
    Environment step{{"SLURM_PROCID", "0"},
                     {"SLURM_STEP_NODELIST", "n[0-1]"},
                     {"SLURM_STEP_NUM_TASKS", "4"},
                     {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
    step[name] = text;
    expect_error_or_none(name, [&] { use(SlurmClusterResolver({.auto_set_gpu = false}, step)); });
  }
}

}  // namespace cohort::testing
