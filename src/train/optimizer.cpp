#include <cohort/train/optimizer.h>

#include <cmath>

#include <cohort/strategy/strategy.h>

namespace cohort {
namespace {

void require_fitting(const GradientAndVariable& pair) {
  const Variable& variable = pair.variable;
  if (pair.gradient.shape() != variable.shape() || pair.gradient.dtype() != variable.dtype()) {
    throw InvalidArgument("apply_gradients: the gradient of variable '{}' is {}, but the variable is {}{}",
                          variable.name(), describe(pair.gradient), to_string(variable.dtype()),
                          to_string(variable.shape()));
  }
  if (!is_floating(variable.dtype())) {
    throw InvalidArgument("apply_gradients: variable '{}' is {}; only floating variables can be optimized",
                          variable.name(), to_string(variable.dtype()));
  }
}

/// What the variables are updated with.
std::vector<Tensor> aggregate(const ReplicaContext& replica, const std::vector<Tensor>& gradients,
                              GradientAggregation aggregation) {
  switch (aggregation) {
    case GradientAggregation::kSum: return replica.all_reduce(ReduceOp::kSum, gradients);
    case GradientAggregation::kSumInPlace: replica.all_reduce_in_place(ReduceOp::kSum, gradients); break;
    case GradientAggregation::kNone: break;
  }
  return gradients;
}

}  // namespace

void Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients,
                                GradientAggregation aggregation) const {
  const ReplicaContext* replica = get_replica_context();
  if (replica == nullptr) {
    throw WrongContext(
        "apply_gradients was called in cross-replica context; call it inside the function given to run()");
  }
  std::vector<Tensor> values;
  for (const GradientAndVariable& pair : gradients) {
    require_fitting(pair);
    values.push_back(pair.gradient);
  }
  const std::vector<Tensor> sums = aggregate(*replica, values, aggregation);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    update(gradients[i].variable.replica_component(), sums[i]);
}

Sgd::Sgd(SgdOptions options) : options_(options) {
  if (!std::isfinite(options.learning_rate) || options.learning_rate <= 0) {
    throw InvalidArgument("Sgd: learning_rate is {}; it must be a positive number", options.learning_rate);
  }
}

void Sgd::update(const Tensor& variable, const Tensor& gradient) const {
  visit_dtype(variable.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>) {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const auto rate = static_cast<Wide>(options_.learning_rate);
      const std::span<T> values = variable.span<T>();
      const std::span<const T> slopes = gradient.span<T>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = T(static_cast<Wide>(values[i]) - rate * static_cast<Wide>(slopes[i]));
      }
    }
  });
}

}  // namespace cohort
