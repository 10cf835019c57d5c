#include "share_plan.h"

#include <algorithm>

#include <cohort/collective/packing.h>

#include "block_squares.h"

namespace cohort {
namespace {

constexpr auto kBlock = static_cast<std::int64_t>(kSquaresBlock);

}  // namespace

SharePlan::SharePlan(std::span<const TensorSpec> variables, int replicas) : replicas_(replicas) {
  const std::int64_t unit = kBlock * replicas;
  std::vector<std::int64_t> in_runs;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const auto elements = static_cast<std::int64_t>(variables[v].elements());
    const bool is_large = variables[v].bytes() >= CommunicationCost{}.smallest_lone_tensor();
    in_runs.push_back(replicas == 1 ? elements : is_large ? elements / unit * unit : 0);
    const auto largest = static_cast<std::int64_t>(kLargestCallBytes / size_of(variables[v].dtype));
    add_runs(v, in_runs.back(), replicas == 1 ? elements : std::max(largest / unit, std::int64_t{1}) * unit);
  }
  for (const DType dtype : kAllDTypes) pack(variables, in_runs, dtype);
}

void SharePlan::add_runs(std::size_t variable, std::int64_t end, std::int64_t longest) {
  for (std::int64_t begin = 0; begin < end; begin += longest)
    runs_.push_back({variable, begin, std::min(begin + longest, end)});
}

/// A block belongs to the replica on whose even share it begins.
void SharePlan::pack(std::span<const TensorSpec> variables, std::span<const std::int64_t> in_runs,
                     DType dtype) {
  SharedPack pack{.dtype = dtype};
  std::int64_t total = 0;
  for (std::size_t v = 0; v < variables.size(); ++v)
    if (variables[v].dtype == dtype) total += static_cast<std::int64_t>(variables[v].elements()) - in_runs[v];
  if (total == 0) return;
  std::vector<std::int64_t> filled(static_cast<std::size_t>(replicas_));
  std::int64_t before = 0;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].dtype != dtype) continue;
    const auto elements = static_cast<std::int64_t>(variables[v].elements());
    for (std::int64_t begin = in_runs[v]; begin < elements; begin += kBlock) {
      const std::int64_t end = std::min(begin + kBlock, elements);
      const auto replica = static_cast<int>(before * replicas_ / total);
      std::int64_t& full = filled[static_cast<std::size_t>(replica)];
      if (!pack.parts.empty() && pack.parts.back().replica == replica && pack.parts.back().variable == v)
        pack.parts.back().end = end;
      else
        pack.parts.push_back({v, begin, end, replica, full});
      full += end - begin;
      before += end - begin;
    }
  }
  pack.room = *std::ranges::max_element(filled);
  for (PackedPart& part : pack.parts) part.place += part.replica * pack.room;
  packs_.push_back(std::move(pack));
}

std::vector<SharePart> SharePlan::parts_of(int replica) const {
  std::vector<SharePart> parts;
  for (const SharedRun& run : runs_) {
    const std::int64_t length = (run.end - run.begin) / replicas_;
    parts.push_back({run.variable, run.begin + replica * length, run.begin + (replica + 1) * length});
  }
  for (const SharedPack& pack : packs_)
    for (const PackedPart& part : pack.parts)
      if (part.replica == replica) parts.push_back({part.variable, part.begin, part.end});
  return parts;
}

}  // namespace cohort
