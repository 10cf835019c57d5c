// Recorded lines of Keras' CSVLogger.
#include <fstream>
#include <string>
#include <vector>

#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/row_loggers.h>
#include <cohort/trainer/trainer.h>

#include "../scenarios/checkpoints.h"
#include "families.h"
#include "recorded_fits.h"
#include "summary/csv_text.h"
#include "temporary_folder.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kColumns = "a table has the columns that there are";

/// The first line as texts, the others as numbers.
Json table_in(const std::string& path, char separator) {
  std::ifstream file(path);
  Json rows = Json::array();
  for (std::string line; std::getline(file, line);) {
    Json row = Json::array();
    for (const std::string& field : csv_fields(line, separator))
      row.push_back(rows.empty() ? Json(field) : Json::parse(field));
    rows.push_back(row);
  }
  return rows;
}

bool appends(const Record& record) { return record.id.ends_with("_append"); }

/// A fit of two epochs, and one more of one epoch.
Json logged(const Record& record) {
  const testing::TemporaryFolder folder;
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const RecordedModel model = model_of(record.arguments);
  Sgd optimizer({.learning_rate = 0.1});
  Trainer<Examples> trainer(strategy, model, optimizer,
                            {.metrics = {metrics::mean_of(losses::mean_absolute_error(), "mae")}});
  const auto data = Dataset<Examples>::from_tensor_slices(examples_of(record.arguments, 10)).batch(5);
  const char separator = appends(record) ? ';' : ',';
  CsvLogger table(folder.path("log.csv"), {.append = appends(record), .separator = separator});
  for (const int epochs : {2, 1}) trainer.fit(data, {.epochs = epochs, .callbacks = {table}});
  return table_in(folder.path("log.csv"), separator);
}

/// The recorded numbers, with the steps and the rate, and without columns of a validation that is none.
Json own_table(const Record& record) {
  Json rows{{"epoch", "step", "learning_rate", "loss", "mae"},
            {0, 2, 0.1, 0.769653082, 0.663172603},
            {1, 4, 0.1, 0.409474224, 0.447275549},
            {0, 6, 0.1, 0.262073696, 0.338338524}};
  if (!appends(record)) rows.erase(rows.begin() + 1, rows.begin() + 3);
  return rows;
}

}  // namespace

std::vector<Family> logger_families() {
  return {{{"w2/callback/*/csv_logger*"}, logged, {{"w2/callback/*/csv_logger*", kColumns, own_table}}}};
}

}  // namespace cohort::conformance
