#include "dispatch/dispatch.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/binary_metrics.h>
#include <cohort/train/metrics/class_metrics.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/metrics/means.h>
#include <cohort/train/optimizers/sgd.h>

#include "dispatch/allocations.h"
#include "timing.h"

namespace cohort::bench {
namespace {

constexpr int kVariables = 161;  // of ResNet-50
constexpr double kLoopUs = 20'000;
constexpr double kSleepyUs = 2'000;  // after which the threads of idle devices certainly sleep

/// What the original, TensorFlow 2.21.0, took on 2 cores: microseconds, eager, median.
struct Original {
  std::optional<double> one_device;
  std::optional<double> two_devices;

  [[nodiscard]] std::optional<double> on(int devices) const {
    return devices == 1 ? one_device : two_devices;
  }
};
constexpr Original kRun{49, 789};
constexpr Original kRunWithMerge{55, 1098};
constexpr Original kReduce{6.8, 136};
constexpr Original kAllReduce{177, 1982};

/// The same of metrics: of an update in a compiled function, and of a result.
struct MetricCase {
  const char* name;
  Original update;
  Original result;
};
constexpr MetricCase kMean{"Mean", {217, 502}, {139, 1540}};
constexpr MetricCase kAccuracy{"sparse_categorical_accuracy", {235, 310}, {190, 2502}};
constexpr MetricCase kSquaredError{"mean_squared_error", {323, 330}, {157, 2045}};
constexpr MetricCase kPrecision{"precision", {237, 324}, {1725, 7331}};
constexpr MetricCase kAuc{"auc of 200 thresholds", {386, 1699}, {5452, 57'400}};
constexpr MetricCase kIou{"mean_iou of 10 classes", {202, 274}, {11'800, 9825}};

/// Keeps the compiler from leaving out what makes `value`.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

struct Timing {
  std::vector<double> ns;  ///< of each loop
  double allocations = 0;
};

class Dispatch {
 public:
  Dispatch(const DispatchOptions& options, const TickClock& clock)
      : options_(options), clock_(clock), one_(Device::cpu(0)), two_(cpu_devices(2)) {}

  [[nodiscard]] DispatchResult measure();

 private:
  /// Times `call(n)`, which makes n operations; the first loops find out how many last long enough.
  template <class Call>
  [[nodiscard]] Timing time(Call call) const;

  template <class Call>
  void add(std::string operation, const Strategy& strategy, const Original& original, Call call);

  void measure_runs(const Strategy& strategy);
  void measure_cold_run();
  void measure_merges(const Strategy& strategy);
  void measure_reads(const Strategy& strategy);
  void measure_reductions(const Strategy& strategy);
  void measure_step(const Strategy& strategy);
  void measure_metrics(const Strategy& strategy);

  /// Of batches of 64 examples.
  template <class Update>
  void measure_metric(const Strategy& strategy, const MetricCase& figures, const MetricHandle& metric,
                      Update update);

  const DispatchOptions& options_;
  const TickClock& clock_;
  OneDeviceStrategy one_;
  MirroredStrategy two_;
  DispatchResult result_;
};

template <class Call>
Timing Dispatch::time(Call call) const {
  const auto timed = [&](int n) {
    const std::uint64_t start = clock_.now();
    call(n);
    return clock_.microseconds(clock_.now() - start);
  };
  call(1);  // threads start, lists are packed
  int n = 1;
  for (double us = timed(1); us < kLoopUs; us = timed(n))
    n = std::max(2 * n, static_cast<int>(std::min(100.0, 0.9 * kLoopUs / std::max(us, 0.01)) * n));
  Timing timing;
  timing.ns.reserve(static_cast<std::size_t>(options_.loops));
  const std::size_t before = allocations();
  for (int loop = 0; loop < options_.loops; ++loop) timing.ns.push_back(1000 * timed(n) / n);
  timing.allocations = static_cast<double>(allocations() - before) / n / options_.loops;
  return timing;
}

template <class Call>
void Dispatch::add(std::string operation, const Strategy& strategy, const Original& original, Call call) {
  const Timing timing = time(call);
  const int devices = strategy.num_replicas_in_sync();
  result_.rows.push_back({.operation = std::move(operation),
                          .devices = devices,
                          .ns = median(timing.ns),
                          .allocations = timing.allocations,
                          .original_us = original.on(devices)});
}

void Dispatch::measure_runs(const Strategy& strategy) {
  add("run of an empty function", strategy, kRun, [&](int n) {
    for (int i = 0; i < n; ++i) strategy.run([] {});
  });
  add("run with an empty merge_call", strategy, kRunWithMerge, [&](int n) {
    for (int i = 0; i < n; ++i)
      strategy.run([](ReplicaContext& replica) { replica.merge_call([](const Strategy&) {}); });
  });
}

/// The threads of the devices have fallen asleep, as they do while the program does something else.
void Dispatch::measure_cold_run() {
  std::vector<double> ns;
  for (int i = 0; i < 10 * options_.loops; ++i) {
    const std::uint64_t idle = clock_.now();
    while (clock_.microseconds(clock_.now() - idle) < kSleepyUs) continue;
    const std::uint64_t start = clock_.now();
    two_.run([] {});
    ns.push_back(1000 * clock_.microseconds(clock_.now() - start));
  }
  result_.rows.push_back({.operation = "run after a pause", .devices = 2, .ns = median(ns)});
}

void Dispatch::measure_merges(const Strategy& strategy) {
  add("merge_call in a replica", strategy, {}, [&](int n) {
    strategy.run([n](ReplicaContext& replica) {
      for (int i = 0; i < n; ++i) replica.merge_call([](const Strategy&) {});
    });
  });
}

void Dispatch::measure_reads(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const Variable variable({.shape = {16}});
  add("Variable::read in a replica", strategy, {}, [&](int n) {
    strategy.run([&variable, n] {
      for (int i = 0; i < n; ++i) keep(variable.read());
    });
  });
  add("Variable::replica_component", strategy, {}, [&](int n) {
    strategy.run([&variable, n] {
      for (int i = 0; i < n; ++i) keep(variable.replica_component());
    });
  });
}

void Dispatch::measure_reductions(const Strategy& strategy) {
  const auto ones = strategy.run([] { return Tensor::scalar(1.0F); });
  add("reduce of a number", strategy, kReduce, [&](int n) {
    for (int i = 0; i < n; ++i) keep(strategy.reduce(ReduceOp::kSum, ones));
  });
  add("run with an all_reduce of a number", strategy, kAllReduce, [&](int n) {
    const auto step = [](ReplicaContext& replica, const Tensor& one) {
      keep(replica.all_reduce(ReduceOp::kSum, one));
    };
    for (int i = 0; i < n; ++i) strategy.run(step, ones);
  });
}

void Dispatch::measure_step(const Strategy& strategy) {
  const auto scope = strategy.scope();
  std::vector<Variable> variables;
  variables.reserve(kVariables);
  for (int i = 0; i < kVariables; ++i) variables.emplace_back(VariableOptions{.shape = {64}});
  const auto gradients = strategy.run([&] {
    std::vector<GradientAndVariable> pairs;
    pairs.reserve(variables.size());
    for (const Variable& variable : variables)
      pairs.push_back({Tensor::zeros(variable.shape(), variable.dtype()), variable});
    return pairs;
  });
  Sgd optimizer;
  const auto step = [&](const ReplicaContext& replica) {
    const auto own = static_cast<std::size_t>(replica.replica_id_in_sync_group());
    optimizer.apply_gradients(gradients[own], {.aggregation = GradientAggregation::kSumInPlace});
  };
  add("SGD step of 161 variables", strategy, {}, [&](int n) {
    for (int i = 0; i < n; ++i) strategy.run(step);
  });
}

template <class Update>
void Dispatch::measure_metric(const Strategy& strategy, const MetricCase& figures, const MetricHandle& metric,
                              Update update) {
  add(fmt::format("run with an update of {}", figures.name), strategy, figures.update, [&](int n) {
    for (int i = 0; i < n; ++i) strategy.run(update);
  });
  add(fmt::format("result of {}", figures.name), strategy, figures.result, [&](int n) {
    for (int i = 0; i < n; ++i) keep(metric.result());
  });
}

void Dispatch::measure_metrics(const Strategy& strategy) {
  const auto scope = strategy.scope();
  constexpr std::int64_t kExamples = 64;
  const auto numbers = [](const Shape& shape, int modulus) {
    std::vector<float> values(shape.elements());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(7 * i % static_cast<std::size_t>(modulus)) / static_cast<float>(modulus);
    return Tensor::from(values, shape);
  };
  const Tensor scores = numbers({kExamples}, 11);
  const Tensor logits = numbers({kExamples, 10}, 13);
  const Tensor truths = Tensor::from(std::vector<int>(kExamples, 1));
  const Tensor classes = Tensor::from(std::vector<int>(kExamples, 3));
  const Mean mean;
  measure_metric(strategy, kMean, mean, [&] { mean.update_state(scores); });
  const auto measure_labelled = [&](const MetricCase& figures, const Metric& metric, const Tensor& labels,
                                    const Tensor& predictions) {
    measure_metric(strategy, figures, metric, [&] { metric.update_state(labels, predictions); });
  };
  measure_labelled(kAccuracy, metrics::sparse_categorical_accuracy(), classes, logits);
  measure_labelled(kSquaredError, metrics::mean_of(losses::mean_squared_error()), scores, scores);
  measure_labelled(kPrecision, metrics::precision(), truths, scores);
  measure_labelled(kAuc, metrics::auc(), truths, scores);
  measure_labelled(kIou, metrics::mean_iou(10), classes, classes);
}

DispatchResult Dispatch::measure() {
  result_.loops = options_.loops;
  for (const Strategy* strategy : std::initializer_list<const Strategy*>{&one_, &two_}) {
    measure_runs(*strategy);
    if (strategy == &two_) measure_cold_run();
    measure_merges(*strategy);
    measure_reads(*strategy);
    measure_reductions(*strategy);
    measure_step(*strategy);
    measure_metrics(*strategy);
  }
  return std::move(result_);
}

}  // namespace

DispatchResult measure(const DispatchOptions& options, const CommandContext& context) {
  return Dispatch(options, context.clock).measure();
}

}  // namespace cohort::bench
