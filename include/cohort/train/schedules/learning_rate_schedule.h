// The learning rate as a function of how many steps an optimizer has made: a number, or any function of that.
//
//     optimizer.set_learning_rate(0.01);
//     optimizer.set_learning_rate([](std::int64_t step) { return step < 100 ? 0.1 : 0.01; });
//
// A schedule is pure: the same step has the same rate on every replica, and again after a restart.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort {

class LearningRateSchedule {
 public:
  LearningRateSchedule(double rate) : rate_(rate) {}

  template <class Function>
  requires std::is_invocable_r_v<double, const Function&, std::int64_t> &&
      (!std::same_as<std::remove_cvref_t<Function>, LearningRateSchedule>)
          LearningRateSchedule(Function function)
      : function_(std::move(function)) {}

  /// Of the step after `step` others.
  [[nodiscard]] double operator()(std::int64_t step) const { return function_ ? function_(step) : rate_; }

  /// The rate, if it is one number.
  [[nodiscard]] std::optional<double> constant() const {
    return function_ ? std::nullopt : std::optional(rate_);
  }

 private:
  double rate_ = 0;
  std::function<double(std::int64_t)> function_ = {};
};

}  // namespace cohort
