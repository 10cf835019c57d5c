// Says: schedule() takes as many arguments as the function, without its InputContext
// Says: a RemoteValue is no argument of another function: fetch its value first
// Says: this type cannot be sent to another task
// Says: the function takes another type than the elements of this PerWorker
// Says: an argument does not convert to what the function takes
// Says: what this function returns cannot be sent
// Says: create_per_worker() takes as many arguments as the function, without its InputContext
#include <string>

#include <cohort/coordinator/cluster_coordinator.h>

using cohort::ClusterCoordinator;
using cohort::PerWorker;
using cohort::RemoteValue;

int add(int one, int other) { return one + other; }
int half(int number) { return number / 2; }

#ifdef MISUSE
struct Handle {
  const int* where;
};
using Kept = cohort::Variable;
using Element = float;
using Number = std::string;
auto too_few(const ClusterCoordinator& coordinator) { return coordinator.schedule<add>(1); }
auto remote(const ClusterCoordinator& coordinator, const RemoteValue<int>& value) {
  return coordinator.schedule<half>(value);
}
auto made(const ClusterCoordinator& coordinator) { return coordinator.create_per_worker<half>(); }
#else
struct Handle {
  int where;
};
COHORT_FIELDS(Handle, where)
using Kept = cohort::Tensor;
using Element = int;
using Number = int;
auto too_few(const ClusterCoordinator& coordinator) { return coordinator.schedule<add>(1, 2); }
auto remote(const ClusterCoordinator& coordinator, const RemoteValue<int>& value) {
  return coordinator.schedule<half>(value.get());
}
auto made(const ClusterCoordinator& coordinator) { return coordinator.create_per_worker<half>(4); }
#endif

void note(const Handle& /*handle*/) {}

Kept keep(const cohort::Variable& variable) {
#ifdef MISUSE
  return variable;
#else
  return variable.read();
#endif
}
auto returned(const ClusterCoordinator& coordinator, const cohort::Variable& variable) {
  return coordinator.schedule<keep>(variable);
}

auto sent(const ClusterCoordinator& coordinator, const Handle& handle) {
  return coordinator.schedule<note>(handle);
}
auto element(const ClusterCoordinator& coordinator, const PerWorker<Element>& elements) {
  return coordinator.schedule<half>(elements);
}
auto converted(const ClusterCoordinator& coordinator, const Number& number) {
  return coordinator.schedule<half>(number);
}
