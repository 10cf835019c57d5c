// The figures that decide choices: a table of them all, with the source of each, and the results of earlier
// probes by the shape of the group: those of this process's own communicators, and those in
// COHORT_TUNING_FILE.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/collective/tuning.h>

namespace cohort {

enum class Figure : std::uint8_t {
  // of a node, in bytes that one member contributes
  kDirectReduction,
  kDirectOutOfPlace,
  kDirectMove,
  kDirectBroadcast,
  kSingleCopy,
  // between nodes
  kLatency,
  kSecondsPerByte,
  kReduceSecondsPerByte,
  kLanes,
};
inline constexpr std::size_t kNodeFigures = 5;
inline constexpr std::size_t kFigures = 9;

/// What a figure is, and its value before anybody has probed.
struct FigureSpec {
  std::string_view name;
  std::string_view text;
  double built_in;
};

/// By `Figure`; built_in_choices.cpp has them from node and network, which include this.
extern const std::array<FigureSpec, kFigures> kFigureSpecs;

/// A part of the table: the figures of a node, or those of the network between nodes.
enum class TuningScope : std::uint8_t { kNode, kNetwork };

/// The figure of a scope that has this name.
[[nodiscard]] std::optional<Figure> find_figure(std::string_view name, TuningScope scope) noexcept;

/// All figures. Trivially copyable, so that members can hand it to each other.
class TuningTable {
 public:
  /// All figures as built in.
  TuningTable();

  [[nodiscard]] double value(Figure figure) const noexcept { return entry(figure).value; }
  [[nodiscard]] std::size_t bytes(Figure figure) const noexcept {
    return static_cast<std::size_t>(value(figure));
  }
  [[nodiscard]] TuningSource source(Figure figure) const noexcept { return entry(figure).source; }

  void set(Figure figure, double value, TuningSource source) noexcept {
    entries_[static_cast<std::size_t>(figure)] = {value, source};
  }

  /// The figures of a scope for people and files.
  [[nodiscard]] std::vector<TuningFigure> figures(TuningScope scope) const;

 private:
  struct Entry {
    double value = 0;
    TuningSource source = TuningSource::kBuiltIn;
  };
  [[nodiscard]] const Entry& entry(Figure figure) const noexcept {
    return entries_[static_cast<std::size_t>(figure)];
  }
  std::array<Entry, kFigures> entries_;
};

/// The sizes of a node that no probe moves, for people; in built_in_choices.cpp, too.
[[nodiscard]] std::vector<TuningFigure> fixed_node_figures();

/// COHORT_TUNING_FILE: what probes have found out, by host and by shape of the group, as JSON. Several hosts
/// may share the file; the last writer wins, and a host that finds its own part missing probes again. A file
/// that cannot be used is a warning, never an error. One that does not begin as a tuning file, or cannot be
/// read, is somebody's data that the setting names by mistake: it is left as it is.
class TuningFile {
 public:
  explicit TuningFile(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// This host's table for groups of this shape; nothing where the file has none that can be used.
  [[nodiscard]] std::optional<TuningTable> read(TuningScope scope, const std::string& shape);

  /// Puts the figures that were probed in place of what the file has for this host and shape. Readers
  /// see the old file or the new one.
  void write(TuningScope scope, const std::string& shape, const TuningTable& table);

 private:
  void leave_alone(const char* why);

  std::filesystem::path path_;
  bool is_left_alone_ = false;  ///< which has been said
};

/// The words for a group over several nodes: all of the same shape go by the same figures.
[[nodiscard]] std::string shape_of_network(int nodes, int members);

/// Any thread may use it.
class TuningStore {
 public:
  [[nodiscard]] static TuningStore& of_this_process();

  /// `shape` says in words what kind of group the table is for, for example `node of 2 processes`.
  [[nodiscard]] std::optional<TuningTable> find(TuningScope scope, const std::string& shape);

  /// For later communicators of this process.
  void keep(const std::string& shape, const TuningTable& table);

  /// Later communicators of this process probe again, unless COHORT_TUNING_FILE knows.
  void forget();

  /// For later runs, too. Called by one member of a group that has probed.
  void save(TuningScope scope, const std::string& shape, const TuningTable& table);

 private:
  /// Null where the setting names none.
  [[nodiscard]] TuningFile* the_file();

  std::mutex mutex_;
  std::map<std::string, TuningTable, std::less<>> tables_;
  std::optional<TuningFile> file_;
};

}  // namespace cohort
