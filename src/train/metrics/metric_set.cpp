#include <cohort/train/metrics/metric_set.h>

#include <algorithm>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>

#include "train/metrics/metric_state.h"

namespace cohort {
namespace {

void require_fit(std::span<const MetricHandle> metrics) {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    for (std::size_t other = 0; other < i; ++other) {
      if (metrics[i].name() == metrics[other].name())
        throw InvalidArgument("MetricSet: two metrics have the name '{}'; give them different ones",
                              metrics[i].name());
    }
    if (metrics[i].state()->strategy() == metrics.front().state()->strategy()) continue;
    throw InvalidArgument("MetricSet: the metrics '{}' and '{}' belong to different strategies",
                          metrics.front().name(), metrics[i].name());
  }
}

std::string names_of(std::span<const MetricHandle> metrics) {
  std::string names;
  for (const MetricHandle& metric : metrics) names += (names.empty() ? "" : ", ") + metric.name();
  return names;
}

}  // namespace

double MetricResult::value() const {
  if (values.size() == 1) return values.front();
  throw InvalidArgument("the result of the metric '{}' has {} numbers, not one", name, values.size());
}

MetricSet::MetricSet(std::vector<MetricHandle> metrics) : metrics_(std::move(metrics)) {
  require_fit(metrics_);
  std::size_t sums = 0;
  std::size_t numbers = 0;
  Fingerprint fingerprint;
  for (const MetricHandle& metric : metrics_) {
    sums += metric.state()->sums();
    numbers += metric.state()->rule().result_shape().elements();
    fingerprint.add(fingerprint_of(*metric.state()));
  }
  fingerprint_ = fingerprint.value();
  sums_ = Tensor::zeros({static_cast<std::int64_t>(sums)}, DType::kFloat64);
  values_.resize(numbers);
  std::span<const double> rest = values_;
  for (const MetricHandle& metric : metrics_) {
    const std::size_t count = metric.state()->rule().result_shape().elements();
    results_.push_back({metric.name(), rest.first(count)});
    rest = rest.subspan(count);
  }
}

std::span<const MetricResult> MetricSet::results() {
  if (metrics_.empty()) return {};
  const std::span<double> sums = sums_.span<double>();
  std::size_t begin = 0;
  for (const MetricHandle& metric : metrics_) {
    metric.state()->require_cross_replica("results");
    metric.state()->add_up(sums.subspan(begin));
    begin += metric.state()->sums();
  }
  add_up_over_workers(metrics_.front().state()->strategy(), fingerprint_, sums_,
                      [&] { return names_of(metrics_); });
  std::span<const double> rest = sums;
  std::span<double> values = values_;
  for (const MetricHandle& metric : metrics_) {
    const MetricRule& rule = metric.state()->rule();
    const std::size_t count = rule.result_shape().elements();
    rule.compute(rest.first(metric.state()->sums()), values.first(count));
    rest = rest.subspan(metric.state()->sums());
    values = values.subspan(count);
  }
  return results_;
}

void MetricSet::reset_state() const {
  for (const MetricHandle& metric : metrics_) metric.reset_state();
}

}  // namespace cohort
