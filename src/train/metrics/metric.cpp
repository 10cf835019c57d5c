#include <cohort/train/metrics/metric.h>

#include <algorithm>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/train/metrics/metric_set.h>

#include "metric_state.h"

namespace cohort {
namespace {

constexpr std::size_t kDoublesOfCacheLine = 8;

}  // namespace

MetricState::MetricState(std::string name, std::shared_ptr<const MetricRule> rule)
    : name_(std::move(name)),
      rule_(std::move(rule)),
      strategy_(get_strategy()),
      size_(rule_->sums()),
      // A line is kept free between replicas, wherever the first one begins.
      stride_((size_ / kDoublesOfCacheLine + 2) * kDoublesOfCacheLine),
      shared_(size_) {
  bind(strategy_);
}

void MetricState::bind(const Strategy& strategy) {
  if (current_mode().kind == ContextKind::kReplica && strategy.num_replicas_in_sync() > 1) {
    throw WrongContext(
        "the metric '{}' was made inside a replica, which would have it alone; make it in the scope of the "
        "strategy, and update it inside replicas",
        name_);
  }
  strategy_ = strategy;
  replicas_ = static_cast<std::size_t>(strategy.extended().local_replicas());
  sums_.assign(replicas_ * stride_, 0);
}

int MetricState::running_replica(const char* what) const {
  const ContextMode& mode = current_mode();
  const VariableOwner* const own = &strategy_.extended();
  const bool is_own = mode.strategy == own || mode.kind == ContextKind::kDefault;
  if (is_own && mode.kind == ContextKind::kReplica) return mode.local_replica;
  if (is_own && mode.kind != ContextKind::kUpdate) return -1;
  if (mode.kind == ContextKind::kUpdate) {
    throw WrongContext("{} of the metric '{}' was called inside an update; call it in replicas, or outside",
                       what, name_);
  }
  throw WrongContext(
      "{} of the metric '{}', which belongs to {}, was called under {}; make the metric in the scope of the "
      "strategy that updates it",
      what, name_, own->strategy_name(), mode.strategy->strategy_name());
}

void MetricState::update(const MetricBatch& batch) {
  change([&](std::span<double> sums) { rule_->update(batch, sums); });
}

void MetricState::share_out() {
  const double share = 1.0 / strategy_.num_replicas_in_sync();
  for (std::size_t local = 0; local < replicas_; ++local) {
    const std::span<double> own = replica(local);
    for (std::size_t i = 0; i < size_; ++i) own[i] += shared_[i] * share;
  }
}

void MetricState::reset() {
  const int replica = running_replica("reset_state");
  if (replica >= 0)
    std::ranges::fill(this->replica(static_cast<std::size_t>(replica)), 0.0);
  else
    std::ranges::fill(sums_, 0.0);
}

void MetricState::add_up(std::span<double> total) const {
  std::ranges::copy(std::span(sums_).first(size_), total.begin());
  for (std::size_t local = 1; local < replicas_; ++local)
    for (std::size_t i = 0; i < size_; ++i) total[i] += sums_[local * stride_ + i];
}

void MetricState::require_cross_replica(const char* what) const {
  if (running_replica(what) < 0) return;
  throw WrongContext(
      "{} of metrics was called inside a replica; inside replicas, ask each metric for its result", what);
}

Tensor MetricState::result() {
  Tensor result = Tensor::uninitialized(rule_->result_shape(), DType::kFloat64);
  const int replica = running_replica("result");
  if (replica >= 0) {
    rule_->compute(this->replica(static_cast<std::size_t>(replica)), result.span<double>());
    return result;
  }
  const Tensor total = Tensor::uninitialized({static_cast<std::int64_t>(size_)}, DType::kFloat64);
  add_up(total.span<double>());
  add_up_over_workers(strategy_, fingerprint_of(*this), total, [&] { return name_; });
  rule_->compute(total.span<double>(), result.span<double>());
  return result;
}

std::uint64_t fingerprint_of(const MetricState& metric) {
  return Fingerprint().add(metric.name()).add(metric.sums()).value();
}

MetricHandle::MetricHandle(std::string name, std::shared_ptr<const MetricRule> rule)
    : state_(std::make_shared<MetricState>(std::move(name), std::move(rule))) {}

const std::string& MetricHandle::name() const noexcept { return state_->name(); }
void MetricHandle::reset_state() const { state_->reset(); }
Tensor MetricHandle::result() const { return state_->result(); }
std::span<double> MetricHandle::sums(int local_replica) const noexcept {
  return state_->replica(static_cast<std::size_t>(local_replica));
}
void MetricHandle::bind(const Strategy& strategy) const { state_->bind(strategy); }
void MetricHandle::update(const MetricBatch& batch) const { state_->update(batch); }

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
