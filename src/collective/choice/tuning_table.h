// A table of all figures that decide choices, with the source of each. Trivially
// copyable, so that members can hand it to each other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
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

/// A part of the table: the figures of a node, or those of the network between nodes.
enum class TuningScope : std::uint8_t { kNode, kNetwork };

/// The figure of a scope that has this name.
[[nodiscard]] std::optional<Figure> find_figure(std::string_view name, TuningScope scope) noexcept;

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

/// The sizes of a node that no probe moves, for people.
[[nodiscard]] std::vector<TuningFigure> fixed_node_figures();

}  // namespace cohort
