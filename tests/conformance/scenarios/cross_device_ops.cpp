// The classes of CrossDeviceOps, over 2 to 4 devices: `cdo/<class><devices>_<case>`.
#include <memory>

#include <fmt/format.h>

#include <cohort/strategy/hierarchical_copy_all_reduce.h>
#include <cohort/strategy/nccl_all_reduce.h>
#include <cohort/strategy/reduction_to_one_device.h>

#include "common.h"

namespace cohort::conformance {
namespace {

struct Class {
  std::string_view name;
  std::function<std::unique_ptr<CrossDeviceOps>()> make;
};

std::vector<Class> classes() {
  return {
      {"ReductionToOneDevice", [] { return std::make_unique<ReductionToOneDevice>(); }},
      {"HierarchicalCopyAllReduce", [] { return std::make_unique<HierarchicalCopyAllReduce>(); }},
      {"NcclAllReduce", [] { return std::make_unique<NcclAllReduce>(); }},
  };
}

/// [r + 1, 10] on each device, wanted on all of them.
ReduceRequest request(int devices) {
  Components value;
  for (int r = 0; r < devices; ++r) value.emplace_back(vector({r + 1.0, 10}).to(Device::cpu(r)));
  return {value, Destinations(PerReplica(value))};
}

Json show_mirrored(const Components& components) {
  Json list = Json::array();
  for (const TensorOrSlices& component : components) list.push_back(show(std::get<Tensor>(component)));
  return list.size() == 1 ? list.front() : Json{{"Mirrored", list}};
}

Json reduced(CrossDeviceOps& ops, ReduceOp op, int devices) {
  const auto [value, destinations] = request(devices);
  return show_mirrored(ops.reduce(op, value, destinations));
}

Json reduced_two(CrossDeviceOps& ops, ReduceOp op, int devices) {
  const std::vector<ReduceRequest> requests(2, request(devices));
  Json list = Json::array();
  for (const Components& result : ops.batch_reduce(op, requests)) list.push_back(show_mirrored(result));
  return list;
}

/// What two equal requests give, by arithmetic.
Json sums_of_two(ReduceOp op, int devices) {
  const double share = op == ReduceOp::kMean ? devices : 1;
  const double ids = devices * (devices + 1) / 2.0;
  const Json component{ids / share, 10 * devices / share};
  const Json value{{"Mirrored", Json(static_cast<std::size_t>(devices), component)}};
  return {value, value};
}

void add_reductions(std::vector<Scenario>& scenarios, const Class& type, int devices, ReduceOp op) {
  const std::string prefix =
      fmt::format("cdo/{}{}_{}", type.name, devices, op == ReduceOp::kSum ? "SUM" : "MEAN");
  std::vector<Difference> batch_differs;
  const auto sums = [=](const Layout&) { return sums_of_two(op, devices); };
  if (type.name == "NcclAllReduce") batch_differs = {{"", "what an algorithm cannot take falls back", sums}};
  if (type.name == "HierarchicalCopyAllReduce" && devices % 2 != 0)
    batch_differs = {{"", "what an algorithm cannot take falls back", sums}};
  scenarios.push_back({prefix, [=](const Layout&) { return reduced(*type.make(), op, devices); }});
  scenarios.push_back({prefix + "_batch",
                       [=](const Layout&) { return reduced_two(*type.make(), op, devices); }, batch_differs});
}

void add_destinations(std::vector<Scenario>& scenarios, const Class& type, int devices) {
  const std::string prefix = fmt::format("cdo/{}{}_", type.name, devices);
  scenarios.push_back({prefix + "bcast", [=](const Layout&) {
                         return show_mirrored(
                             type.make()->broadcast(number(5), request(devices).destinations));
                       }});
  scenarios.push_back({prefix + "empty_dest", [=](const Layout&) {
                         return show_mirrored(
                             type.make()->reduce(ReduceOp::kSum, request(devices).value, ""));
                       }});
  scenarios.push_back({prefix + "plain_value", [=](const Layout&) {
                         return show_mirrored(type.make()->reduce(ReduceOp::kSum, {number(1)}, "cpu:0"));
                       }});
}

}  // namespace

std::vector<Scenario> cross_device_ops_scenarios() {
  std::vector<Scenario> scenarios;
  for (const Class& type : classes()) {
    for (const int devices : {2, 3, 4}) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean})
        add_reductions(scenarios, type, devices, op);
      add_destinations(scenarios, type, devices);
    }
  }
  return scenarios;
}

}  // namespace cohort::conformance
