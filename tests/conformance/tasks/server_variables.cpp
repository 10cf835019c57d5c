// Variables on servers, and steps that functions make with them.
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/rms_prop.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/trainer.h>

#include "../scenarios/variables.h"
#include "coordinated.h"
#include "server/client/server_variables.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kZero = "a variable begins at zero";
constexpr std::string_view kOwnState = "an optimizer's state is no variable of the program";
constexpr std::string_view kOwnFit = "fit runs where it is called";
constexpr std::string_view kAdamInDoubles = "Adam corrects its rate in float64";

Json device_of(const Variable& variable) {
  const auto& kept = dynamic_cast<const server::ServerVariable&>(*variable.state());
  return fmt::format("/job:ps/replica:0/task:{}/device:CPU:0", kept.place().server);
}

/// As the lines before left it.
Json numbers_after(const Coordinated& cluster, std::vector<double> before,
                   const std::function<Json(const Variable&)>& function) {
  cluster.numbers.assign(vector(std::move(before)));
  return function(cluster.numbers);
}

Tensor twice(const Variable& numbers) {
  Tensor result = numbers.read();
  for (float& element : result.span<float>()) element *= 2;
  return result;
}

Tensor plus_one(const Tensor& values) {
  Tensor result = values.clone();
  for (float& element : result.span<float>()) element += 1;
  return result;
}

// ---- training: a dense layer of two inputs, the mean of (x w + b - y)^2

struct Gradients {
  float loss = 0;
  Tensor weights;
  float bias = 0;
};

/// x = [[1, 2], [step, -1]], y = [[1], [2]].
Gradients gradients_of(const Tensor& weights, float bias, int step) {
  const auto w = weights.span<float>();
  const auto late = static_cast<float>(step);
  const float first = w[0] + 2 * w[1] + bias - 1;
  const float second = late * w[0] - w[1] + bias - 2;
  return {(first * first + second * second) / 2, tensor({first + late * second, 2 * first - second}, {2, 1}),
          first + second};
}

float subtract_gradients(const Variable& weights, int step) {
  const Gradients gradients = gradients_of(weights.read(), 0, step);
  const Tensor change = gradients.weights.clone();
  for (float& element : change.span<float>()) element *= 0.1F;
  weights.assign_sub(change);
  return gradients.loss;
}

template <class OptimizerType>
float optimize(const Variable& weights, const Variable& bias, int step) {
  const Gradients gradients = gradients_of(weights.read(), bias.read().span<float>()[0], step);
  OptimizerType({.learning_rate = 0.1})
      .apply_gradients({{gradients.weights, weights}, {vector({gradients.bias}), bias}});
  return gradients.loss;
}

Variable initial_weights(const Coordinated& cluster) {
  const auto scope = cluster.strategy().scope();
  return Variable({.name = "w", .initial_value = tensor({0.5, -0.25}, {2, 1})});
}

Json trained(Coordinated& cluster) {
  const Variable weights = initial_weights(cluster);
  std::vector<float> losses;
  losses.reserve(4);
  for (int step = 0; step < 4; ++step)
    losses.push_back(cluster.coordinator().schedule<subtract_gradients>(weights, step).fetch());
  return {{"loss", losses}, {"w", show(weights.read())}};
}

template <class OptimizerType>
Json trained_by(Coordinated& cluster) {
  const Variable weights = initial_weights(cluster);
  const auto scope = cluster.strategy().scope();
  const Variable bias({.name = "b", .initial_value = vector({0.1})});
  std::vector<float> losses;
  double sum = 0;
  for (int step = 0; step < 4; ++step) {
    losses.push_back(cluster.coordinator().schedule<optimize<OptimizerType>>(weights, bias, step).fetch());
    sum += losses.back();
  }
  return {{"loss", losses},
          {"weights", {show(weights.read()), show(bias.read())}},
          {"mean_metric", sum / 4},
          {"iterations", losses.size()},
          {"devices", nullptr}};
}

/// The coordinator's own process trains a number that a server keeps.
Json fitted(Coordinated& cluster) {
  const auto scope = cluster.strategy().scope();
  const Variable number({.name = "fitted", .initial_value = Tensor::scalar(1.0F)});
  Sgd optimizer({.learning_rate = 0.1});
  const auto step = [&](const Tensor& mine) {
    const float error = number.read().item<float>() - 3;
    optimizer.apply_gradients({{Tensor::scalar(2 * error), number}});
    return Tensor::full(mine.shape(), DType::kFloat32, error * error);
  };
  Trainer<Tensor> trainer(cluster.strategy(),
                          {.train = step, .parameters = {number}, .optimizer = &optimizer});
  trainer.fit(Dataset<Tensor>::from_tensor_slices(vector({1, 2})).batch(1), {.epochs = 2});
  return show(number.read());
}

Json without_devices(const Record& record) {
  Json outcome = record.outcome;
  outcome["devices"] = nullptr;
  return outcome;
}

/// By a computation in float64.
Json adam_in_doubles(const Record& /*record*/) {
  return {{"loss", {1.76625, 0.676250631, 0.0451736584, 0.315504198}},
          {"weights", {{{0.790771242}, {0.0382528319}}, {0.426813058}}},
          {"mean_metric", 0.700794622},
          {"iterations", 4},
          {"devices", nullptr}};
}

}  // namespace

std::vector<Family> server_variable_families(Coordinated& cluster) {
  const auto plays = [&](std::string_view pattern, Play play) {
    return line(cluster, pattern, std::move(play));
  };
  return {
      plays("*/var_assign",
            [](Coordinated& c) {
              return show(c.numbers.assign(vector({4, 5, 6})).read());
            }),
      plays("*/var_assign_add",
            [](Coordinated& c) {
              return numbers_after(c, {4, 5, 6}, [](const Variable& numbers) {
                return show(numbers.assign_add(vector({1, 1, 1})).read());
              });
            }),
      plays("*/var_scatter_add",
            [](Coordinated& c) {
              const std::vector<std::int64_t> row{3};
              return show(
                  c.table.scatter_add({tensor({1, 1}, {1, 2}), Tensor::from(row), c.table.shape()}).read());
            }),
      plays("*/var_operator",
            [](Coordinated& c) {
              return numbers_after(c, {5, 6, 7},
                                   [](const Variable& numbers) { return show(plus_one(numbers.read())); });
            }),
      plays("*/var_gradient_closure",
            [](Coordinated& c) {
              return numbers_after(c, {5, 6, 7}, [&](const Variable& numbers) {
                return show(c.coordinator().schedule<twice>(numbers).fetch());
              });
            }),
      plays("*/var_device",
            [](Coordinated& c) {
              return Json{device_of(c.numbers), device_of(c.table), device_of(c.counter)};
            }),
      plays("*/var_type",
            [](Coordinated& c) {
              return Json{c.numbers.state()->is_kept_elsewhere() ? "CachingVariable" : "another",
                          c.numbers.trainable(),
                          fmt::format("VariableAggregation.{}", name_of(c.numbers.aggregation())),
                          fmt::format("VariableSynchronization.{}", name_of(c.numbers.synchronization()))};
            }),
      plays("*/var_wrong_shape", [](Coordinated& c) { return show(c.numbers.assign(vector({1})).read()); }),
      line(cluster, "*/var_initial_value_none",
           [](Coordinated& c) {
             const auto scope = c.strategy().scope();
             return show(Variable({.name = "none"}).read());
           },
           {{"*/var_initial_value_none", kZero, [](const Record& /*record*/) { return Json(0.0); }}}),
      plays("*/var_uninitialized_dtype",
            [](Coordinated& c) {
              const auto scope = c.strategy().scope();
              const Variable doubles({.name = "doubles", .initial_value = Tensor::from({1.0, 2.0})});
              return Json(to_string(doubles.dtype()));
            }),
      plays("*/train_sequential", trained),
      line(cluster, "*/keras_train_SGD", trained_by<Sgd>,
           {{"*/keras_train_SGD", kOwnState, without_devices}}),
      line(cluster, "*/keras_train_RMSprop", trained_by<RmsProp>,
           {{"*/keras_train_RMSprop", kOwnState, without_devices}}),
      line(cluster, "*/keras_train_Adam", trained_by<Adam>,
           {{"*/keras_train_Adam", kAdamInDoubles, adam_in_doubles}}),
      line(cluster, "*/keras_fit", fitted,
           {{"*/keras_fit", kOwnFit, [](const Record& /*record*/) { return Json(2.1808); }}}),
      plays("*/coordinator_again",
            [](Coordinated& c) {
              const ClusterCoordinator again(c.strategy());
              const auto value = c.schedule_add(1);
              again.join();
              return Json(value.is_ready());
            }),
      plays("*/coordinator_strategy",
            [](Coordinated& c) { return Json(c.coordinator().strategy() == c.strategy()); }),
  };
}

}  // namespace cohort::conformance
