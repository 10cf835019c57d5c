// The families of recorded lines about training.
#pragma once

#include <vector>

#include "../scenario.h"

namespace cohort::conformance {

[[nodiscard]] std::vector<Family> batch_norm_families();
[[nodiscard]] std::vector<Family> callback_families();
[[nodiscard]] std::vector<Family> callback_order_families();
[[nodiscard]] std::vector<Family> estimator_families();
[[nodiscard]] std::vector<Family> fit_checkpoint_families();
[[nodiscard]] std::vector<Family> event_format_families();
[[nodiscard]] std::vector<Family> fit_families();
[[nodiscard]] std::vector<Family> logger_families();
[[nodiscard]] std::vector<Family> loss_families();
[[nodiscard]] std::vector<Family> schedule_families();
[[nodiscard]] std::vector<Family> scripted_callback_families();
[[nodiscard]] std::vector<Family> metric_families();
[[nodiscard]] std::vector<Family> first_metric_families();
[[nodiscard]] std::vector<Family> optimizer_families();
[[nodiscard]] std::vector<Family> summary_families();

}  // namespace cohort::conformance
