#include "trainer/exports.h"

#include <algorithm>
#include <cmath>

namespace cohort::detail {

Exports::Exports(const Training& training, const std::string& folder, const std::vector<Exporter>& exporters)
    : training_(training) {
  for (const Exporter& exporter : exporters) {
    const bool is_taken = std::ranges::count(exporters, exporter.name, &Exporter::name) > 1;
    if (exporter.name.empty() || is_taken)
      throw InvalidArgument("train_and_evaluate: the name '{}' of an exporter is {}", exporter.name,
                            is_taken ? "that of another one, too" : "empty");
    exports_.push_back({exporter, Monitor(exporter.monitor, exporter.mode),
                        std::make_unique<SavedParameters>(
                            training, folder + "/export/" + exporter.name,
                            CheckpointManagerOptions{.max_to_keep = exporter.exports_to_keep})});
    if (exporter.when == ExportWhen::kBest) exports_.back().monitor.begin(training, "an exporter");
  }
}

void Exports::evaluated(const Evaluation& evaluation) {
  for (Export& each : exports_)
    if (wants(each, evaluation)) each.saved->save(evaluation.step, evaluation.logs);
}

void Exports::finish(const Evaluation& evaluation) {
  for (const Export& each : exports_)
    if (each.exporter.when == ExportWhen::kFinal) each.saved->save(evaluation.step, evaluation.logs);
}

bool Exports::wants(Export& each, const Evaluation& evaluation) const {
  if (each.exporter.when == ExportWhen::kFinal) return false;
  if (each.exporter.when == ExportWhen::kLatest) return true;
  const std::optional<double> value = each.monitor.read(evaluation.logs, training_);
  if (!value || std::isnan(*value) || (each.best && !each.monitor.is_better(*value, *each.best)))
    return false;
  each.best = value;
  return true;
}

}  // namespace cohort::detail
