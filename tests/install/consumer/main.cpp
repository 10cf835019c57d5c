// The README's program; `tests/install/find_package.sh` builds it as its reader would.
#include <cohort/cohort.h>
#include <cohort/mpi/session.h>
using namespace cohort;

int main(int argc, char** argv) {
  mpi::Session session(argc, argv);  // this rank is one worker
  MultiWorkerMirroredStrategy strategy(session);
  auto scope = strategy.scope();
  Variable weight({.name = "weight"});  // the same on every replica
  auto replica_ids = strategy.run([&](ReplicaContext& replica) {
    Sgd({.learning_rate = 0.5}).apply_gradients({{Tensor::scalar(1.0f), weight}});  // sums over all replicas
    return replica.replica_id_in_sync_group();
  });
  const int sum = strategy.reduce(ReduceOp::kSum, replica_ids);
  if (session.is_chief()) fmt::print("sum of ids {}, weight {}\n", sum, weight.read().item<float>());
}
