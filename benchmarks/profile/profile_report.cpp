#include <ostream>

#include <fmt/ostream.h>

#include "profile/profile.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const ProfileResult& result) {
  const auto cell = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.3f}", *value) : std::string();
  };
  stream << "model,library,mode,dtype,members,buffers,step_us,compute_us,exposed_us,hidden_us,hidden_share,"
            "ratio_to_peer_per_tensor,ratio_to_peer_fused,wrong\n";
  for (const ProfileRow& row : result.rows) {
    fmt::print(stream, "{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{},{},{},{},", result.model, row.library,
               row.mode, result.dtype, result.members, row.buffers, row.step_us, row.compute_us,
               row.exposed_us, cell(row.hidden_us), cell(row.hidden_share), cell(row.ratio_to_per_tensor),
               cell(row.ratio_to_fused));
    if (row.wrong) stream << *row.wrong;
    stream << "\n";
  }
}

void write_json(std::ostream& stream, const Environment& environment, const ProfileResult& result) {
  Json rows = Json::array();
  for (const ProfileRow& row : result.rows) {
    rows.push_back({{"library", row.library},
                    {"mode", row.mode},
                    {"step_us", row.step_us},
                    {"compute_us", row.compute_us},
                    {"exposed_us", row.exposed_us},
                    {"hidden_us", or_null(row.hidden_us)},
                    {"hidden_share", or_null(row.hidden_share)},
                    {"ratio_to_peer_per_tensor", or_null(row.ratio_to_per_tensor)},
                    {"ratio_to_peer_fused", or_null(row.ratio_to_fused)},
                    {"wrong", or_null(row.wrong)}});
  }
  const Json profile{{"model", result.model},
                     {"tensors", result.tensors},
                     {"elements", result.elements},
                     {"bytes", result.bytes},
                     {"dtype", result.dtype},
                     {"buffers", result.buffers},
                     {"members", result.members},
                     {"steps", result.steps},
                     {"through_host", result.through_host},
                     {"start_us", result.start_us},
                     {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"profile", profile}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const ProfileResult& result) {
  const auto cell = [](const std::optional<double>& value) {
    return value ? three_digits(*value) : std::string("-");
  };
  fmt::print(stream, "{}# gradients of {}: {} tensors, {:.1f} MB of {}, {} buffers, median of {} steps\n",
             summarize(environment), result.model, result.tensors, static_cast<double>(result.bytes) / 1e6,
             result.dtype, result.buffers, result.steps);
  stream
      << "# exposed: what communication adds to the step; hidden: what it takes alone (async), less that;\n"
         "# ratios: the peer's time over the exposed time, so above 1 this one is faster\n";
  if (result.through_host) stream << "# Cohort's calls went through the host, not NCCL\n";
  fmt::print(stream, "# starting one call asynchronously takes {} us\n\n", three_digits(result.start_us));
  constexpr auto kRow = "{:<20} {:>10} {:>10} {:>10} {:>10} {:>8} {:>11} {:>9} {:>6}\n";
  fmt::print(stream, kRow, "mode", "step", "compute", "exposed", "hidden", "hidden", "to peer", "to peer",
             "wrong");
  fmt::print(stream, kRow, "", "us", "us", "us", "us", "%", "per tensor", "fused", "elem.");
  for (const ProfileRow& row : result.rows) {
    const std::optional<double> percent =
        row.hidden_share ? std::optional(100 * *row.hidden_share) : std::nullopt;
    fmt::print(stream, kRow, fmt::format("{}: {}", row.library, row.mode), three_digits(row.step_us),
               three_digits(row.compute_us), three_digits(row.exposed_us), cell(row.hidden_us), cell(percent),
               cell(row.ratio_to_per_tensor), cell(row.ratio_to_fused),
               row.wrong ? fmt::format("{}", *row.wrong) : "-");
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ProfileResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
