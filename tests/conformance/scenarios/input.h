// What the scenarios of the input pipeline share.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

#include <cohort/input/distribute.h>

#include "common.h"

namespace cohort::conformance {

inline constexpr std::string_view kBalanced = "no replica is idle";
inline constexpr std::string_view kSameOptions = "input options mean the same everywhere";

/// The local replicas' parts of one step.
template <class Element>
[[nodiscard]] Json show_step(const PerReplica<Element>& batches) {
  Json parts = Json::array();
  for (const Element& part : batches.components()) parts.push_back(show(part));
  return parts;
}

/// One pass: the steps, and what stands for the end.
template <class Element>
[[nodiscard]] Json show_pass(const DistributedDataset<Element>& dataset) {
  Json steps = Json::array();
  for (const PerReplica<Element>& batches : dataset) steps.push_back(show_step(batches));
  steps.push_back("END");
  return steps;
}

template <class Element>
[[nodiscard]] Json distributed(const Layout& l, const Dataset<Element>& dataset,
                               const DistributeOptions& options = {}) {
  return show_pass(l.strategy().distribute_dataset(dataset, options));
}

[[nodiscard]] inline Dataset<Tensor> numbers(std::int64_t count) { return Dataset<Tensor>::range(count); }

/// The rows `begin` to `end - 1` of the numbers.
[[nodiscard]] inline Json number_list(std::int64_t begin, std::int64_t end) {
  Json list = Json::array();
  for (std::int64_t number = begin; number < end; ++number) list.push_back(number);
  return list;
}

/// The steps of numbers(count).batch(batch) when each batch is split among the layout's replicas in
/// nearly equal parts.
[[nodiscard]] inline Json balanced_steps(const Layout& l, std::int64_t count, std::int64_t batch,
                                         bool drop_remainder = false) {
  Json steps = Json::array();
  for (std::int64_t begin = 0; begin < count; begin += batch) {
    const std::int64_t rows = std::min(batch, count - begin);
    if (drop_remainder && rows < batch) break;
    Json parts = Json::array();
    std::int64_t next = begin;
    for (int replica = 0; replica < l.replicas(); ++replica) {
      const std::int64_t extra = replica < rows % l.replicas() ? 1 : 0;
      const std::int64_t end = next + rows / l.replicas() + extra;
      parts.push_back(number_list(next, end));
      next = end;
    }
    steps.push_back(parts);
  }
  steps.push_back("END");
  return steps;
}

/// What the original calls the spec of a dataset of vectors of int64.
[[nodiscard]] inline Json spec_of(const Layout& l, const DistributedDataset<Tensor>& dataset) {
  const std::optional<std::int64_t> rows = dataset.per_replica_batch_size();
  const std::string spec = fmt::format("TensorSpec(shape=({},), dtype=tf.int64, name=None)",
                                       rows ? std::to_string(*rows) : "None");
  if (l.is_default() || l.is_one_device()) return spec;
  std::string specs;
  for (std::size_t i = 0; i < l.local_ids().size(); ++i) specs += (i > 0 ? ", " : "") + spec;
  return fmt::format("PerReplicaSpec({}{})", specs, l.local_ids().size() == 1 ? "," : "");
}

}  // namespace cohort::conformance
