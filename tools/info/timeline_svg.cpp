#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "timeline.h"

namespace cohort::info {
namespace {

constexpr double kWidth = 1400;  ///< of the time, in pixels
constexpr double kLeft = 230;    ///< of the names
constexpr double kTop = 46;
constexpr double kRow = 20;
constexpr double kGap = 6;  ///< between workers

/// Spans narrower than this are drawn as one with what is beside them.
constexpr double kNarrow = 0.5;

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kColors{
    {{"compute", "#7fb069"},
     {"input", "#e6aa68"},
     {"wait for worker", "#ca3c25"},
     {"wait for other nodes", "#8d5a97"},
     {"move data", "#2f6690"},
     {"call", "#cfd8dc"},
     {"span of the program", "#e3d26f"}}};
constexpr std::size_t kCallColor = 5;
constexpr std::size_t kProgramsColor = 6;

std::size_t color_of(std::string_view name, bool is_programs) {
  if (is_programs) return kProgramsColor;
  for (std::size_t i = 0; i < kCallColor; ++i) {
    if (name.starts_with(kColors[i].first)) return i;
  }
  return kCallColor;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default: result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return result;
}

/// The largest of 1, 2 and 5 times a power of ten that leaves at least five marks.
double step_of(double length) {
  const double most = length / 5;
  const double power = std::pow(10, std::floor(std::log10(most)));
  for (const double times : {5.0, 2.0}) {
    if (times * power <= most) return times * power;
  }
  return power;
}

std::string time_text(double microseconds, double step) {
  if (step < 1e3) return fmt::format("{:.4g} us", microseconds);
  if (step < 1e6) return fmt::format("{:.4g} ms", microseconds / 1e3);
  return fmt::format("{:.4g} s", microseconds / 1e6);
}

using Rows = std::map<std::pair<int, int>, double>;  ///< where each track is, by worker and track

Rows place_rows(const TimelineFacts& facts) {
  Rows rows = {};
  for (const auto& [track, name] : facts.tracks) rows[track] = 0;
  for (const DrawnSpan& span : facts.spans) rows[{span.worker, span.track}] = 0;
  double y = kTop;
  int worker = rows.begin()->first.first;
  for (auto& [track, at] : rows) {
    if (track.first != worker) y += kGap;
    worker = track.first;
    at = y;
    y += kRow;
  }
  return rows;
}

std::string draw_frame(const TimelineFacts& facts, const Rows& rows, double height) {
  std::string svg;
  double x = kLeft;
  for (const auto& [name, color] : kColors) {
    svg += fmt::format("<rect x=\"{}\" y=\"8\" width=\"12\" height=\"12\" fill=\"{}\"/>", x, color);
    svg += fmt::format("<text x=\"{}\" y=\"18\">{}</text>\n", x + 16, name);
    x += 40 + 7.0 * static_cast<double>(name.size());
  }
  const double length = facts.end - facts.begin;
  const double step = step_of(length);
  for (int mark = 0; mark * step <= length; ++mark) {
    const double at = kLeft + kWidth * mark * step / length;
    svg +=
        fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" y=\"40\">{3}</text>\n",
                    at, kTop, height, time_text(mark * step, step));
  }
  int worker = rows.begin()->first.first - 1;
  for (const auto& [track, y] : rows) {
    const auto name = facts.tracks.find(track);
    const std::string what =
        name == facts.tracks.end() ? fmt::format("track {}", track.second) : name->second;
    const auto owner = facts.workers.find(track.first);
    if (track.first != worker)
      svg += fmt::format(
          "<text x=\"4\" y=\"{}\">{}</text>", y + 14,
          escaped(owner == facts.workers.end() ? fmt::format("worker {}", track.first) : owner->second));
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y + 14,
                       escaped(what));
    worker = track.first;
  }
  return svg;
}

std::string draw_spans(const TimelineFacts& facts, const Rows& rows) {
  const double scale = kWidth / (facts.end - facts.begin);
  std::map<std::tuple<int, int, std::size_t>, double> drawn_to;  // by worker, track and colour
  std::string svg;
  for (const DrawnSpan& span : facts.spans) {
    const std::string& name = facts.names[static_cast<std::size_t>(span.name)];
    const std::size_t color = color_of(name, span.is_programs);
    const double x = kLeft + (span.begin - facts.begin) * scale;
    const double width = std::max(span.duration * scale, kNarrow);
    const auto [drawn, is_first] = drawn_to.try_emplace({span.worker, span.track, color}, 0);
    if (x + width < drawn->second + kNarrow) continue;
    drawn->second = x + width;
    // A call has its parts in its lower half.
    const bool is_part = span.track != 0 && color < kCallColor;
    const double y = rows.at({span.worker, span.track}) + 1 + (is_part ? kRow / 2 - 1 : 0);
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"{}><title>{}, {:.3f} "
        "ms</title></rect>\n",
        x, y, width, is_part ? kRow / 2 - 1 : kRow - 2, kColors[color].second,
        // Those within others can be told from them.
        span.is_programs && width > 2 ? " stroke=\"#fff\"" : "", escaped(name), span.duration / 1e3);
  }
  return svg;
}

}  // namespace

std::string to_svg(const TimelineFacts& facts) {
  TimelineFacts drawn = facts;
  drawn.end = std::max(facts.end, facts.begin + 1);
  const Rows rows = place_rows(drawn);
  const double height = rows.rbegin()->second + kRow + kGap;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
             "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
             "fill=\"white\"/>\n",
             kLeft + kWidth + 50, height) +
         draw_frame(drawn, rows, height - kGap) + draw_spans(drawn, rows) + "</svg>\n";
}

}  // namespace cohort::info
