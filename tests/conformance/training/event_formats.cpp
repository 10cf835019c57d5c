// Recorded lines of the files that logs are: the records and events of event files, and Keras' CSVLogger.
#include <openssl/sha.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <cohort/input/files/tf_record.h>
#include <cohort/summary/summary_writer.h>
#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/row_loggers.h>
#include <cohort/trainer/trainer.h>

#include "../scenarios/checkpoints.h"
#include "event_file.h"
#include "families.h"
#include "recorded_fits.h"
#include "summary/event_message.h"
#include "summary/log_file.h"
#include "temporary_folder.h"

namespace cohort::conformance {
namespace {

// Recorded lines of the format of event files: records, and the bytes of events.

using testing::TemporaryFolder;

constexpr std::string_view kWriter = "a file says who wrote it";
constexpr std::string_view kOneForm = "a scalar has one form";
constexpr std::string_view kCutRecord = "a record that is cut is data loss";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string from_hex(const std::string& hex) {
  if (hex == "#") return std::string(20, '\0');
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::span<const std::byte> as_record(const std::string& text) { return std::as_bytes(std::span(text)); }

/// A file of these records.
std::string record_file(const TemporaryFolder& folder, const std::vector<std::string>& records) {
  TfRecordWriter writer(folder.path("records"));
  for (const std::string& record : records) writer.write(as_record(record));
  writer.close();
  return folder.path("records");
}

Json framed(const Record& record) {
  const TemporaryFolder folder;
  std::vector<std::string> records;
  for (const std::string hex : record.arguments.at("payload_hex")) records.push_back(from_hex(hex));
  const std::string bytes = bytes_of(record_file(folder, records));
  if (record.outcome.is_string()) return testing::hex_of(bytes);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return {{"sha256", testing::hex_of({reinterpret_cast<const char*>(digest.data()), digest.size()})},
          {"last8_hex", testing::hex_of(bytes).substr(2 * bytes.size() - 8)},
          {"first24_hex", testing::hex_of(bytes).substr(0, 24)}};
}

Json cut(const Record& record) {
  const TemporaryFolder folder;
  const std::string path = record_file(folder, {"hello"});
  std::filesystem::resize_file(path, record.id.ends_with("header") ? 5 : 14);
  Json read = Json::array();
  for (const Tensor& each : tf_record_dataset({path}))
    read.push_back(testing::hex_of({reinterpret_cast<const char*>(each.data()), each.bytes()}));
  return read;
}

SummaryValue recorded_scalar() {
  return {.tag = "loss", .step = 3, .wall_time = 1.5, .metadata = {.plugin = "scalars"}, .value = 0.5};
}

Json event_bytes(const Record& record) {
  return testing::hex_of(record.id.ends_with("version") ? version_event(1.5)
                                                        : value_event(recorded_scalar()));
}

/// The records of a file, their time replaced.
Json records_in_file(const Record& /*record*/) {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path().string());
  writer.scalar("loss", 0.5, 3);
  writer.close();
  Json records = Json::array();
  for (const Tensor& each : tf_record_dataset({testing::files_of(folder.path().string()).at(0)})) {
    std::string hex = testing::hex_of({reinterpret_cast<const char*>(each.data()), each.bytes()});
    records.push_back(hex.replace(2, 16, "<wall_time f64 LE>"));
  }
  return Json::array({records});
}

const std::string kOwnMetadata = testing::hex_of(
    "\x52\x08\x0a\x06"
    "cohort");

Json own_version(const Record& record) { return record.outcome.get<std::string>() + kOwnMetadata; }

Json own_records(const Record& record) {
  Json records = record.outcome;
  const auto& version = records[0][0].get_ref<const std::string&>();
  records[0][0] = version.substr(0, version.find("5224")) + kOwnMetadata;
  return records;
}

/// The bytes of a scalar in a file, with this time.
Json own_scalar(const Record& /*record*/) {
  return "09000000000000f83f10032a210a1f0a046c6f7373420a0801120022040000003f4a0b0a090a077363616c617273";
}

}  // namespace

std::vector<Family> event_format_families() {
  return {{{"w2/summary/none/tfrecord_read_*"},
           cut,
           {{"w2/summary/none/tfrecord_read_truncated_header", kCutRecord,
             [](const Record& /*record*/) { return an_error(); }}}},
          {{"w2/summary/none/tfrecord_*"}, framed, {}},
          {{"w2/summary/none/event_bytes_*"},
           event_bytes,
           {{"w2/summary/none/event_bytes_version", kWriter, own_version},
            {"w2/summary/none/event_bytes_scalar_*", kOneForm, own_scalar}}},
          {{"w2/summary/none/file_records_hex"},
           records_in_file,
           {{"w2/summary/none/file_records_hex", kWriter, own_records}}}};
}

namespace {

// Recorded lines of Keras' CSVLogger.

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
