#include "roles.h"

#include <memory>

#include <cohort/base/error.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>

#include "options.h"

namespace digits {

Roles::Roles(cohort::Bootstrap& session, const std::string& list) : is_chief_(session.is_chief()) {
  if (list.empty()) return;
  const auto resolve = [&](const auto& description) {
    try {
      resolver_.emplace(session, description);
    } catch (const cohort::InvalidArgument& error) {
      throw UsageError(error.what());  // on every rank
    }
  };
  if (list == "TF_CONFIG")
    resolve([] { return std::make_unique<cohort::TfConfigClusterResolver>(); });
  else
    resolve(list);
  is_chief_ = resolver_->bootstrap()->is_chief() &&
              (resolver_->task_type() == "chief" || resolver_->task_type() == "worker");
  if (!resolver_->cluster_spec().has_job("evaluator")) return;
  const bool belongs = is_chief_ || evaluates();
  pair_ = session.split(belongs ? 0 : 1, evaluates() ? 1 : 0);
  // No deadline, since an epoch may take long; the loss of the chief is noticed all the same.
  if (belongs) way_to_evaluator_ = pair_->make_communicator({.timeout_seconds = 0});
}

int Roles::hand_over(std::span<const cohort::Variable> parameters, int epoch) const {
  if (!way_to_evaluator_) return epoch;
  const cohort::Tensor number = cohort::Tensor::scalar(epoch);
  way_to_evaluator_->broadcast(number, 0);
  for (const cohort::Variable& parameter : parameters) {
    const cohort::Tensor value = evaluates() ? parameter.read().clone() : parameter.read();
    way_to_evaluator_->broadcast(value, 0);
    if (evaluates()) parameter.assign(value);
  }
  return number.item<int>();
}

}  // namespace digits
