#include "tuning_figures.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/base/version.h>

#include "base/files.h"
#include "base/json.h"
#include "base/system_calls.h"

namespace cohort {
namespace {

struct Range {
  std::size_t begin;
  std::size_t end;
};

Range range_of(TuningScope scope) noexcept {
  return scope == TuningScope::kNode ? Range{0, kNodeFigures} : Range{kNodeFigures, kFigures};
}

}  // namespace

std::string_view to_string(TuningSource source) noexcept {
  switch (source) {
    case TuningSource::kBuiltIn: return "built-in";
    case TuningSource::kProbed: return "probed";
    case TuningSource::kFile: return "file";
  }
  return "unknown";
}

TuningTable::TuningTable() {
  for (std::size_t i = 0; i < kFigures; ++i) entries_[i] = {kFigureSpecs[i].built_in, TuningSource::kBuiltIn};
}

std::optional<Figure> find_figure(std::string_view name, TuningScope scope) noexcept {
  const Range range = range_of(scope);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (kFigureSpecs[i].name == name) return static_cast<Figure>(i);
  }
  return std::nullopt;
}

std::vector<TuningFigure> TuningTable::figures(TuningScope scope) const {
  const Range range = range_of(scope);
  std::vector<TuningFigure> figures;
  for (std::size_t i = range.begin; i < range.end; ++i)
    figures.push_back({kFigureSpecs[i].name, kFigureSpecs[i].text, entries_[i].value, entries_[i].source});
  return figures;
}

// The file.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "cohort tuning 1";

/// For example `Intel(R) Xeon(R) Processor, 8 processors`: figures of another one are of no use.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(std::min(line.find(':') + 2, line.size()));
    break;
  }
  return fmt::format("{}, {} processors", model, ::sysconf(_SC_NPROCESSORS_CONF));
}

Json empty_document() {
  return {{"format", kFormat}, {"version", COHORT_VERSION}, {"hosts", Json::object()}};
}

/// Why a tuning file is of no use.
class Unusable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Why a file is none of ours, and not to be replaced.
class Foreign : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Whether this is, or once was, a tuning file of any version. All of them begin with the format.
bool begins_as_tuning_file(std::string_view text) {
  constexpr std::string_view kBeginning = R"({"format":"cohorttuning)";
  std::size_t matched = 0;
  for (const char c : text) {
    if (matched == kBeginning.size()) break;
    if (c == ' ' || c == '\n') continue;
    if (c != kBeginning[matched++]) return false;
  }
  return matched == kBeginning.size();
}

/// What the file has; empty where there is none. @throws Foreign.
std::string contents_of(const std::filesystem::path& path) {
  const std::filesystem::file_status status = std::filesystem::status(path);
  if (!std::filesystem::exists(status)) return {};
  if (!std::filesystem::is_regular_file(status)) throw Foreign("it is a folder, a pipe or a device");
  int descriptor = -1;
  try {
    descriptor = open_regular_file(path, "file");
  } catch (const Error& error) {
    throw Foreign(error.what());
  }
  std::string text;
  std::array<char, 4096> part{};
  ssize_t bytes = 0;
  while ((bytes = ::read(descriptor, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(bytes));
    // Before the rest, which may be long.
    if (!begins_as_tuning_file(text)) break;
  }
  ::close(descriptor);
  if (bytes < 0) throw Foreign(fmt::format("it cannot be read: {}", std::strerror(errno)));
  if (!text.empty() && !begins_as_tuning_file(text)) throw Foreign("it is no tuning file");
  return text;
}

/// The document; nothing where there is none. @throws std::exception, as all below.
std::optional<Json> parse(const std::filesystem::path& path) {
  const std::string text = contents_of(path);
  if (text.empty()) return std::nullopt;
  Json document = is_nested_deeply(text) ? Json() : Json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("format", "") != kFormat)
    throw Unusable("it is damaged, or of another format");
  if (document.value("version", "") != COHORT_VERSION)
    throw Unusable(fmt::format("it is of Cohort {}, and this is {}", document.value("version", "unknown"),
                               COHORT_VERSION));
  return document;
}

TuningTable to_table(const Json& figures, TuningScope scope) {
  TuningTable table;
  for (const auto& [name, value] : figures.items()) {
    const std::optional<Figure> figure = find_figure(name, scope);
    if (!figure) throw Unusable(fmt::format("it has an unknown figure, {}", name));
    const double number = value.get<double>();
    if (!std::isfinite(number) || number <= 0) throw Unusable(fmt::format("its {} is {}", name, number));
    table.set(*figure, number, TuningSource::kFile);
  }
  return table;
}

/// What the file has, with these figures for this host.
Json merged(const std::filesystem::path& path, const std::string& shape, const Json& figures) {
  const Json alone{{"processor", processor()}, {"tables", {{shape, figures}}}};
  try {
    Json document = parse(path).value_or(empty_document());
    Json& host = document.at("hosts")[host_name()];
    if (host.is_object() && host.at("processor") == processor())
      host.at("tables")[shape] = figures;
    else
      host = alone;
    return document;
  } catch (const Foreign&) {
    throw;
  } catch (const std::exception&) {
    Json document = empty_document();
    document["hosts"][host_name()] = alone;
    return document;
  }
}

}  // namespace

std::optional<TuningTable> TuningFile::read(TuningScope scope, const std::string& shape) {
  if (is_left_alone_) return std::nullopt;
  try {
    const std::optional<Json> document = parse(path_);
    if (!document) return std::nullopt;
    const Json& hosts = document->at("hosts");
    const auto host = hosts.find(host_name());
    if (host == hosts.end()) return std::nullopt;
    if (host->at("processor").get<std::string>() != processor())
      throw Unusable(fmt::format("{} had another processor then", host_name()));
    const Json& tables = host->at("tables");
    const auto figures = tables.find(shape);
    if (figures == tables.end()) return std::nullopt;
    return to_table(*figures, scope);
  } catch (const Foreign& error) {
    leave_alone(error.what());
    return std::nullopt;
  } catch (const std::exception& error) {
    logging::warning("COHORT_TUNING_FILE {} is not used, and will be replaced: {}", path_.string(),
                     error.what());
    return std::nullopt;
  }
}

void TuningFile::write(TuningScope scope, const std::string& shape, const TuningTable& table) {
  if (is_left_alone_) return;
  Json figures = Json::object();
  for (const TuningFigure& figure : table.figures(scope)) {
    if (figure.source == TuningSource::kProbed) figures[std::string(figure.name)] = figure.value;
  }
  try {
    // Through a symbolic link, so that the link stays.
    std::error_code unknown;
    const std::filesystem::path target = std::filesystem::canonical(path_, unknown);
    const std::string text = merged(path_, shape, figures).dump(2) + '\n';
    NewFile file(unknown ? path_ : target);
    for (std::string_view left = text; !left.empty();) {
      const ssize_t written = ::write(file.descriptor(), left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw Unavailable("{}", std::strerror(errno));
      left.remove_prefix(static_cast<std::size_t>(written));
    }
    file.publish();
  } catch (const Foreign& error) {
    leave_alone(error.what());
  } catch (const std::exception& error) {
    logging::warning("COHORT_TUNING_FILE {} cannot be written ({}); what was probed holds for this run only",
                     path_.string(), error.what());
  }
}

void TuningFile::leave_alone(const char* why) {
  is_left_alone_ = true;
  logging::warning(
      "COHORT_TUNING_FILE {} is neither used nor replaced: {}; name a tuning file, or a file that does not "
      "exist yet",
      path_.string(), why);
}

// What this process has found out.

std::string shape_of_network(int nodes, int members) {
  return fmt::format("{} nodes, {} members", nodes, members);
}

TuningStore& TuningStore::of_this_process() {
  static auto* const store = new TuningStore;  // communicators may work until after static objects are gone
  return *store;
}

std::optional<TuningTable> TuningStore::find(TuningScope scope, const std::string& shape) {
  const std::lock_guard lock(mutex_);
  if (const auto found = tables_.find(shape); found != tables_.end()) return found->second;
  TuningFile* const file = the_file();
  return file == nullptr ? std::nullopt : file->read(scope, shape);
}

void TuningStore::keep(const std::string& shape, const TuningTable& table) {
  const std::lock_guard lock(mutex_);
  tables_.insert_or_assign(shape, table);
}

void TuningStore::forget() {
  const std::lock_guard lock(mutex_);
  tables_.clear();
}

void TuningStore::save(TuningScope scope, const std::string& shape, const TuningTable& table) {
  const std::lock_guard lock(mutex_);
  if (TuningFile* const file = the_file()) file->write(scope, shape, table);
}

TuningFile* TuningStore::the_file() {
  const std::string& path = config().tuning_file();
  if (path.empty()) return nullptr;
  if (!file_ || file_->path() != path) file_.emplace(path);
  return &*file_;
}

}  // namespace cohort
