// Says: axes belong to one tensor: reduce the tensors of a structure one by one
// Says: gather concatenates tensors: wrap numbers in tensors of one axis
// Says: all_gather concatenates tensors: wrap numbers in tensors of one axis
// Says: reduce_scatter takes tensors apart: numbers go by all_reduce
#include <utility>

#include <cohort/strategy/strategy.h>

using cohort::PerReplica;
using cohort::ReduceOp;
using cohort::ReplicaContext;
using cohort::Strategy;
using cohort::Tensor;

#ifdef MISUSE
using Reduced = std::pair<Tensor, Tensor>;
using Value = float;
#else
using Reduced = Tensor;
using Value = Tensor;
#endif

Tensor reduced(const Strategy& strategy, const PerReplica<Reduced>& value) {
  return strategy.reduce(ReduceOp::kSum, value, {0});
}
auto gathered(const Strategy& strategy, const PerReplica<Value>& value) { return strategy.gather(value, 0); }
Value gathered(const ReplicaContext& replica, const Value& value) { return replica.all_gather(value, 0); }
Value scattered(const ReplicaContext& replica, const Value& value, const Value& part) {
  return replica.reduce_scatter(ReduceOp::kSum, value, part, 0);
}
