#include "collective/packing/batch_reducer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_ops.h>

#include "packs.h"

namespace cohort {
namespace {

/// A program has a few lists that it reduces in every step; lists beyond that are planned anew.
constexpr std::size_t kPlansKept = 16;

/// Memory for the tensors of a pack, side by side.
struct Copy {
  Tensor flat;
  std::vector<Tensor> pieces;  ///< of `flat`, one per tensor
};

/// What holds all tensors of a pack.
TensorSpec whole(const Pack& pack, std::span<const Tensor> tensors) {
  std::int64_t elements = 0;
  for (const std::size_t index : pack) elements += static_cast<std::int64_t>(tensors[index].elements());
  return {{elements}, tensors[pack.front()].dtype()};
}

/// In `flat`, which is as large as all of them.
Copy copy_of(const Pack& pack, std::span<const Tensor> tensors, Tensor flat) {
  Copy copy{std::move(flat), {}};
  std::int64_t end = 0;
  for (const std::size_t index : pack) {
    const std::int64_t begin = end;
    end += static_cast<std::int64_t>(tensors[index].elements());
    copy.pieces.push_back(copy.flat.rows(begin, end).reshape(tensors[index].shape()));
  }
  return copy;
}

std::vector<Tensor> listed(std::span<const Tensor> tensors, const Pack& pack) {
  std::vector<Tensor> list;
  list.reserve(pack.size());
  for (const std::size_t index : pack) list.push_back(tensors[index]);
  return list;
}

// On a CPU the copies are made one by one, which asks for no list; on a GPU together, for each would be
// a kernel.

void copy_in(const Copy& copy, std::span<const Tensor> tensors, const Pack& pack) {
  if (!is_cpu(copy.flat)) return copy_each(listed(tensors, pack), copy.pieces);
  for (std::size_t j = 0; j < pack.size(); ++j) copy.pieces[j].copy_from(tensors[pack[j]]);
}

void copy_out(const Copy& copy, std::span<const Tensor> tensors, const Pack& pack) {
  if (!is_cpu(copy.flat)) return copy_each(copy.pieces, listed(tensors, pack));
  for (std::size_t j = 0; j < pack.size(); ++j) tensors[pack[j]].copy_from(copy.pieces[j]);
}

/// The packs of make_packs for the tensors of each device, since a pack lies on one
/// device. Devices come in the order of the list, in which members agree: their
/// numbers are each member's own.
std::vector<Pack> packs_by_device(std::span<const TensorSpec> specs, std::span<const Device> devices,
                                  std::size_t bytes_per_pack, const CommunicationCost& cost) {
  std::vector<std::pair<Device, Pack>> by_device;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto place = std::ranges::find(by_device, devices[i], &std::pair<Device, Pack>::first);
    if (place == by_device.end()) place = by_device.insert(place, {devices[i], {}});
    place->second.push_back(i);
  }
  std::vector<Pack> packs;
  for (const auto& [device, there] : by_device) {
    std::vector<TensorSpec> own;
    for (const std::size_t index : there) own.push_back(specs[index]);
    for (Pack& pack : make_packs(own, bytes_per_pack, cost)) {
      for (std::size_t& index : pack) index = there[index];
      packs.push_back(std::move(pack));
    }
  }
  return packs;
}

/// The calls of a batch are told apart by their number too: one that is left out on a member is noticed
/// although the next is as long.
class Calls {
 public:
  Calls(Communicator& communicator, ReduceOp op, std::uint64_t layout)
      : communicator_(communicator), op_(op), layout_(layout) {}

  // Blocking calls one after the other: each is long enough to keep all members busy, and there is nothing to
  // do between them.
  void all_reduce(const Tensor& input, const Tensor& output) {
    for_each_call_part(communicator_, input, output, [this](const Tensor& from, const Tensor& to) {
      communicator_.all_reduce(from, to, op_, {.layout = Fingerprint().add(layout_).add(number_++).value()});
    });
  }

 private:
  Communicator& communicator_;
  ReduceOp op_;
  std::uint64_t layout_;
  std::uint64_t number_ = 0;
};

}  // namespace

struct BatchReducer::Plan {
  std::vector<TensorSpec> specs;
  std::vector<Device> devices;  ///< by tensor
  std::size_t bytes_per_pack = 0;
  std::uint64_t layout = 0;
  std::vector<Pack> packs;
  std::vector<std::optional<Copy>> copies;  ///< by pack, of those with several tensors; empty before use

  /// The memory of these is kept, so it lies where the communicator moves it fastest.
  void prepare_copies(Communicator& communicator, std::span<const Tensor> tensors) {
    if (!copies.empty()) return;
    std::vector<std::optional<Copy>> all(packs.size());
    std::vector<std::size_t> there;  // packs on the communicator's device
    std::vector<TensorSpec> specs_there;
    for (std::size_t i = 0; i < packs.size(); ++i) {
      if (packs[i].size() == 1) continue;
      const TensorSpec flat = whole(packs[i], tensors);
      const Device device = tensors[packs[i].front()].device();
      if (device == communicator.device()) {
        there.push_back(i);
        specs_there.push_back(flat);
      } else {
        all[i] = copy_of(packs[i], tensors, Tensor::uninitialized(flat.shape, flat.dtype, device));
      }
    }
    const std::vector<Tensor> flats = allocate_together(communicator, specs_there);
    for (std::size_t i = 0; i < there.size(); ++i)
      all[there[i]] = copy_of(packs[there[i]], tensors, flats[i]);
    copies = std::move(all);
  }
};

BatchReducer::BatchReducer(std::optional<CommunicationCost> cost) : cost_(cost) {}
BatchReducer::~BatchReducer() = default;
BatchReducer::BatchReducer(BatchReducer&&) noexcept = default;
BatchReducer& BatchReducer::operator=(BatchReducer&&) noexcept = default;

BatchReducer::Plan& BatchReducer::plan_for(Communicator& communicator, std::span<const Tensor> tensors) {
  const std::size_t bytes_per_pack = communicator.options().bytes_per_pack;
  const auto known = std::ranges::find_if(plans_, [&](const auto& plan) {
    return plan->bytes_per_pack == bytes_per_pack && std::ranges::equal(plan->specs, tensors, matches) &&
           std::ranges::equal(plan->devices, tensors, {}, {},
                              [](const Tensor& tensor) { return tensor.device(); });
  });
  if (known != plans_.end()) {
    std::rotate(plans_.begin(), known, known + 1);
    return *plans_.front();
  }
  auto plan = std::make_unique<Plan>();
  for (const Tensor& tensor : tensors) {
    plan->specs.push_back({tensor.shape(), tensor.dtype()});
    plan->devices.push_back(tensor.device());
  }
  plan->bytes_per_pack = bytes_per_pack;
  // A cost that decides nothing need not be known.
  const bool cost_matters = tensors.size() > 1 && bytes_per_pack == 0;
  const CommunicationCost cost = cost_ ? *cost_ : cost_matters ? communicator.cost() : CommunicationCost{};
  plan->packs = packs_by_device(plan->specs, plan->devices, bytes_per_pack, cost);
  // Members whose tensors are spread over their devices in different ways pack them in different ways.
  Fingerprint layout;
  layout.add(layout_of(plan->specs));
  for (const Pack& pack : plan->packs) {
    layout.add(pack.size());
    for (const std::size_t index : pack) layout.add(index);
  }
  plan->layout = layout.value();
  if (plans_.size() == kPlansKept) plans_.pop_back();
  plans_.insert(plans_.begin(), std::move(plan));
  return *plans_.front();
}

void BatchReducer::all_reduce(Communicator& communicator, std::span<const Tensor> tensors, ReduceOp op) {
  for (const Tensor& tensor : tensors) require_legal(op, tensor.dtype());
  Plan& plan = plan_for(communicator, tensors);
  plan.prepare_copies(communicator, tensors);
  Calls calls(communicator, op, plan.layout);
  for (std::size_t i = 0; i < plan.packs.size(); ++i) {
    const Pack& pack = plan.packs[i];
    if (pack.size() == 1) {
      calls.all_reduce(tensors[pack.front()], tensors[pack.front()]);
      continue;
    }
    const Copy& copy = *plan.copies[i];
    copy_in(copy, tensors, pack);
    calls.all_reduce(copy.flat, copy.flat);
    copy_out(copy, tensors, pack);
  }
}

std::vector<Tensor> BatchReducer::all_reduced(Communicator& communicator, std::span<const Tensor> tensors,
                                              ReduceOp op) {
  for (const Tensor& tensor : tensors) require_legal(op, tensor.dtype());
  const Plan& plan = plan_for(communicator, tensors);
  Calls calls(communicator, op, plan.layout);
  std::vector<Tensor> results(tensors.size());
  for (const Pack& pack : plan.packs) {
    if (pack.size() == 1) {
      const Tensor& input = tensors[pack.front()];
      Tensor& output = results[pack.front()];
      output = Tensor::uninitialized(input.shape(), input.dtype(), input.device());
      calls.all_reduce(input, output);
      continue;
    }
    const TensorSpec flat = whole(pack, tensors);
    const Copy copy =
        copy_of(pack, tensors, Tensor::uninitialized(flat.shape, flat.dtype, tensors[pack.front()].device()));
    copy_in(copy, tensors, pack);
    for (std::size_t j = 0; j < pack.size(); ++j) results[pack[j]] = copy.pieces[j];
    calls.all_reduce(copy.flat, copy.flat);
  }
  return results;
}

}  // namespace cohort
