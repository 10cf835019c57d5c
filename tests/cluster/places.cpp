// Says where each rank finds itself, by MPI and by Slurm's variables; slurm_jobs.sh compares.
// One line per rank, from rank 0:
//
//   rank 2 of 4: n1, node 1, local rank 0, task worker:2 at n1:8888, by variables n1:8888
//
// The last is `-` where the variables are not those of a job step's task.
#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/mpi/session.h>
#include <cohort/resolvers/slurm_cluster_resolver.h>

namespace {

std::string by_variables() {
  try {
    return cohort::SlurmClusterResolver({.rpc_layer = ""}).master();
  } catch (const cohort::Error&) {
    return "-";
  }
}

}  // namespace

int main(int argc, char** argv) {
  cohort::mpi::Session session(argc, argv);
  const cohort::SlurmClusterResolver place({.rpc_layer = "", .bootstrap = &session});
  const cohort::WorkerInfo& self = session.self();
  const std::string line =
      fmt::format("rank {} of {}: {}, node {}, local rank {}, task {}:{} at {}, by variables {}\n", self.rank,
                  session.size(), self.host, self.node, self.local_rank, *place.task_type(), *place.task_id(),
                  place.master(), by_variables());
  for (const std::string& each : session.exchange(line))
    if (session.is_chief()) fmt::print("{}", each);
  return 0;
}
