// The times of simulate as a picture in SVG: a panel for each call, with logarithmic axes; a line for what
// was simulated, and a dashed one for the formula.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <fmt/ostream.h>

#include "simulate/simulate.h"

namespace cohort::bench {
namespace {

constexpr int kColumns = 4;
constexpr double kPanelWidth = 250;
constexpr double kPanelHeight = 190;
constexpr double kLeft = 44;  ///< of the axis, in its panel
constexpr double kTop = 24;
constexpr double kRight = 10;
constexpr double kBottom = 24;

using Rows = std::vector<const SimulateRow*>;  ///< of one call, by nodes

/// The powers of ten around all times.
std::pair<int, int> decades(const std::vector<SimulateRow>& rows) {
  double least = rows.front().simulated_us;
  double most = least;
  for (const SimulateRow& row : rows) {
    least = std::min({least, row.simulated_us, row.formula_us});
    most = std::max({most, row.simulated_us, row.formula_us});
  }
  const int first = static_cast<int>(std::floor(std::log10(std::max(least, 1e-3))));
  return {first, std::max(static_cast<int>(std::ceil(std::log10(most))), first + 1)};
}

/// Calls in the order in which they were simulated.
std::vector<std::pair<std::string, Rows>> rows_by_call(const std::vector<SimulateRow>& rows) {
  std::vector<std::pair<std::string, Rows>> calls;
  for (const SimulateRow& row : rows) {
    const std::string name =
        row.bytes == 0 ? std::string(row.collective) : fmt::format("{}, {} bytes", row.collective, row.bytes);
    auto call = std::ranges::find(calls, name, &std::pair<std::string, Rows>::first);
    if (call == calls.end()) call = calls.insert(calls.end(), {name, {}});
    call->second.push_back(&row);
  }
  return calls;
}

/// Where a panel has a number of nodes and a time.
struct Axes {
  double left;
  double top;
  double most_nodes;
  std::pair<int, int> decades;

  [[nodiscard]] double x(double nodes) const {
    const double part = most_nodes > 2 ? std::log2(nodes / 2) / std::log2(most_nodes / 2) : 0;
    return left + kLeft + part * (kPanelWidth - kLeft - kRight);
  }
  [[nodiscard]] double y(double microseconds) const {
    const double part =
        (std::log10(std::max(microseconds, 1e-3)) - decades.first) / (decades.second - decades.first);
    return top + kPanelHeight - kBottom - part * (kPanelHeight - kTop - kBottom);
  }
};

void draw_axes(std::ostream& stream, const Axes& axes, std::string_view title) {
  fmt::print(stream, "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n", axes.left + kLeft,
             axes.top + 16, title);
  for (int decade = axes.decades.first; decade <= axes.decades.second; ++decade) {
    const double y = axes.y(std::pow(10, decade));
    fmt::print(stream,
               "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#ddd\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
               "text-anchor=\"end\">{:g} us</text>\n",
               axes.left + kLeft, y, axes.left + kPanelWidth - kRight, axes.left + kLeft - 3, y + 4,
               std::pow(10, decade));
  }
  for (double nodes = 2; nodes <= axes.most_nodes; nodes *= 4)
    fmt::print(stream, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n", axes.x(nodes),
               axes.top + kPanelHeight - kBottom + 14, nodes);
}

void draw_line(std::ostream& stream, const Axes& axes, const Rows& rows, double SimulateRow::*time,
               std::string_view style) {
  std::string points;
  for (const SimulateRow* row : rows)
    points += fmt::format("{:.1f},{:.1f} ", axes.x(row->nodes), axes.y(row->*time));
  fmt::print(stream, "<polyline points=\"{}\" fill=\"none\" {}/>\n", points, style);
}

}  // namespace

void write_plot(std::ostream& stream, const SimulateResult& result) {
  const auto calls = rows_by_call(result.rows);
  const int lines = (static_cast<int>(calls.size()) + kColumns - 1) / kColumns;
  constexpr double kHead = 40;
  fmt::print(
      stream,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
      "font-size=\"10\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kColumns * kPanelWidth, kHead + lines * kPanelHeight);
  fmt::print(
      stream,
      "<text x=\"10\" y=\"18\" font-size=\"13\">Simulated times (line) and the formula's (dashed) over the "
      "number of nodes, {} members on each</text>\n",
      result.options.lanes);
  fmt::print(stream, "<text x=\"10\" y=\"34\">{:.3g} us between nodes, {:.3g} Gbit/s for each node</text>\n",
             result.options.network.latency_seconds * 1e6, 8e-9 / result.options.network.seconds_per_byte);
  const double most_nodes = std::ranges::max(result.rows, {}, &SimulateRow::nodes).nodes;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto& [title, rows] = calls[i];
    const std::size_t column = i % kColumns;
    const std::size_t line = i / kColumns;
    const Axes axes{static_cast<double>(column) * kPanelWidth,
                    kHead + static_cast<double>(line) * kPanelHeight, most_nodes, decades(result.rows)};
    draw_axes(stream, axes, title);
    draw_line(stream, axes, rows, &SimulateRow::formula_us,
              "stroke=\"#999\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\"");
    draw_line(stream, axes, rows, &SimulateRow::simulated_us, "stroke=\"#2f6690\" stroke-width=\"2\"");
  }
  stream << "</svg>\n";
}

}  // namespace cohort::bench
