// What the tests of datasets share: elements, and what came out of a dataset as numbers.
#pragma once

#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <cohort/input/dataset.h>
#include <cohort/input/distribute.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"

namespace cohort::testing {

struct Example {
  Tensor image;
  Tensor label;
};
COHORT_FIELDS(Example, image, label)

/// 0 to rows-1.
inline Tensor range(std::int64_t rows) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from(std::span<const std::int64_t>(values), {rows});
}

/// One scalar per element: 0, 1, ..., rows-1.
inline Dataset<Tensor> range_dataset(std::int64_t rows) {
  return Dataset<Tensor>::from_tensor_slices(range(rows));
}

/// The same from a function, so that their number is unknown without reading them.
inline Dataset<Tensor> counted_dataset(std::int64_t rows) {
  return Dataset<Tensor>::from_generator([rows] {
    return [rows, next = std::int64_t{0}]() mutable -> std::optional<Tensor> {
      if (next == rows) return std::nullopt;
      return Tensor::scalar(next++);
    };
  });
}

/// The same, of which row `damaged` cannot be read.
inline Dataset<Tensor> damaged_dataset(std::int64_t rows, std::int64_t damaged) {
  return counted_dataset(rows).map([damaged](const Tensor& row) {
    if (row.item<std::int64_t>() == damaged) throw DataLoss("row {} is damaged", damaged);
    return row;
  });
}

inline std::vector<std::int64_t> elements_of(const Tensor& tensor) {
  const auto values = tensor.span<std::int64_t>();
  return {values.begin(), values.end()};
}

using Rows = std::vector<std::int64_t>;
using Steps = std::vector<Rows>;

/// One pass: the rows of each element.
inline Steps steps_of(const Dataset<Tensor>& dataset) {
  Steps steps;
  for (const Tensor& batch : dataset) steps.push_back(elements_of(batch));
  return steps;
}

/// One pass over scalars, or over batches, one after the other.
inline Rows pass_of(const Dataset<Tensor>& dataset) {
  Rows rows;
  for (const Tensor& element : dataset) {
    const auto values = elements_of(element);
    rows.insert(rows.end(), values.begin(), values.end());
  }
  return rows;
}

/// What `next()` gave, in words: values, `!` for an error, up to the end or `most` calls.
inline std::string outcomes_of(const Dataset<Tensor>& dataset, int most = 100) {
  const auto elements = dataset.node()->iterate(detail::Pass(0));
  std::string outcomes;
  for (int call = 0; call < most; ++call) {
    try {
      const auto element = elements->next();
      if (!element) return outcomes + ".";
      for (const std::int64_t value : elements_of(*element)) outcomes += std::to_string(value) + " ";
    } catch (const std::runtime_error&) {
      outcomes += "! ";
    }
  }
  return outcomes;
}

/// Hands a scalar on, but throws for one that is `bad`.
inline auto failing_at(std::int64_t bad) {
  return [bad](const Tensor& element) {
    if (element.item<std::int64_t>() == bad) throw std::runtime_error("a bad element");
    return element;
  };
}

inline Tensor plus(const Tensor& element, std::int64_t more) {
  return Tensor::scalar(element.item<std::int64_t>() + more);
}

// What workers and their replicas get of a distributed dataset, as numbers.

/// For each step, the rows that each replica of a worker got.
using PartSteps = std::vector<Steps>;

[[nodiscard]] inline Steps rows_by_replica(const PerReplica<Tensor>& batches) {
  Steps rows;
  for (const Tensor& part : batches.components()) rows.push_back(elements_of(part));
  return rows;
}

/// One pass.
[[nodiscard]] inline PartSteps parts_of(const DistributedDataset<Tensor>& dataset) {
  PartSteps steps;
  for (const PerReplica<Tensor>& batches : dataset) steps.push_back(rows_by_replica(batches));
  return steps;
}

[[nodiscard]] inline Strategy worker_strategy(Bootstrap& worker, int devices) {
  return MultiWorkerMirroredStrategy(worker, {.timeout_seconds = 60}, cpu_devices(devices));
}

using Distribution = std::function<DistributedDataset<Tensor>(const Strategy& strategy, int worker)>;

/// One pass of each worker, by rank; workers are threads.
[[nodiscard]] inline std::vector<PartSteps> parts_by_worker(int workers, int devices,
                                                            const Distribution& distribution) {
  std::vector<PartSteps> by_worker(static_cast<std::size_t>(workers));
  for_each_worker(workers, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, devices);
    by_worker[static_cast<std::size_t>(worker.rank())] = parts_of(distribution(strategy, worker.rank()));
  });
  return by_worker;
}

}  // namespace cohort::testing
