#include <cohort/trainer/callbacks/monitor.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include <cohort/base/log.h>

namespace cohort {
namespace {

bool has_any(std::string_view name, auto words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

bool more_is_better_by_name(std::string_view name) {
  using namespace std::string_view_literals;
  return has_any(name, std::array{"acc"sv, "auc"sv, "precision"sv, "recall"sv, "sensitivity"sv,
                                  "specificity"sv, "iou"sv, "f1"sv, "fbeta"sv, "f_score"sv, "r2"sv,
                                  "cosine_similarity"sv, "true_positives"sv, "true_negatives"sv});
}

bool less_is_better_by_name(std::string_view name) {
  using namespace std::string_view_literals;
  return has_any(name,
                 std::array{"loss"sv, "error"sv, "mae"sv, "mse"sv, "mape"sv, "msle"sv, "entropy"sv, "hinge"sv,
                            "divergence"sv, "poisson"sv, "cosh"sv, "false_positives"sv, "false_negatives"sv});
}

}  // namespace

Monitor::Monitor(std::string name, MonitorMode mode)
    : name_(std::move(name)),
      more_is_better_(
          mode == MonitorMode::kMax ||
          (mode == MonitorMode::kAuto && more_is_better_by_name(name_) && !less_is_better_by_name(name_))),
      is_guessed_(mode == MonitorMode::kAuto && !more_is_better_ && !less_is_better_by_name(name_)) {
  if (name_.empty()) throw InvalidArgument("a callback monitors nothing: name a number of the logs");
}

void Monitor::begin(const Training& training, const char* callback) {
  has_warned_ = false;
  if (is_guessed_ && training.reports())
    logging::warning(
        "{}: whether more or less of '{}' is better does not follow from its name; it takes less "
        "for better. Set mode to say so",
        callback, name_);
}

std::optional<double> Monitor::read(const Logs& logs, const Training& training) {
  if (const double* value = logs.find(name_)) return *value;
  const auto is_of_validation = [](std::string_view name) { return name.starts_with("val_"); };
  std::vector<std::string_view> names;
  for (const auto& [name, value] : logs) names.push_back(name);
  const bool has_validated = std::ranges::any_of(names, is_of_validation);
  const bool waits = is_of_validation(name_) && training.params().validates && !has_validated;
  if (waits || std::exchange(has_warned_, true) || !training.reports()) return std::nullopt;
  logging::warning(
      "a callback monitors '{}', which is not in the logs of this epoch; name one of these: {}{}", name_,
      fmt::join(names, ", "),
      is_of_validation(name_) && !has_validated ? "; names with val_ need validation_data" : "");
  return std::nullopt;
}

}  // namespace cohort
