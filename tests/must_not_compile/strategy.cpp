// Says: axes belong to one tensor: reduce the tensors of a structure one by one
// Says: gather concatenates tensors: wrap numbers in tensors of one axis
// Says: all_gather concatenates tensors: wrap numbers in tensors of one axis
// Says: reduce_scatter takes tensors apart: numbers go by all_reduce
// Says: write Variable({.initial_value = value})
// Says: optionals, or aggregates, whose fields COHORT_FIELDS(Type, fields...) names
#include <utility>

#include <cohort/strategy/strategy.h>

using cohort::PerReplica;
using cohort::ReduceOp;
using cohort::ReplicaContext;
using cohort::Strategy;
using cohort::Tensor;
using cohort::Variable;

struct Metrics {
  Tensor loss;
  Tensor hits;
};

#ifdef MISUSE
using Reduced = std::pair<Tensor, Tensor>;
using Value = float;
#else
using Reduced = Tensor;
using Value = Tensor;
COHORT_FIELDS(Metrics, loss, hits)
#endif

Tensor reduced(const Strategy& strategy, const PerReplica<Reduced>& value) {
  return strategy.reduce(ReduceOp::kSum, value, {0});
}
Metrics reduced(const Strategy& strategy, const PerReplica<Metrics>& value) {
  return strategy.reduce(ReduceOp::kSum, value);
}
Metrics reduced(const ReplicaContext& replica, const Metrics& value) {
  return replica.all_reduce(ReduceOp::kSum, value);
}
#ifdef MISUSE
Variable made(const Tensor& value) { return Variable(value); }
#else
Variable made(const Tensor& value) { return Variable({.initial_value = value}); }
#endif
auto gathered(const Strategy& strategy, const PerReplica<Value>& value) { return strategy.gather(value, 0); }
Value gathered(const ReplicaContext& replica, const Value& value) { return replica.all_gather(value, 0); }
Value scattered(const ReplicaContext& replica, const Value& value, const Value& part) {
  return replica.reduce_scatter(ReduceOp::kSum, value, part, 0);
}
