#include <cohort/checkpoint/checkpoint.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/base/timeline_span.h>
#include <cohort/checkpoint/restore_status.h>

#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint_writer.h"
#include "workers.h"

namespace cohort::checkpoint {

/// What one restore found; shared by the Checkpoint and the handles of its status.
struct Restored {
  Restored(std::string from, Manifest content) : path(std::move(from)), manifest(std::move(content)) {}
  /// Warns of what is left, unless the program has looked at it.
  ~Restored();
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

  /// Keeps open the files of what is left over, and no others: it can be read later, also when the checkpoint
  /// has been removed meanwhile. @throws as PieceReader::read.
  void keep_left_over();

  /// Is left over no more.
  void take(const std::string& name);

  std::string path;
  Manifest manifest;
  std::set<std::string> missing = {};
  std::set<std::string> left_over = {};
  std::optional<PieceReader> reader = {};  ///< nothing when nothing is left over
  bool is_judged = true;                   ///< or not restored yet
};

}  // namespace cohort::checkpoint

namespace cohort {
namespace {

using checkpoint::NamedValue;
using checkpoint::PieceReader;
using checkpoint::Restored;
using checkpoint::Workers;

/// Why a saved value does not fit the one of the program; nothing if it does.
std::optional<std::string> mismatch(const std::string& name, const NamedValue& value,
                                    const checkpoint::ValueEntry& saved) {
  const Shape shape = value.shape();
  const bool fits = value.has_any_length ? saved.shape.rank() == shape.rank() : saved.shape == shape;
  if (fits && saved.dtype == value.dtype) return std::nullopt;
  return fmt::format("'{}' was saved as {}{} and is {}{}", name, to_string(saved.dtype),
                     to_string(saved.shape), to_string(value.dtype), to_string(shape));
}

/// A value that is restored: its name, the program's and the saved one.
struct Match {
  const std::string* name;
  const NamedValue* value;
  const checkpoint::ValueEntry* saved;
};

/// Compares names, shapes and dtypes. @throws InvalidArgument naming all values that do not fit.
std::vector<Match> compare(const std::map<std::string, NamedValue>& values, Restored& restored) {
  std::vector<Match> matches;
  std::vector<std::string> mismatches;
  auto saved = restored.manifest.values.begin();
  const auto leave_until = [&](const std::string* name) {
    for (; saved != restored.manifest.values.end() && (name == nullptr || saved->first < *name); ++saved)
      restored.left_over.insert(saved->first);
  };
  for (const auto& [name, value] : values) {
    leave_until(&name);
    if (saved == restored.manifest.values.end() || saved->first != name) {
      restored.missing.insert(name);
      continue;
    }
    if (auto why = mismatch(name, value, saved->second)) mismatches.push_back(std::move(*why));
    matches.push_back({&name, &value, &saved->second});
    ++saved;
  }
  leave_until(nullptr);
  if (mismatches.empty()) return matches;
  restored.is_judged = true;
  throw InvalidArgument("cannot restore '{}': {}", restored.path, fmt::join(mismatches, "; "));
}

NamedValue of_variable(const Variable& variable) {
  const bool is_aggregated = variable.synchronization() == VariableSynchronization::kOnRead;
  NamedValue value{.dtype = variable.dtype(), .shape = [variable] { return variable.shape(); }};
  value.is_collective = is_aggregated;
  value.is_everywhere = variable.state()->owner() != nullptr;
  value.read = [variable, is_aggregated] {
    // The component itself where there is one: only what is written has to reach the host.
    return is_aggregated || variable.components().empty() ? variable.read() : variable.components().front();
  };
  value.restore = [variable](const Tensor& saved) { variable.assign(saved); };
  return value;
}

}  // namespace

Checkpoint::Checkpoint(Strategy strategy, const CheckpointOptions& options)
    : strategy_(std::move(strategy)), options_(options) {}

Checkpoint::~Checkpoint() = default;

void Checkpoint::add(const std::string& name, const Variable& variable) {
  if (variable.synchronization() == VariableSynchronization::kOnRead &&
      variable.aggregation() == VariableAggregation::kNone) {
    throw InvalidArgument(
        "variable '{}' cannot be saved: it is ON_READ with aggregation none, so each replica has its own "
        "value; choose an aggregation",
        variable.name());
  }
  add_value(name, of_variable(variable));
}

void Checkpoint::add(const std::string& name, const ShardedVariable& variable) {
  add_value(name, {.dtype = variable.dtype(),
                   .shape = [variable] { return variable.shape(); },
                   .read = [variable] { return variable.read(); },
                   .restore = [variable](const Tensor& saved) { variable.assign(saved); },
                   .is_everywhere = variable.variables().front().state()->owner() != nullptr});
}

void Checkpoint::add(const std::string& name, const Tensor& tensor) {
  add_value(name, {.dtype = tensor.dtype(),
                   .shape = [tensor] { return tensor.shape(); },
                   .read = [tensor] { return tensor; },
                   .restore = [tensor](const Tensor& saved) { tensor.copy_from(saved); }});
}

void Checkpoint::add(const std::string& name, std::string& text) {
  add_text(
      name, [&text] { return text; }, [&text](const std::string& saved) { text = saved; });
}

void Checkpoint::add(const std::string& name, DatasetPosition& position) {
  add(name + "/pass", position.pass);
  add(name + "/elements", position.elements);
}

void Checkpoint::add_text(const std::string& name, std::function<std::string()> read,
                          std::function<void(const std::string&)> restore) {
  const auto bytes = [read = std::move(read)] {
    const std::string text = read();
    return Tensor::from(std::vector<std::uint8_t>(text.begin(), text.end()));
  };
  const auto restore_bytes = [restore = std::move(restore)](const Tensor& saved) {
    const auto text = saved.span<std::uint8_t>();
    restore({text.begin(), text.end()});
  };
  add_value(name, {.dtype = DType::kUInt8,
                   .shape = [bytes] { return bytes().shape(); },
                   .read = bytes,
                   .restore = restore_bytes,
                   .has_any_length = true});
}

void Checkpoint::add_value(const std::string& name, NamedValue value) {
  checkpoint::require_name(name);
  if (values_.contains(name)) throw InvalidArgument("the checkpoint has a value '{}' already", name);
  if (restored_ != nullptr && restored_->left_over.contains(name)) {
    const checkpoint::ValueEntry& saved = restored_->manifest.values.at(name);
    if (const auto why = mismatch(name, value, saved))
      throw InvalidArgument("cannot restore '{}': {}", restored_->path, *why);
    value.restore(restored_->reader->read(name, saved));
    restored_->take(name);
  }
  values_.emplace(name, std::move(value));
}

std::string Checkpoint::save(const std::string& folder, std::int64_t step) {
  return save(folder, step, nullptr, {});
}

std::string Checkpoint::save_async(const std::string& folder, std::int64_t step) {
  return save_async(folder, step, nullptr, {});
}

std::string Checkpoint::save(const std::string& folder, std::int64_t step, const checkpoint::WriterLock* lock,
                             const std::map<std::string, double>& metrics) {
  const TimelineSpan span("save checkpoint");
  const Workers workers = begin_save("save", folder, step);
  checkpoint::CheckpointWriter(workers, values_, folder, step, lock, metrics).write(workers);
  return checkpoint::checkpoint_path(folder, step);
}

std::string Checkpoint::save_async(const std::string& folder, std::int64_t step,
                                   const checkpoint::WriterLock* lock,
                                   const std::map<std::string, double>& metrics) {
  const TimelineSpan span("begin to save checkpoint");
  const Workers workers = begin_save("save_async", folder, step);
  if (background_ == nullptr) background_ = std::make_unique<checkpoint::BackgroundSave>();
  background_->start(
      workers, std::make_unique<checkpoint::CheckpointWriter>(workers, values_, folder, step, lock, metrics));
  return checkpoint::checkpoint_path(folder, step);
}

Workers Checkpoint::begin_save(const char* function, const std::string& folder, std::int64_t step) {
  strategy_.extended().require_cross_replica(function);
  if (step < 0) throw InvalidArgument("a checkpoint of step {}: steps are numbered from 0", step);
  wait();
  return Workers(strategy_.extended(), "saves checkpoint", checkpoint::checkpoint_path(folder, step),
                 options_.timeout_seconds);
}

void Checkpoint::wait() {
  if (background_ != nullptr) background_->wait();
}

RestoreStatus Checkpoint::restore(const std::string& path) {
  strategy_.extended().require_cross_replica("restore");
  wait();
  const TimelineSpan span("restore checkpoint");
  const Workers workers(strategy_.extended(), "restores checkpoint", path, options_.timeout_seconds);
  std::shared_ptr<Restored> restored;
  std::vector<std::pair<const NamedValue*, Tensor>> contents;
  const auto read_all = [&] {
    auto candidate = std::make_shared<Restored>(path, checkpoint::read_manifest(path));
    PieceReader reader(path);
    for (const auto& [name, value, saved] : compare(values_, *candidate))
      contents.emplace_back(value, reader.read(*name, *saved));
    candidate->keep_left_over();
    restored = std::move(candidate);
    return workers.size() == 1 ? std::string() : checkpoint::to_json(restored->manifest);
  };
  workers.agree(read_all, "what the workers find at '" + path + "'");
  workers.together_do([&] {
    for (const auto& [value, saved] : contents) value->restore(saved);
  });
  restored->is_judged = false;
  restored_ = std::move(restored);
  return RestoreStatus(restored_);
}

namespace {

/// What is wrong, in words; empty if nothing is.
std::string complaint(const checkpoint::Restored& restored, bool left_over_counts) {
  std::string text;
  if (!restored.missing.empty())
    text += fmt::format("; it does not have {}", fmt::join(restored.missing, ", "));
  if (left_over_counts && !restored.left_over.empty())
    text += fmt::format("; the program does not have {}", fmt::join(restored.left_over, ", "));
  return text.empty() ? text : fmt::format("checkpoint '{}' was not restored in full{}", restored.path, text);
}

void require(const std::string& complaint) {
  if (!complaint.empty()) throw InvalidArgument("{}", complaint);
}

}  // namespace

checkpoint::Restored::~Restored() {
  if (is_judged) return;
  try {
    const std::string text = complaint(*this, true);
    if (!text.empty()) logging::warning("{}; expect_partial() says that this is meant", text);
  } catch (const std::exception&) {
    // No memory for a warning.
  }
}

void checkpoint::Restored::keep_left_over() {
  reader.reset();
  if (left_over.empty()) return;
  reader.emplace(path);
  for (const std::string& name : left_over) reader->open(name, manifest.values.at(name));
}

void checkpoint::Restored::take(const std::string& name) {
  left_over.erase(name);
  if (left_over.empty()) reader.reset();
}

std::int64_t RestoreStatus::step() const { return restored_->manifest.step; }

std::vector<std::string> RestoreStatus::missing() const {
  return {restored_->missing.begin(), restored_->missing.end()};
}

std::vector<std::string> RestoreStatus::left_over() const {
  return {restored_->left_over.begin(), restored_->left_over.end()};
}

const RestoreStatus& RestoreStatus::assert_consumed() const {
  restored_->is_judged = true;
  require(complaint(*restored_, true));
  return *this;
}

const RestoreStatus& RestoreStatus::assert_existing_restored() const {
  restored_->is_judged = true;
  require(complaint(*restored_, false));
  return *this;
}

const RestoreStatus& RestoreStatus::expect_partial() const {
  restored_->is_judged = true;
  return *this;
}

}  // namespace cohort
