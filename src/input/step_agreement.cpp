#include <cohort/input/detail/step_agreement.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/fingerprint.h>

#include "strategy/collective_scopes.h"

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

std::string name_of_worker(std::span<const MemberInfo> workers, std::size_t worker) {
  return fmt::format("worker {} (host {})", worker, workers[worker].host);
}

std::string_view name_of(AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::kOff: return "kOff";
    case AutoShardPolicy::kAuto: return "kAuto";
    case AutoShardPolicy::kFile: return "kFile";
    case AutoShardPolicy::kData: return "kData";
    case AutoShardPolicy::kHint: return "kHint";
  }
  return "unknown";
}

/// How a worker reads, in words.
std::string manner_of(const PassPlan& plan) {
  if (!plan.policy) return "that a function has made";
  const std::string policy = fmt::format("by AutoShardPolicy::{}", name_of(*plan.policy));
  return plan.batch_elements ? fmt::format("in batches of {}, {}", *plan.batch_elements, policy) : policy;
}

/// The numbers of steps of all workers, which agree on how they read.
std::vector<std::int64_t> steps_of_all(StrategyExtended& extended, const PassPlan& own) {
  const std::uint64_t manner = Fingerprint()
                                   .add(fingerprint_of("pass over a dataset"))
                                   .add(own.policy ? static_cast<std::uint64_t>(*own.policy) + 1 : 0)
                                   .add(static_cast<std::uint64_t>(own.batch_elements.value_or(kUnknown)))
                                   .value();
  PurposeOf purpose(manner, Caller::kWorker, [&] {
    return PurposeWords{fmt::format("begins a pass over a distributed dataset {}", manner_of(own))};
  });
  WorkersCollective collective(extended, purpose);
  Communicator& workers = extended.workers_communicator();
  const Tensor all = Tensor::zeros({workers.size()}, DType::kInt64);
  workers.all_gather(Tensor::from({as_number(own.steps)}), all);
  collective.end();
  const std::span<const std::int64_t> steps = all.span<std::int64_t>();
  return {steps.begin(), steps.end()};
}

/// For workers that all read the same. The message is the same on all of them.
void require_same_steps(std::span<const MemberInfo> workers, std::span<const std::int64_t> steps) {
  // A worker that does not know its steps may lack a file that the others have; reading it will fail and say
  // so.
  const bool alike = std::ranges::count(steps, steps.front()) == std::ssize(steps);
  if (alike || std::ranges::find(steps, kUnknown) != steps.end()) return;
  const std::int64_t usual =
      *std::ranges::max_element(steps, {}, [&](std::int64_t own) { return std::ranges::count(steps, own); });
  const auto has = [&](std::size_t worker) {
    return fmt::format("{} has {} batches", name_of_worker(workers, worker), to_text(steps[worker]));
  };
  std::vector<std::string> each;
  for (std::size_t worker = 0; worker < steps.size(); ++worker)
    if (steps[worker] != usual) each.push_back(has(worker));
  const auto others = std::ranges::count(steps, usual);
  const auto first = static_cast<std::size_t>(std::ranges::find(steps, usual) - steps.begin());
  each.push_back(others == 1 ? has(first)
                             : fmt::format("each of the other {} has {}", others, to_text(usual)));
  throw InvalidArgument(
      "{}: with AutoShardPolicy::kData (which kAuto becomes for a dataset without files) every worker reads "
      "the "
      "same dataset; use kOff for a dataset that is already sharded",
      fmt::join(each, ", "));
}

}  // namespace

StepAgreement::StepAgreement(StrategyExtended& extended, const PassPlan& own)
    : extended_(extended), ends_together_(extended.workers() == 1) {
  if (extended.workers() == 1) return;
  const std::vector<std::int64_t> steps = steps_of_all(extended, own);
  if (own.shared) require_same_steps(extended.workers_communicator().members(), steps);
  const std::int64_t fewest = *std::ranges::min_element(steps);
  ends_together_ = own.shared && std::ranges::max(steps) == fewest;
  // What never ends may do so all the same: an endless repeat() of nothing is empty.
  compares_ends_ = ends_together_ && (fewest == kUnknown || fewest == kForEver);
  known_steps_ = std::max<std::int64_t>(fewest, 0);
  flags_ = Tensor::zeros({3}, DType::kInt64);
}

void StepAgreement::refuse_early_end(std::int64_t step) const {
  const Communicator& workers = extended_.workers_communicator();
  throw InvalidArgument(
      "the data of {} ended after {} steps, but all workers were to have {}: an endless repeat() of a shard "
      "without elements is empty; give every worker at least one element, or end the pass with take()",
      name_of_worker(workers.members(), static_cast<std::size_t>(workers.rank())), step,
      to_text(known_steps_));
}

void StepAgreement::end(std::int64_t steps) {
  if (!compares_ends_) return;
  PurposeOf purpose(
      Fingerprint().add(fingerprint_of("end of a pass")).add(static_cast<std::uint64_t>(steps)).value(),
      Caller::kWorker, [steps] {
        return PurposeWords{fmt::format("ends its pass over a distributed dataset after {} steps", steps)};
      });
  WorkersCollective collective(extended_, purpose);
  extended_.workers_communicator().barrier();
  collective.end();
}

StepDecision StepAgreement::decide(const StepOffer& own) {
  Communicator& workers = extended_.workers_communicator();
  const std::span<std::int64_t> flags = flags_.span<std::int64_t>();
  // The first worker that has data has the greatest of these numbers.
  flags[0] = own.has_data ? workers.size() - workers.rank() : 0;
  flags[1] = own.needs_form ? 1 : 0;
  flags[2] = own.cannot_be_empty ? 1 : 0;
  PurposeOf purpose(fingerprint_of("step of a dataset"), Caller::kWorker,
                    [] { return PurposeWords{"takes a step of a distributed dataset"}; });
  WorkersCollective collective(extended_, purpose);
  workers.all_reduce(flags_, ReduceOp::kMax);
  collective.end();
  StepDecision decision{.goes_on = flags[0] > 0 && flags[2] == 0};
  if (decision.goes_on && flags[1] > 0) decision.form_from = workers.size() - static_cast<int>(flags[0]);
  return decision;
}

std::vector<TensorSpec> StepAgreement::share_form(std::span<const TensorSpec> own, int from) {
  Communicator& workers = extended_.workers_communicator();
  PurposeOf purpose(fingerprint_of("form of a dataset's batches"), Caller::kWorker,
                    [] { return PurposeWords{"asks for the form of a distributed dataset's batches"}; });
  WorkersCollective collective(extended_, purpose);
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
  collective.end();

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
