// The History of a training: the loss and the metrics of each epoch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/trainer/logs.h>

namespace cohort {

class History {
 public:
  struct Epoch {
    int number = 0;  ///< from 0
    Logs logs = {};
  };

  void add(int epoch, const Logs& logs) { epochs_.push_back({epoch, logs}); }

  [[nodiscard]] std::span<const Epoch> epochs() const& noexcept { return epochs_; }

  /// The numbers of this name, of the epochs that have one.
  [[nodiscard]] std::vector<double> of(std::string_view name) const;

  /// As text, for checkpoints, and back, to the same bits. @throws InvalidArgument for other texts.
  [[nodiscard]] std::string to_text() const;
  [[nodiscard]] static History from_text(std::string_view text);

 private:
  std::vector<Epoch> epochs_;
};

}  // namespace cohort
