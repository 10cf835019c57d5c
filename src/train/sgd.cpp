#include <cohort/train/sgd.h>

#include "require_option.h"
#include "update_kernels.h"

namespace cohort {

Sgd::Sgd(SgdOptions options) : options_(options) {
  require_positive("Sgd", "learning_rate", options.learning_rate);
}

void Sgd::update(const Tensor& variable, std::span<const Tensor> /*slots*/, const Tensor& gradient,
                 std::int64_t /*step*/) const {
  sgd_step(variable, gradient, {.rate = options_.learning_rate});
}

}  // namespace cohort
