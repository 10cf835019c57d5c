#include <cohort/train/metrics/class_metrics.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <cohort/base/error.h>

#include "train/rows.h"

namespace cohort::metrics {
namespace {

std::size_t require_classes(int classes, const std::string& name) {
  if (classes >= 1) return static_cast<std::size_t>(classes);
  throw InvalidArgument("{}: {} classes; give at least 1", name, classes);
}

template <class T>
std::int64_t class_of_largest(const T* row, std::size_t columns) {
  return std::max_element(row, row + columns) - row;
}

/// The rule of all metrics of a confusion matrix; `Result` computes theirs from it.
class ConfusionMatrix : public MetricRule {
 public:
  ConfusionMatrix(std::size_t classes, const ConfusionOptions& options, std::string name)
      : classes_(classes), options_(options), name_(std::move(name)) {
    if (options.form == ClassForm::kThreshold && classes != 2)
      throw InvalidArgument("{}: a threshold tells 2 classes, not {}", name_, classes);
  }

  [[nodiscard]] std::size_t sums() const final { return classes_ * classes_; }
  [[nodiscard]] Shape result_shape() const override {
    return {static_cast<std::int64_t>(classes_), static_cast<std::int64_t>(classes_)};
  }

  void update(const MetricBatch& batch, std::span<double> sums) const final {
    switch (options_.form) {
      case ClassForm::kClasses: return add_classes(batch, sums);
      case ClassForm::kOneHot: return add_one_hot(batch, sums);
      case ClassForm::kThreshold: return add_by_threshold(batch, sums);
    }
  }

  void compute(std::span<const double> sums, std::span<double> result) const override {
    std::ranges::copy(sums, result.begin());
  }

 protected:
  [[nodiscard]] std::size_t classes() const noexcept { return classes_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// The weight of the examples of a class, of what was predicted as it, and of those that are both.
  struct OfClass {
    double labels = 0;
    double predictions = 0;
    double both = 0;
  };
  [[nodiscard]] OfClass of_class(std::span<const double> sums, std::size_t number) const {
    OfClass result{.both = sums[number * classes_ + number]};
    for (std::size_t other = 0; other < classes_; ++other) {
      result.labels += sums[number * classes_ + other];
      result.predictions += sums[other * classes_ + number];
    }
    return result;
  }

 private:
  void add_classes(const MetricBatch& batch, std::span<double> sums) const {
    require_same_rows(*batch.labels, batch.predictions, name_);
    const auto labels = elements_as<std::int64_t>(*batch.labels, Part::kLabels);
    const auto predictions = elements_as<std::int64_t>(batch.predictions, Part::kPredictions);
    add(
        batch, labels.size(), sums, [&](std::size_t i) { return labels[i]; },
        [&](std::size_t i) { return predictions[i]; });
  }

  void add_one_hot(const MetricBatch& batch, std::span<double> sums) const {
    require_same_rows(*batch.labels, batch.predictions, name_);
    const RowLayout layout = row_layout(batch.predictions, name_);
    with_number(batch.predictions.dtype(), [&]<class T>(std::type_identity<T>) {
      const T* const labels = elements_as<T>(*batch.labels, Part::kLabels).data();
      const T* const predictions = elements_as<T>(batch.predictions, Part::kPredictions).data();
      const auto largest_of = [&](const T* rows) {
        return [rows, &layout](std::size_t row) {
          return class_of_largest(rows + row * layout.columns, layout.columns);
        };
      };
      add(batch, layout.rows, sums, largest_of(labels), largest_of(predictions));
    });
  }

  void add_by_threshold(const MetricBatch& batch, std::span<double> sums) const {
    require_same_rows(*batch.labels, batch.predictions, name_);
    const auto labels = elements_as<std::int64_t>(*batch.labels, Part::kLabels);
    with_number(batch.predictions.dtype(), [&]<class T>(std::type_identity<T>) {
      const auto predictions = elements_as<T>(batch.predictions, Part::kPredictions);
      const T threshold = static_cast<T>(options_.threshold);
      add(
          batch, labels.size(), sums, [&](std::size_t i) { return labels[i]; },
          [&](std::size_t i) -> std::int64_t { return predictions[i] >= threshold ? 1 : 0; });
    });
  }

  template <class Label, class Prediction>
  void add(const MetricBatch& batch, std::size_t examples, std::span<double> sums, Label label,
           Prediction prediction) const {
    for (std::size_t i = 0; i < examples; ++i) {
      if (label(i) != options_.ignore_class) static_cast<void>(place_of(label(i), prediction(i)));
    }
    const RowWeights<double> weights(batch.weights, examples, name_);
    for (std::size_t i = 0; i < examples; ++i) {
      if (label(i) != options_.ignore_class) sums[place_of(label(i), prediction(i))] += weights[i];
    }
  }

  [[nodiscard]] std::size_t place_of(std::int64_t label, std::int64_t prediction) const {
    const std::size_t row = class_of(label, classes_, name_);
    if (prediction < 0 || static_cast<std::size_t>(prediction) >= classes_) {
      throw InvalidArgument("{}: a prediction is {}, but there are {} classes, from 0 to {}", name_,
                            prediction, classes_, classes_ - 1);
    }
    return row * classes_ + static_cast<std::size_t>(prediction);
  }

  std::size_t classes_;
  ConfusionOptions options_;
  std::string name_;
};

class MeanIou final : public ConfusionMatrix {
 public:
  MeanIou(std::size_t classes, const ConfusionOptions& options, const std::vector<int>& targets,
          std::string name)
      : ConfusionMatrix(classes, options, std::move(name)) {
    for (const int target : targets) targets_.push_back(class_of(target, classes, this->name()));
    for (std::size_t each = 0; targets.empty() && each < classes; ++each) targets_.push_back(each);
  }

  [[nodiscard]] Shape result_shape() const override { return {}; }
  void compute(std::span<const double> sums, std::span<double> result) const override {
    double total = 0;
    double present = 0;
    for (const std::size_t target : targets_) {
      const OfClass of = of_class(sums, target);
      const double either = of.labels + of.predictions - of.both;
      if (either == 0) continue;
      total += of.both / either;
      present += 1;
    }
    result[0] = present == 0 ? 0 : total / present;
  }

 private:
  std::vector<std::size_t> targets_;
};

class MeanPerClassAccuracy final : public ConfusionMatrix {
 public:
  using ConfusionMatrix::ConfusionMatrix;
  [[nodiscard]] Shape result_shape() const override { return {}; }
  void compute(std::span<const double> sums, std::span<double> result) const override {
    result[0] = 0;
    for (std::size_t each = 0; each < classes(); ++each) {
      const OfClass of = of_class(sums, each);
      if (of.labels != 0) result[0] += of.both / of.labels / static_cast<double>(classes());
    }
  }
};

/// Of each class the weights of the right answers, of all that were given, and of all labels.
class FScore final : public MetricRule {
 public:
  FScore(std::size_t classes, const FScoreOptions& options, std::string name)
      : classes_(classes), options_(options), name_(std::move(name)) {
    if (!(options.beta > 0))
      throw InvalidArgument("{}: beta is {}; give a number above 0", name_, options.beta);
  }

  [[nodiscard]] std::size_t sums() const override { return 3 * classes_; }
  [[nodiscard]] Shape result_shape() const override {
    return options_.average == ClassAverage::kNone ? Shape{static_cast<std::int64_t>(classes_)} : Shape{};
  }

  void update(const MetricBatch& batch, std::span<double> sums) const override {
    require_same_rows(*batch.labels, batch.predictions, name_);
    const RowLayout layout = row_layout(batch.predictions, name_);
    if (layout.columns != classes_) {
      throw InvalidArgument("{}: it was made for {} classes, and the predictions are {}", name_, classes_,
                            describe(batch.predictions));
    }
    with_number(batch.predictions.dtype(), [&]<class T>(std::type_identity<T>) {
      const RowWeights<T> weights(batch.weights, layout.rows, name_);
      const T* labels = elements_as<T>(*batch.labels, Part::kLabels).data();
      const T* predictions = elements_as<T>(batch.predictions, Part::kPredictions).data();
      for (std::size_t row = 0; row < layout.rows; ++row, labels += classes_, predictions += classes_)
        add_row(labels, predictions, static_cast<double>(weights[row]), sums);
    });
  }

  void compute(std::span<const double> sums, std::span<double> result) const override {
    if (options_.average == ClassAverage::kMicro) {
      Counts all;
      for (std::size_t each = 0; each < classes_; ++each) all += of_class(sums, each);
      result[0] = score(all);
      return;
    }
    if (options_.average == ClassAverage::kNone) {
      for (std::size_t each = 0; each < classes_; ++each) result[each] = score(of_class(sums, each));
      return;
    }
    double total = 0;
    double weight = 0;
    for (std::size_t each = 0; each < classes_; ++each) {
      const Counts of = of_class(sums, each);
      const double own = options_.average == ClassAverage::kMacro ? 1 : of.labels;
      total += own * score(of);
      weight += own;
    }
    result[0] = weight == 0 ? 0 : total / weight;
  }

 private:
  struct Counts {
    double right = 0;
    double answers = 0;
    double labels = 0;
    Counts& operator+=(const Counts& other) {
      right += other.right;
      answers += other.answers;
      labels += other.labels;
      return *this;
    }
  };

  static Counts of_class(std::span<const double> sums, std::size_t number) {
    return {sums[3 * number], sums[3 * number + 1], sums[3 * number + 2]};
  }

  // With p = right / answers and r = right / labels, the score is (1 + b^2) right / (b^2 labels + answers).
  [[nodiscard]] double score(const Counts& counts) const {
    const double square = options_.beta * options_.beta;
    return counts.right == 0 ? 0 : (1 + square) * counts.right / (square * counts.labels + counts.answers);
  }

  template <class T>
  void add_row(const T* labels, const T* predictions, double weight, std::span<double> sums) const {
    const auto largest = static_cast<std::size_t>(class_of_largest(predictions, classes_));
    for (std::size_t each = 0; each < classes_; ++each) {
      const bool says_yes =
          options_.threshold ? predictions[each] > static_cast<T>(*options_.threshold) : each == largest;
      const double label = static_cast<double>(labels[each]) * weight;
      sums[3 * each] += says_yes ? label : 0;
      sums[3 * each + 1] += says_yes ? weight : 0;
      sums[3 * each + 2] += label;
    }
  }

  std::size_t classes_;
  FScoreOptions options_;
  std::string name_;
};

}  // namespace

Metric confusion_matrix(int classes, const ConfusionOptions& options, const std::string& name) {
  return {name, std::make_shared<ConfusionMatrix>(require_classes(classes, name), options, name)};
}

Metric mean_iou(int classes, const ConfusionOptions& options, const std::vector<int>& target_classes,
                const std::string& name) {
  return {name, std::make_shared<MeanIou>(require_classes(classes, name), options, target_classes, name)};
}

Metric mean_per_class_accuracy(int classes, const ConfusionOptions& options, const std::string& name) {
  return {name, std::make_shared<MeanPerClassAccuracy>(require_classes(classes, name), options, name)};
}

Metric f_score(int classes, const FScoreOptions& options, const std::string& name) {
  return {name, std::make_shared<FScore>(require_classes(classes, name), options, name)};
}

}  // namespace cohort::metrics
