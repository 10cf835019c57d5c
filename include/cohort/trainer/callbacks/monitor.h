// A Monitor watches one number in the logs of a training, and knows which of two values is the better one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <cohort/trainer/callback.h>

namespace cohort {

enum class MonitorMode {
  kAuto,  ///< by the name: more is better for accuracies, AUC, precision, recall, IoU, F and R2 scores,
          ///< cosine similarities, and counts of true results; less is better for everything else
  kMin,   ///< less is better
  kMax,   ///< more is better
};

class Monitor {
 public:
  /// @throws InvalidArgument for an empty name.
  Monitor(std::string name, MonitorMode mode);

  /// Says in the log how it takes a number whose name does not tell, once, where the training reports.
  void begin(const Training& training, const char* callback);

  /// The number in the logs. Nothing, and a warning that names those that are there, where it is missing.
  [[nodiscard]] std::optional<double> read(const Logs& logs, const Training& training);

  /// Whether `value` is better than `than` by more than `min_delta`. NaN is never better.
  [[nodiscard]] bool is_better(double value, double than, double min_delta = 0) const noexcept {
    return more_is_better_ ? value - min_delta > than : value + min_delta < than;
  }

  [[nodiscard]] bool more_is_better() const noexcept { return more_is_better_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  bool more_is_better_;
  bool is_guessed_;
  bool has_warned_ = false;
};

}  // namespace cohort
