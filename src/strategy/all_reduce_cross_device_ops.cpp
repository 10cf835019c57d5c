#include <cohort/strategy/all_reduce_cross_device_ops.h>

#include <algorithm>
#include <map>
#include <vector>

#include <cohort/collective/thread_communicator.h>
#include <cohort/strategy/hierarchical_copy_all_reduce.h>
#include <cohort/strategy/nccl_all_reduce.h>

#include "collective/device_communicators.h"
#include "collective/kernels/reduce_tensors.h"
#include "leaf_reduction.h"

namespace cohort {
namespace {

std::vector<Device> devices_of(const Components& value) {
  std::vector<Device> devices;
  devices.reserve(value.size());
  for (const TensorOrSlices& component : value) devices.push_back(values_of(component).device());
  return devices;
}

/// A copy of one device's tensors, side by side.
Tensor side_by_side(std::span<const Tensor> tensors) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += static_cast<std::int64_t>(tensor.elements());
  Tensor flat = Tensor::uninitialized({elements}, tensors.front().dtype(), tensors.front().device());
  std::int64_t end = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t begin = end;
    end += static_cast<std::int64_t>(tensor.elements());
    flat.rows(begin, end).copy_from(tensor.reshape({-1}));
  }
  return flat;
}

/// Where the packs end, in elements.
std::vector<std::int64_t> pack_ends(std::span<const Tensor> tensors, int num_packs) {
  std::vector<std::int64_t> ends;
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors) ends.push_back(total += static_cast<std::int64_t>(tensor.elements()));
  if (num_packs == 0) return ends;
  ends.clear();
  for (int pack = 1; pack < num_packs; ++pack) ends.push_back(total / num_packs * pack);
  ends.push_back(total);
  return ends;
}

}  // namespace

AllReduceCrossDeviceOps::AllReduceCrossDeviceOps(const AllReduceOptions& options)
    : num_packs_(options.num_packs) {
  if (num_packs_ < 0) {
    throw InvalidArgument("num_packs is {}; give a positive number, or 0 for one pack per tensor",
                          num_packs_);
  }
}

Components AllReduceCrossDeviceOps::reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                                          const CommunicationOptions& options) {
  return std::move(batch_reduce_implementation(op, {&request, 1}, options).front());
}

std::vector<Components> AllReduceCrossDeviceOps::batch_reduce_implementation(
    ReduceOp op, std::span<const ReduceRequest> requests, const CommunicationOptions& options) {
  std::vector<Components> results(requests.size());
  std::map<DType, std::vector<std::size_t>> by_dtype;  // requests that are reduced together
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (takes(requests[i]))
      by_dtype[values_of(requests[i].value.front()).dtype()].push_back(i);
    else
      results[i] = fallback_.reduce(op, requests[i].value, requests[i].destinations, options);
  }
  for (const auto& [dtype, chosen] : by_dtype) {
    std::vector<Components> together = reduced_together(op, requests, chosen);
    for (std::size_t i = 0; i < chosen.size(); ++i) results[chosen[i]] = std::move(together[i]);
  }
  return results;
}

bool AllReduceCrossDeviceOps::takes(const ReduceRequest& request) const {
  return !is_sparse(request.value.front()) &&
         std::ranges::equal(devices_of(request.value), request.destinations.devices()) &&
         fits(request.destinations.devices());
}

std::vector<Components> AllReduceCrossDeviceOps::reduced_together(ReduceOp op,
                                                                  std::span<const ReduceRequest> requests,
                                                                  std::span<const std::size_t> chosen) {
  const std::size_t devices = requests[chosen.front()].value.size();
  std::vector<Tensor> flats;
  std::vector<std::int64_t> ends;
  for (std::size_t device = 0; device < devices; ++device) {
    std::vector<Tensor> tensors;
    for (const std::size_t index : chosen)
      tensors.push_back(std::get<Tensor>(prepared(op, requests[index].value[device])));
    if (device == 0) ends = pack_ends(tensors, num_packs_);
    flats.push_back(side_by_side(tensors));
  }

  std::int64_t begin = 0;
  for (std::size_t pack = 0; pack < ends.size(); ++pack) {
    std::vector<Tensor> parts;
    parts.reserve(flats.size());
    for (const Tensor& flat : flats) parts.push_back(flat.rows(begin, ends[pack]));
    if (ends[pack] > begin) all_reduce(parts, static_cast<int>(pack));
    begin = ends[pack];
  }

  std::vector<Components> results(chosen.size());
  for (const Tensor& flat : flats) {
    if (op == ReduceOp::kMean) divide(flat, devices);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const Shape& shape = values_of(requests[chosen[i]].value.front()).shape();
      const std::int64_t start = end;
      end += static_cast<std::int64_t>(shape.elements());
      results[i].emplace_back(flat.rows(start, end).reshape(shape));
    }
  }
  return results;
}

namespace {

/// The sum of `parts`, in `parts[main]`.
void sum_on(std::size_t main, std::span<const Tensor> parts) {
  std::vector<Tensor> inputs{parts[main]};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != main) inputs.push_back(parts[i]);
  }
  reduce_into(ReduceOp::kSum, inputs, parts[main]);
}

void copy_from_main(std::size_t main, std::span<const Tensor> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != main) parts[i].copy_from(parts[main]);
  }
}

}  // namespace

bool HierarchicalCopyAllReduce::fits(std::span<const Device> devices) const {
  return devices.size() % 2 == 0;
}

void HierarchicalCopyAllReduce::all_reduce(std::span<const Tensor> parts, int pack) {
  const std::size_t group_size = parts.size() / 2;
  const std::span<const Tensor> groups[] = {parts.first(group_size), parts.last(group_size)};
  // The summing devices of the two groups have the same index, which changes from pack to pack.
  const std::size_t turn = static_cast<std::size_t>(pack) % parts.size();
  const std::size_t main = turn % group_size;
  const std::size_t first = turn / group_size;
  const std::span<const Tensor> own = groups[first];
  const std::span<const Tensor> other = groups[1 - first];
  sum_on(main, own);
  sum_on(main, other);
  const Tensor sums[] = {own[main], other[main]};
  sum_on(0, sums);
  other[main].copy_from(own[main]);
  copy_from_main(main, own);
  copy_from_main(main, other);
}

NcclAllReduce::NcclAllReduce(const AllReduceOptions& options) : AllReduceCrossDeviceOps(options) {}

NcclAllReduce::~NcclAllReduce() = default;

bool NcclAllReduce::fits(std::span<const Device> devices) const {
  const auto is_gpu = [](Device device) { return device.kind() == DeviceKind::kCuda; };
  const DeviceCollectives* const module = linked_device_collectives();
  return std::ranges::all_of(devices, is_gpu) && module != nullptr && module->why_not(devices).empty();
}

void NcclAllReduce::connect(std::span<const Tensor> parts) {
  std::vector<Device> devices;
  devices.reserve(parts.size());
  for (const Tensor& part : parts) devices.push_back(part.device());
  if (devices == devices_) return;
  auto communicators = make_thread_communicators(static_cast<int>(devices.size()));
  communicators_ = linked_device_collectives()->connect(communicators, devices);
  devices_ = std::move(devices);
}

void NcclAllReduce::all_reduce(std::span<const Tensor> parts, int /*pack*/) {
  connect(parts);
  // This thread makes the calls of all members, so no call may wait for the others.
  std::vector<Work> works;
  works.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    works.push_back(communicators_[i]->all_reduce_async(parts[i], ReduceOp::kSum));
  for (Work& work : works) work.wait();
}

}  // namespace cohort
