// What every optimizer can do beside its own rule: weight decay, clipping, accumulation, a loss scale,
// averages of the variables, and float32 masters of 16-bit variables.
//
//     Adam optimizer({.learning_rate = 0.01});
//     optimizer.set_update_options({.clip = {.global_norm = 1}, .accumulation_steps = 4});
//
// A step first aggregates the gradients, then divides them by what they are of (examples, accumulated steps,
// the loss scale), clips them, decays the variable, and updates it by the rule.
#pragma once

#include <cstdint>
#include <optional>

namespace cohort {

/// At most one of the limits. A norm is that of all elements' squares [Pascanu, Mikolov and Bengio 2013],
/// summed in float64 and in a fixed order. Where a norm is not finite, all gradients that it is of become
/// NaN, as in TensorFlow: an element that is NaN or infinite shows, and no other one makes a step beyond the
/// limit. A loss scale makes no step then.
struct ClipOptions {
  std::optional<double> value = {};        ///< of each element's size
  std::optional<double> norm = {};         ///< of each variable's gradient
  std::optional<double> global_norm = {};  ///< of all gradients together

  /// Clip what each replica has, before the sum: as Keras does, and dependent on the number of replicas.
  bool each_replica = false;
};

/// The loss is multiplied with `Optimizer::loss_scale()`, so that small 16-bit gradients are not lost
/// [Micikevicius et al. 2018]. A sum that is not finite makes no step, on any replica, and halves the scale.
struct LossScaleOptions {
  double first = 32768;
  std::int64_t steps_to_double = 2000;  ///< so many steps in a row without overflow
};

/// average = momentum * average + (1 - momentum) * variable after each step, from the first one's value on
/// [Polyak and Juditsky 1992].
struct AverageOptions {
  double momentum = 0.99;
  std::int64_t overwrite_every = 0;  ///< every so many steps the variables become their averages; 0 is never
};

struct UpdateOptions {
  /// Taken from each variable before its update: learning_rate * weight_decay * variable [Loshchilov and
  /// Hutter 2019].
  double weight_decay = 0;

  ClipOptions clip = {};

  /// So many calls of `apply_gradients` make one step, with one collective: with the mean of their gradients,
  /// or where examples are given, with that over the examples of all calls. A checkpoint between them does
  /// not hold what was gathered since the step before.
  std::int64_t accumulation_steps = 1;

  std::optional<LossScaleOptions> loss_scale = {};
  std::optional<AverageOptions> average = {};  ///< a slot "average" more

  /// 16-bit variables have a slot "master" more, and all their slots are float32. Steps update the master,
  /// and round it to the variable.
  bool float32_masters = false;
};

}  // namespace cohort
