#include <cohort/input/detail/step_agreement.h>

#include <algorithm>
#include <limits>
#include <string>

namespace cohort::detail {
namespace {

constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kUnknown = -1;

std::int64_t as_number(Cardinality steps) {
  if (steps.is_infinite()) return kForEver;
  return steps.is_known() ? steps.count() : kUnknown;
}

std::string to_text(std::int64_t steps) {
  if (steps == kForEver) return "infinitely many";
  return steps == kUnknown ? "an unknown number of" : std::to_string(steps);
}

}  // namespace

StepAgreement::StepAgreement(StrategyExtended& extended, Cardinality own_steps, bool shared)
    : extended_(extended), ends_together_(extended.workers() == 1) {
  if (extended.workers() == 1) return;
  const std::int64_t own = as_number(own_steps);
  Tensor bounds = Tensor::from({own, -own});
  extended.workers_communicator().all_reduce(bounds, ReduceOp::kMin);
  const std::int64_t fewest = bounds.span<std::int64_t>()[0];
  const std::int64_t most = -bounds.span<std::int64_t>()[1];
  // A worker that does not know its steps may lack a file that the others have; reading it will fail and say
  // so.
  if (shared && fewest != kUnknown && fewest != most) {
    throw InvalidArgument(
        "worker {} has {} batches, but the workers have between {} and {}: with AutoShardPolicy::kData "
        "(which kAuto becomes for a dataset without files) every worker reads the same dataset; "
        "use kOff for a dataset that is already sharded",
        extended.first_replica_id() / extended.local_replicas(), to_text(own), to_text(fewest),
        to_text(most));
  }
  ends_together_ = shared && fewest == most;
  known_steps_ = std::max<std::int64_t>(fewest, 0);
  flags_ = Tensor::zeros({3}, DType::kInt64);
}

void StepAgreement::refuse_early_end(std::int64_t step) const {
  throw InvalidArgument(
      "the data of worker {} ended after {} steps, but all workers were to have {}: an endless repeat() of a "
      "shard without elements is empty; give every worker at least one element, or end the pass with take()",
      extended_.first_replica_id() / extended_.local_replicas(), step, to_text(known_steps_));
}

StepDecision StepAgreement::decide(const StepOffer& own) {
  Communicator& workers = extended_.workers_communicator();
  const std::span<std::int64_t> flags = flags_.span<std::int64_t>();
  // The first worker that has data has the greatest of these numbers.
  flags[0] = own.has_data ? workers.size() - workers.rank() : 0;
  flags[1] = own.needs_form ? 1 : 0;
  flags[2] = own.cannot_be_empty ? 1 : 0;
  workers.all_reduce(flags_, ReduceOp::kMax);
  StepDecision decision{.goes_on = flags[0] > 0 && flags[2] == 0};
  if (decision.goes_on && flags[1] > 0) decision.form_from = workers.size() - static_cast<int>(flags[0]);
  return decision;
}

std::vector<TensorSpec> StepAgreement::share_form(std::span<const TensorSpec> own, int from) {
  Communicator& workers = extended_.workers_communicator();
  std::vector<std::int64_t> numbers;  // of each spec: dtype, rank, extents
  for (const TensorSpec& spec : own) {
    numbers.insert(numbers.end(), {static_cast<std::int64_t>(spec.dtype), spec.shape.rank()});
    for (int axis = 0; axis < spec.shape.rank(); ++axis) numbers.push_back(spec.shape[axis]);
  }
  const Tensor length = Tensor::scalar(static_cast<std::int64_t>(numbers.size()));
  workers.broadcast(length, from);
  numbers.resize(static_cast<std::size_t>(length.item<std::int64_t>()));
  const Tensor packed = Tensor::from(std::span<const std::int64_t>(numbers), {length.item<std::int64_t>()});
  workers.broadcast(packed, from);

  std::vector<TensorSpec> specs;
  std::span<const std::int64_t> rest = packed.span<std::int64_t>();
  while (!rest.empty()) {
    const auto rank = static_cast<std::size_t>(rest[1]);
    const auto extents = rest.subspan(2, rank);
    specs.push_back({.shape = Shape(std::vector<std::int64_t>(extents.begin(), extents.end())),
                     .dtype = static_cast<DType>(rest[0])});
    rest = rest.subspan(2 + rank);
  }
  return specs;
}

}  // namespace cohort::detail
