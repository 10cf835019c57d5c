// Losses of predicted numbers. The loss of a row is the mean over its columns. With y the label, p the
// prediction and e = p - y:
#pragma once

#include <cohort/train/losses/loss.h>

namespace cohort::losses {

/// e^2.
[[nodiscard]] Loss mean_squared_error();
/// |e|; its gradient is 0 where e is.
[[nodiscard]] Loss mean_absolute_error();
/// 100 |e| / max(|y|, 1e-7).
[[nodiscard]] Loss mean_absolute_percentage_error();
/// (log(1 + max(p, 1e-7)) - log(1 + max(y, 1e-7)))^2.
[[nodiscard]] Loss mean_squared_logarithmic_error();
/// log cosh e, without overflow for large e.
[[nodiscard]] Loss log_cosh();
/// e^2 / 2 up to |e| = delta, and delta |e| - delta^2 / 2 beyond [Huber 1964, "Robust Estimation of a
/// Location Parameter"]. @throws InvalidArgument unless delta > 0.
[[nodiscard]] Loss huber(double delta = 1);
/// p - y log(p + 1e-7): the likelihood of a count y of which p are expected.
[[nodiscard]] Loss poisson();
/// Minus the cosine of the angle between the rows, from -1 for one direction to 1; 0 for a row of zeros.
[[nodiscard]] Loss cosine_similarity();

}  // namespace cohort::losses
