// The variables of this process, and the settings among them.
#include <cohort/base/config.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include <cohort/base/environment.h>
#include <cohort/base/error.h>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace cohort {

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::optional<int> number_in(const Environment& variables, const char* name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return std::nullopt;
  const std::string& text = found->second;
  int number = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || number < 0)
    throw InvalidArgument("{} is '{}'; it must be a whole number, at least 0", name, text);
  return number;
}

namespace {

constexpr std::string_view kPrefix = "COHORT_";
/// Not settings: what module files of clusters set for every package, so that its users can refer to it.
constexpr std::array<std::string_view, 4> kSetByModules{"COHORT_ROOT", "COHORT_HOME", "COHORT_DIR",
                                                        "COHORT_VERSION"};
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

constexpr std::array<SettingSpec, 24> kSpecs{{
    {"COHORT_LOG_LEVEL", SettingType::kChoice, "warning", "debug|info|warning|error|off", 0, 0,
     "least severe level that is logged to standard error"},
    {"COHORT_COLLECTIVE_TIMEOUT_SECONDS", SettingType::kSeconds, "600", "", 0, kNoLimit,
     "how long a collective waits for its members before it fails and names the missing ones; 0: for ever"},
    {"COHORT_FAULT_GRACE_SECONDS", SettingType::kSeconds, "3", "", 0.1, 3600,
     "after the loss of a worker: how long the others may take to end by themselves before they are ended"},
    {"COHORT_HEARTBEAT_SECONDS", SettingType::kSeconds, "1", "", 0.01, 3600,
     "time between the heartbeats that workers send one another"},
    {"COHORT_SILENCE_SECONDS", SettingType::kSeconds, "5", "", 0, 86'400,
     "how long a worker may stay without a heartbeat before it counts as lost: at least twice "
     "COHORT_HEARTBEAT_SECONDS, and the same on all workers; 0: for ever, for debuggers that stop a worker"},
    {"COHORT_CPU_DEVICES", SettingType::kInteger, "1", "", 1, 4096,
     "number of logical CPU devices (cpu:0, cpu:1, ...) that this worker's cores are split into"},
    {"COHORT_BIND_CORES", SettingType::kBoolean, "true", "", 0, 0,
     "give each worker of a host its share of the cores, unless a launcher "
     "has bound it to cores of its own"},
    {"COHORT_HUGE_PAGES", SettingType::kBoolean, "true", "", 0, 0,
     "advise the kernel to back large tensors with huge pages"},
    {"COHORT_WORKERS_PER_NODE", SettingType::kInteger, "0", "", 0, 1 << 20,
     "at most so many workers count as one node, for tests on one machine and to keep parts of a machine "
     "apart; 0: all that share memory"},
    {"COHORT_NODE_HEAP", SettingType::kBoolean, "true", "", 0, 0,
     "allocate CPU tensors where the other processes of the node can read and write them"},
    {"COHORT_CHECK_BUFFERS", SettingType::kBoolean, "false", "", 0, 0,
     "detect tensors that the program changes while a call on them is in flight; copies all tensors"},
    {"COHORT_ALGORITHM", SettingType::kText, "auto", "", 0, 0,
     "algorithm for large collectives, where it can carry them out: auto, a name, or one per collective, "
     "as in all_reduce=ring,broadcast=binomial; the same on all workers"},
    {"COHORT_TUNING_FILE", SettingType::kText, "", "", 0, 0,
     "file that keeps the results of probing this host's collectives for later runs; empty: each run probes"},
    {"COHORT_TOPOLOGY", SettingType::kText, "", "", 0, 0,
     "the levels of the machine by which many members of a node meet, in place of what hwloc reads: a file "
     "from lstopo that ends in .xml, or a description as 'pack:2 l3:8 core:8 pu:1'"},
    {"COHORT_REPORT", SettingType::kText, "", "", 0, 0,
     "file to which a node writes, when a communicator fails, what all its members were doing, as JSON for "
     "cohort-info --report; empty: five lines on standard error are all"},
    {"COHORT_STRAGGLERS", SettingType::kBoolean, "true", "", 0, 0,
     "warn of a worker that makes the others wait, with its cause, when that becomes clear and at the end"},
    {"COHORT_TIMELINE", SettingType::kText, "", "", 0, 0,
     "file for a picture of all calls in time, which Perfetto and chrome://tracing open; empty: none"},
    {"COHORT_RUN_NUMBERS", SettingType::kBoolean, "false", "", 0, 0,
     "print at the end of a run how its workers spent their time, and what calls they made by which "
     "algorithms"},
    {"COHORT_PROMETHEUS", SettingType::kText, "", "", 0, 0,
     "file with the numbers of the run for Prometheus's node exporter, which the chief writes anew every "
     "two seconds and at the end; empty: none"},
    {"COHORT_NCCL_LIBRARY", SettingType::kText, "", "", 0, 0,
     "NCCL's shared library, libnccl.so.2, by its path or name; empty: one that is loaded already, the one "
     "next to the header that Cohort was built with, or the system's"},
    {"COHORT_MPI_CALLS", SettingType::kChoice, "all", "all|exact|none", 0, 0,
     "which collectives of an MPI program that runs with libcohort-mpi.so Cohort carries out: all that it "
     "can, those whose results have the same bits whoever carries them out, or none"},
    {"COHORT_TASK_FD", SettingType::kInteger, "-1", "", -1, 1 << 20,
     "descriptor from which a task that cohort-run --roles has started reads its place in the cluster; set "
     "by "
     "cohort-supervise, -1: no such task"},
    {"COHORT_SNAPSHOT_FOLDER", SettingType::kText, "", "", 0, 0,
     "folder in each host's shared memory for the snapshots of CheckpointManager; set by cohort-run "
     "--restarts, "
     "which removes it; empty: no snapshots"},
    {"COHORT_RESTARTS", SettingType::kInteger, "0", "", 0, 1 << 30,
     "how often the job was started again, for cohort-info --job; set by cohort-run --restarts"},
}};

std::string known_names() {
  std::string names;
  for (const SettingSpec& spec : kSpecs) {
    if (!names.empty()) names += ", ";
    names += spec.name;
  }
  return names;
}

/// Levenshtein distance; finds the name that a typo was meant to be.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

[[noreturn]] void reject_unknown(std::string_view name) {
  const auto* nearest = std::min_element(kSpecs.begin(), kSpecs.end(), [&](const auto& a, const auto& b) {
    return edit_distance(name, a.name) < edit_distance(name, b.name);
  });
  if (edit_distance(name, nearest->name) <= 4) {
    throw InvalidArgument("unknown setting {}: did you mean {}? cohort-info lists all settings", name,
                          nearest->name);
  }
  throw InvalidArgument("unknown setting {}. Known settings: {}", name, known_names());
}

bool parse_number(const std::string& text, double& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), end, number);
  return status == std::errc() && stopped == end && std::isfinite(number);
}

/// The number in a setting, which has been checked.
double number_of(const Setting& setting) {
  double number = 0;
  COHORT_CHECK(parse_number(setting.value, number));
  return number;
}

bool is_choice(std::string_view choices, std::string_view value) {
  while (true) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

/// The form of legal values, for the error message.
std::string expectation(const SettingSpec& spec) {
  const std::string limit =
      spec.maximum == kNoLimit ? std::string("or more") : fmt::format("to {}", spec.maximum);
  switch (spec.type) {
    case SettingType::kBoolean: return "true, false, 1 or 0";
    case SettingType::kInteger: return fmt::format("a whole number, {} {}", spec.minimum, limit);
    case SettingType::kSeconds: return fmt::format("a number of seconds, {} {}", spec.minimum, limit);
    case SettingType::kChoice: return fmt::format("one of {}", spec.choices);
    case SettingType::kText: return "any text";
  }
  return {};
}

bool is_legal(const SettingSpec& spec, const std::string& value) {
  double number = 0;
  switch (spec.type) {
    case SettingType::kBoolean: return value == "true" || value == "false";
    case SettingType::kChoice: return is_choice(spec.choices, value);
    case SettingType::kText: return true;
    case SettingType::kInteger:
      if (!parse_number(value, number) || number != std::floor(number)) return false;
      break;
    case SettingType::kSeconds:
      if (!parse_number(value, number)) return false;
      break;
  }
  return number >= spec.minimum && number <= spec.maximum;
}

/// The canonical form of a value: `true` for `1`.
std::string normalized(const SettingSpec& spec, const std::string& value) {
  if (spec.type == SettingType::kBoolean && value == "1") return "true";
  if (spec.type == SettingType::kBoolean && value == "0") return "false";
  return value;
}

}  // namespace

std::string_view to_string(SettingType type) noexcept {
  switch (type) {
    case SettingType::kBoolean: return "boolean";
    case SettingType::kInteger: return "integer";
    case SettingType::kSeconds: return "seconds";
    case SettingType::kChoice: return "choice";
    case SettingType::kText: return "text";
  }
  return "unknown";
}

std::span<const SettingSpec> Config::specs() noexcept { return kSpecs; }

Config::Config(const Environment& environment) {
  for (const auto& entry : environment) {
    const std::string& name = entry.first;
    if (!name.starts_with(kPrefix) || std::ranges::count(kSetByModules, name) > 0) continue;
    if (std::ranges::count(kSpecs, name, &SettingSpec::name) == 0) reject_unknown(name);
  }
  for (const SettingSpec& spec : kSpecs) {
    const auto given = environment.find(spec.name);
    const bool from_environment = given != environment.end();
    Setting setting{spec,
                    from_environment ? normalized(spec, given->second) : std::string(spec.default_value),
                    from_environment};
    if (!is_legal(spec, setting.value)) {
      throw InvalidArgument("invalid {}={}: expected {} (default {})", spec.name, setting.value,
                            expectation(spec), spec.default_value);
    }
    settings_.push_back(std::move(setting));
  }
  require_silence_longer_than_heartbeat();
}

void Config::require_silence_longer_than_heartbeat() const {
  if (silence().count() == 0 || silence() >= 2 * heartbeat()) return;
  throw InvalidArgument(
      "COHORT_SILENCE_SECONDS={} is less than twice COHORT_HEARTBEAT_SECONDS={}: workers would count as lost "
      "between two heartbeats. Raise the former or lower the latter",
      silence().count(), heartbeat().count());
}

const Setting& Config::find(std::string_view name) const {
  const auto found = std::find_if(settings_.begin(), settings_.end(),
                                  [&](const Setting& setting) { return setting.spec.name == name; });
  COHORT_CHECK(found != settings_.end());
  return *found;
}

std::string Config::log_level() const { return find("COHORT_LOG_LEVEL").value; }

std::chrono::duration<double> Config::collective_timeout() const {
  return std::chrono::duration<double>(number_of(find("COHORT_COLLECTIVE_TIMEOUT_SECONDS")));
}

std::chrono::duration<double> Config::fault_grace() const {
  return std::chrono::duration<double>(number_of(find("COHORT_FAULT_GRACE_SECONDS")));
}

std::chrono::duration<double> Config::heartbeat() const {
  return std::chrono::duration<double>(number_of(find("COHORT_HEARTBEAT_SECONDS")));
}

std::chrono::duration<double> Config::silence() const {
  return std::chrono::duration<double>(number_of(find("COHORT_SILENCE_SECONDS")));
}

int Config::cpu_devices() const { return static_cast<int>(number_of(find("COHORT_CPU_DEVICES"))); }

bool Config::bind_cores() const { return find("COHORT_BIND_CORES").value == "true"; }

int Config::workers_per_node() const { return static_cast<int>(number_of(find("COHORT_WORKERS_PER_NODE"))); }

bool Config::node_heap() const { return find("COHORT_NODE_HEAP").value == "true"; }

bool Config::check_buffers() const { return find("COHORT_CHECK_BUFFERS").value == "true"; }

std::string Config::algorithm() const { return find("COHORT_ALGORITHM").value; }

std::string Config::nccl_library() const { return find("COHORT_NCCL_LIBRARY").value; }

std::string Config::tuning_file() const { return find("COHORT_TUNING_FILE").value; }

std::string Config::topology() const { return find("COHORT_TOPOLOGY").value; }

bool Config::stragglers() const { return find("COHORT_STRAGGLERS").value == "true"; }

std::string Config::timeline() const { return find("COHORT_TIMELINE").value; }

bool Config::run_numbers() const { return find("COHORT_RUN_NUMBERS").value == "true"; }

std::string Config::prometheus() const { return find("COHORT_PROMETHEUS").value; }

std::string Config::report() const { return find("COHORT_REPORT").value; }

std::string Config::snapshot_folder() const { return find("COHORT_SNAPSHOT_FOLDER").value; }

std::string Config::mpi_calls() const { return find("COHORT_MPI_CALLS").value; }

int Config::restarts() const { return static_cast<int>(number_of(find("COHORT_RESTARTS"))); }

int Config::task_descriptor() const { return static_cast<int>(number_of(find("COHORT_TASK_FD"))); }

bool Config::huge_pages() const { return find("COHORT_HUGE_PAGES").value == "true"; }

const Config& config() {
  static const Config instance(process_environment());
  return instance;
}

}  // namespace cohort
