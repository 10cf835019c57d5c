// An Exporter saves the parameters of models that train_and_evaluate has evaluated, for those who use them:
// as checkpoints below `FOLDER/export/NAME`, with the parameters by their names.
#pragma once

#include <string>

#include <cohort/trainer/callbacks/monitor.h>

namespace cohort {

enum class ExportWhen {
  kFinal,   ///< once, after the last evaluation
  kLatest,  ///< after each evaluation
  kBest,    ///< after those that are better than all before in this run
};

struct Exporter {
  std::string name = {};
  ExportWhen when = ExportWhen::kLatest;
  int exports_to_keep = 5;       ///< of the newest; 0: all
  std::string monitor = "loss";  ///< of kBest
  MonitorMode mode = MonitorMode::kAuto;
};

}  // namespace cohort
