// Temporaries from which something is taken that ends with them.
//
// Says: OwningSpan<float>
// Says: of a temporary: name it, it owns the way to the workers
#include <span>
#include <vector>

#include <cohort/resolvers/role_cluster_resolver.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

using cohort::Mirrored;
using cohort::Tensor;

Mirrored<Tensor> broadcast();

#ifdef MISUSE
void write() { [[maybe_unused]] const std::span<float> elements = broadcast().local().span<float>(); }
void train(cohort::Bootstrap& session) {
  const cohort::MultiWorkerMirroredStrategy strategy(cohort::RoleClusterResolver(session, "worker=2"));
}
#else
void write() { [[maybe_unused]] const auto elements = broadcast().local().span<float>(); }
void train(cohort::Bootstrap& session) {
  const cohort::RoleClusterResolver roles(session, "worker=2");
  const cohort::MultiWorkerMirroredStrategy strategy(roles);
}
#endif
