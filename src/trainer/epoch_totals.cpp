#include <cohort/trainer/detail/epoch_totals.h>

#include <span>

#include <cohort/strategy/replica_context.h>

namespace cohort::detail {
namespace {

template <class T>
double weighted_sum(const Tensor& losses, const std::optional<Tensor>& weights) {
  const std::span<const T> values = losses.span<T>();
  double sum = 0;
  if (!weights) {
    for (const T value : values) sum += static_cast<double>(value);
    return sum;
  }
  const Tensor wide = weights->dtype() == losses.dtype() ? *weights : weights->cast(losses.dtype());
  const std::span<const T> factors = wide.span<T>();
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(factors[i]);
  return sum;
}

double sum_on_host(const Tensor& losses, const std::optional<Tensor>& weights) {
  if (losses.dtype() == DType::kFloat32) return weighted_sum<float>(losses, weights);
  return weighted_sum<double>(losses.dtype() == DType::kFloat64 ? losses : losses.cast(DType::kFloat64),
                              weights);
}

void require_losses_of_examples(const Tensor& losses, const std::optional<Tensor>& weights) {
  if (losses.shape().rank() != 1 || !is_floating(losses.dtype()))
    throw InvalidArgument(
        "a step of the Trainer returned losses {}; it returns one floating loss for each example, [rows], or "
        "a "
        "LossSum",
        describe(losses));
  if (weights && weights->elements() != losses.elements())
    throw InvalidArgument("a step of the Trainer has {} losses, but weights {}; each example has one",
                          losses.elements(), describe(*weights));
}

}  // namespace

LossSum sum_of(const StepOutcome& outcome) {
  if (!outcome.losses) return outcome.sum;
  require_losses_of_examples(*outcome.losses, outcome.weights);
  const double examples = static_cast<double>(outcome.losses->elements());
  if (outcome.losses->device().kind() == DeviceKind::kCpu)
    return {sum_on_host(*outcome.losses, outcome.weights), examples};
  return {sum_on_host(outcome.losses->on_host(), outcome.weights), examples};
}

EpochTotals::EpochTotals(const Strategy& strategy)
    : strategy_(strategy), sums_(static_cast<std::size_t>(strategy.extended().local_replicas())) {}

void EpochTotals::add(const ReplicaContext& replica, const StepOutcome& outcome) {
  const int local = replica.replica_id_in_sync_group() - strategy_.extended().first_replica_id();
  Sums& own = sums_[static_cast<std::size_t>(local)];
  const LossSum part = sum_of(outcome);
  own.loss += part.sum;
  own.examples += part.examples;
}

void EpochTotals::reset() { std::ranges::fill(sums_, Sums{}); }

void EpochTotals::set_logs(Logs& logs) {
  std::vector<Tensor> parts;
  for (const Sums& own : sums_) parts.push_back(Tensor::from({own.loss, own.examples}));
  const Tensor sums =
      strategy_.reduce(ReduceOp::kSum, PerReplica(std::move(parts), strategy_.num_replicas_in_sync()));
  const auto [loss, examples] = std::pair(sums.span<double>()[0], sums.span<double>()[1]);
  logs.set("loss", examples == 0 ? 0 : loss / examples);
}

}  // namespace cohort::detail
