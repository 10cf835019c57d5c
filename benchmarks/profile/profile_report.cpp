#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "errors.h"
#include "profile.h"
#include "report.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kHeader = "name,elements";

/// No tensor of this many elements fits into a machine, and sums of them cannot overflow.
constexpr std::size_t kMostElements = std::size_t{1} << 40;

void drop_carriage_return(std::string& line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
}

}  // namespace

std::size_t Model::elements() const {
  return std::accumulate(gradients.begin(), gradients.end(), std::size_t{0});
}

Model read_model(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("--model {}: cannot be read ({})", path, std::strerror(errno));
  return parse_model(file, path);
}

Model parse_model(std::istream& text, const std::string& path) {
  std::string line;
  std::getline(text, line);
  drop_carriage_return(line);
  if (line != kHeader) {
    throw UsageError("--model {}: the first line is '{}' instead of '{}'", path, line.substr(0, 40), kHeader);
  }
  Model model{.name = std::filesystem::path(path).stem().string(), .gradients = {}};
  for (int number = 2; std::getline(text, line); ++number) {
    drop_carriage_return(line);
    const std::size_t comma = line.rfind(',');
    const char* begin = line.data() + (comma == std::string::npos ? line.size() : comma + 1);
    const char* end = line.data() + line.size();
    std::size_t elements = 0;
    const auto [stopped, status] = std::from_chars(begin, end, elements);
    if (status != std::errc() || stopped != end || elements == 0 || elements > kMostElements) {
      throw UsageError("--model {}, line {}: '{}' is not a name, a comma and a number of elements", path,
                       number, line.substr(0, 40));
    }
    model.gradients.push_back(elements);
  }
  if (model.gradients.empty()) throw UsageError("--model {}: no tensors in it", path);
  std::reverse(model.gradients.begin(), model.gradients.end());
  return model;
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ProfileResult& result) {
  using Row = ProfileRow;
  const auto hidden_percent = [](const Row& row) -> std::optional<double> {
    if (!row.hidden_share) return std::nullopt;
    return 100 * *row.hidden_share;
  };
  const RowsReport<Row> report{
      .name = "profile",
      .facts = {{"model", result.model},
                {"tensors", result.tensors},
                {"elements", result.elements},
                {"bytes", result.bytes},
                {"dtype", result.dtype},
                {"buffers", result.buffers},
                {"members", result.members},
                {"steps", result.steps},
                {"through_host", result.through_host},
                {"start_us", result.start_us}},
      .introduction = fmt::format(
          "# gradients of {}: {} tensors, {:.1f} MB of {}, {} buffers, median of {} steps\n"
          "# exposed: what communication adds to the step; hidden: what it takes alone (async), less that;\n"
          "# ratios: the peer's time over the exposed time, so above 1 this one is faster\n"
          "{}"
          "# starting one call asynchronously takes {} us\n\n",
          result.model, result.tensors, static_cast<double>(result.bytes) / 1e6, result.dtype, result.buffers,
          result.steps, result.through_host ? "# Cohort's calls went through the host, not NCCL\n" : "",
          three_digits(result.start_us)),
      .fields = {{"model", [&](const Row& /*row*/) { return result.model; }, "{}", FieldIn::kCsv},
                 {"library", &Row::library},
                 {"mode", &Row::mode},
                 {"dtype", [&](const Row& /*row*/) { return result.dtype; }, "{}", FieldIn::kCsv},
                 {"members", [&](const Row& /*row*/) { return result.members; }, "{}", FieldIn::kCsv},
                 {"buffers", &Row::buffers, "{}", FieldIn::kCsv},
                 {"step_us", &Row::step_us, "{:.3f}"},
                 {"compute_us", &Row::compute_us, "{:.3f}"},
                 {"exposed_us", &Row::exposed_us, "{:.3f}"},
                 {"hidden_us", &Row::hidden_us, "{:.3f}"},
                 {"hidden_share", &Row::hidden_share, "{:.3f}"},
                 {"ratio_to_peer_per_tensor", &Row::ratio_to_per_tensor, "{:.3f}"},
                 {"ratio_to_peer_fused", &Row::ratio_to_fused, "{:.3f}"},
                 {"wrong", &Row::wrong}},
      .columns = {{"mode", -20, [](const Row& row) { return fmt::format("{}: {}", row.library, row.mode); }},
                  {"step", 10, &Row::step_us, "us"},
                  {"compute", 10, &Row::compute_us, "us"},
                  {"exposed", 10, &Row::exposed_us, "us"},
                  {"hidden", 10, &Row::hidden_us, "us"},
                  {"hidden", 8, hidden_percent, "%"},
                  {"to peer", 11, &Row::ratio_to_per_tensor, "per tensor"},
                  {"to peer", 9, &Row::ratio_to_fused, "fused"},
                  {"wrong", 6, &Row::wrong, "elem."}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
