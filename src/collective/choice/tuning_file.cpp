#include "tuning_file.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/log.h>
#include <cohort/base/version.h>

namespace cohort {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "cohort tuning 1";

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

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

/// Why a file is of no use.
class Unusable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The document; nothing where there is no file. @throws std::exception, as all below.
std::optional<Json> parse(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  if (!std::filesystem::is_regular_file(path)) throw Unusable("it is no regular file");
  std::ifstream file(path);
  if (!file) throw Unusable("it cannot be read");
  Json document = Json::parse(file, nullptr, false);
  if (!document.is_object() || document.value("format", "") != kFormat)
    throw Unusable("it is damaged, or something else than a tuning file");
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
  } catch (const std::exception&) {
    Json document = empty_document();
    document["hosts"][host_name()] = alone;
    return document;
  }
}

}  // namespace

std::optional<TuningTable> TuningFile::read(TuningScope scope, const std::string& shape) const {
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
  } catch (const std::exception& error) {
    logging::warning("COHORT_TUNING_FILE {} is not used, and will be replaced: {}", path_.string(),
                     error.what());
    return std::nullopt;
  }
}

void TuningFile::write(TuningScope scope, const std::string& shape, const TuningTable& table) const {
  Json figures = Json::object();
  for (const TuningFigure& figure : table.figures(scope)) {
    if (figure.source == TuningSource::kProbed) figures[std::string(figure.name)] = figure.value;
  }
  const Json document = merged(path_, shape, figures);

  std::filesystem::path temporary = path_;
  temporary += fmt::format(".{}.{}.tmp", host_name(), ::getpid());
  std::ofstream file(temporary);
  file << document.dump(2) << std::endl;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path_, error);
  if (!file || error) {
    logging::warning("COHORT_TUNING_FILE {} cannot be written{}; what was probed holds for this run only",
                     path_.string(), error ? fmt::format(" ({})", error.message()) : "");
    std::filesystem::remove(temporary, error);
  }
}

}  // namespace cohort
