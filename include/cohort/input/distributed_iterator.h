// A DistributedIterator is one pass over a distributed dataset: each step gives, on every worker, the batches
// of that worker's replicas. All workers take the same number of steps; a worker whose data has ended gets
// empty batches until the data of all has ended. When a worker cannot read on, the step ends on every worker
// with its error. One thread uses an iterator: the one that drives the strategy.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/base/input_wait.h>
#include <cohort/input/detail/local_steps.h>
#include <cohort/input/detail/step_agreement.h>
#include <cohort/input/pass.h>
#include <cohort/strategy/strategy.h>

namespace cohort {

template <class Element>
class DistributedIterator {
 public:
  /// For DistributedDataset, which makes iterators. `places`: the device of each local replica's batches.
  /// `fills_up`: steps for which some replicas have no data are given, with empty batches for these, as long
  /// as batches can be empty.
  DistributedIterator(std::unique_ptr<detail::LocalSteps<Element>> steps, detail::StepAgreement agreement,
                      Strategy strategy, const DatasetPosition& position, std::vector<Device> places,
                      bool fills_up)
      : steps_(std::move(steps)),
        agreement_(std::move(agreement)),
        strategy_(std::move(strategy)),
        position_(position),
        places_(std::move(places)),
        fills_up_(fills_up) {}

  /// The next step's batches. @throws OutOfRange at the end; WrongContext inside a replica: ask outside,
  /// and pass the batches to run().
  [[nodiscard]] PerReplica<Element> get_next();

  /// The same; nothing at the end, and from then on.
  [[nodiscard]] std::optional<PerReplica<Element>> get_next_as_optional();

  /// Where this iterator stands: a pass that begins there starts with what get_next would give.
  [[nodiscard]] DatasetPosition position() const noexcept { return position_; }

 private:
  [[nodiscard]] bool everybody_goes_on(const std::optional<detail::LocalParts<Element>>& parts);
  [[nodiscard]] bool can_be_empty() const { return fills_up_ && form_ && form_->can_be_empty(); }
  void learn_form(int from);
  [[nodiscard]] PerReplica<Element> filled_up(detail::LocalParts<Element> parts) const;

  std::unique_ptr<detail::LocalSteps<Element>> steps_;  // null after the end
  detail::StepAgreement agreement_;
  Strategy strategy_;
  DatasetPosition position_;
  std::vector<Device> places_;
  bool fills_up_;
  std::optional<detail::PartForm<Element>> form_;  // once there was a batch
};

// ---- implementation of the templates ----

template <class Element>
PerReplica<Element> DistributedIterator<Element>::get_next() {
  std::optional<PerReplica<Element>> batches = get_next_as_optional();
  if (!batches) throw OutOfRange("the distributed dataset ended after {} steps", position_.elements);
  return std::move(*batches);
}

template <class Element>
std::optional<PerReplica<Element>> DistributedIterator<Element>::get_next_as_optional() {
  strategy_.extended().require_cross_replica("iterating a distributed dataset");
  if (steps_ == nullptr) return std::nullopt;
  auto parts = strategy_.extended().or_abort_workers([&] {
    const InputWait wait;
    try {
      return steps_->next();
    } catch (...) {
      ++position_.elements;  // the next call gives the following step
      throw;
    }
  });
  if (!form_ && parts) {
    const auto first = std::ranges::find_if(*parts, [](const auto& part) { return part.has_value(); });
    form_.emplace(**first);
  }
  if (!everybody_goes_on(parts)) {
    steps_.reset();
    return std::nullopt;
  }
  ++position_.elements;
  return filled_up(std::move(parts).value_or(detail::LocalParts<Element>()));
}

/// Whether there is a step: `parts` are this worker's contribution to it.
template <class Element>
bool DistributedIterator<Element>::everybody_goes_on(
    const std::optional<detail::LocalParts<Element>>& parts) {
  const bool has_data = parts.has_value();
  const bool is_whole =
      has_data && std::ranges::all_of(*parts, [](const auto& part) { return part.has_value(); });
  const bool is_known = agreement_.is_known(position_.elements);
  if (agreement_.ends_together() || is_known) {
    const bool goes_on = is_whole || (has_data && can_be_empty());
    if (!goes_on && !has_data && !agreement_.ends_together()) {
      // The others go on without asking.
      strategy_.extended().or_abort_workers([&] { agreement_.refuse_early_end(position_.elements); });
    }
    if (!goes_on) agreement_.end(position_.elements);
    return goes_on;
  }
  const detail::StepDecision decision = agreement_.decide({
      .has_data = has_data,
      .needs_form = !is_whole && fills_up_ && !form_,
      .cannot_be_empty = !is_whole && (form_ || !fills_up_) && !can_be_empty(),
  });
  if (decision.form_from) {
    learn_form(*decision.form_from);
    return can_be_empty();
  }
  return decision.goes_on;
}

template <class Element>
void DistributedIterator<Element>::learn_form(int from) {
  const std::vector<TensorSpec> specs =
      agreement_.share_form(form_ ? form_->specs() : std::span<const TensorSpec>(), from);
  if (form_) return;
  strategy_.extended().or_abort_workers([&] { form_.emplace(std::span<const TensorSpec>(specs)); });
}

template <class Element>
PerReplica<Element> DistributedIterator<Element>::filled_up(detail::LocalParts<Element> parts) const {
  parts.resize(places_.size());
  std::vector<Element> components;
  components.reserve(parts.size());
  for (std::size_t replica = 0; replica < parts.size(); ++replica) {
    if (parts[replica])
      components.push_back(std::move(*parts[replica]));
    else
      components.push_back(form_->without_rows(places_[replica]));
  }
  return PerReplica<Element>(std::move(components), strategy_.num_replicas_in_sync());
}

}  // namespace cohort
