#include "share_plan.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <cohort/collective/packing.h>

namespace cohort {
namespace {

/// Enough sums side by side to hide the latency of an addition, in an order that no compiler changes.
constexpr std::size_t kLanes = 8;

template <class T>
double squares_of(std::span<const T> elements) {
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= elements.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto element = convert_element<double>(elements[i + lane]);
      lanes[lane] += element * element;
    }
  }
  for (std::size_t lane = 0; i < elements.size(); ++i, ++lane) {
    const auto element = convert_element<double>(elements[i]);
    lanes[lane] += element * element;
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace

void block_squares(const Tensor& gradient, std::span<double> sums) {
  COHORT_CHECK(sums.size() == blocks_of(gradient.elements()));
  visit_dtype(gradient.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<const T> elements = gradient.span<T>();
    for (std::size_t block = 0; block < sums.size(); ++block) {
      const std::size_t begin = block * kSquaresBlock;
      sums[block] = squares_of(elements.subspan(begin, std::min(kSquaresBlock, elements.size() - begin)));
    }
  });
}

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
