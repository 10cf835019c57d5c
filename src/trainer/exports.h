// What the exporters of train_and_evaluate save.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cohort/trainer/detail/train_and_evaluate.h>

#include "trainer/save_parameters.h"

namespace cohort::detail {

class Exports {
 public:
  /// @throws InvalidArgument for exporters without a name, or of one name; as CheckpointManager.
  Exports(const Training& training, const std::string& folder, const std::vector<Exporter>& exporters);

  /// After an evaluation of the parameters that the training has now. Collective.
  void evaluated(const Evaluation& evaluation);
  /// After the last one.
  void finish(const Evaluation& evaluation);

 private:
  struct Export {
    Exporter exporter;
    Monitor monitor;
    std::unique_ptr<SavedParameters> saved;
    std::optional<double> best = {};
  };

  /// Whether it saves, which it remembers of the best.
  [[nodiscard]] bool wants(Export& each, const Evaluation& evaluation) const;

  const Training& training_;
  std::vector<Export> exports_;
};

}  // namespace cohort::detail
