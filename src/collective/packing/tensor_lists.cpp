#include "tensor_lists.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_ops.h>

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

namespace {

// A shape travels as one row of integers: dtype, rank, extents.
constexpr auto kRowLength = static_cast<std::int64_t>(Shape::kLargestRank) + 2;

Tensor shape_row(const Tensor& tensor) {
  Tensor row = Tensor::zeros({kRowLength}, DType::kInt64);
  const auto values = row.span<std::int64_t>();
  values[0] = static_cast<std::int64_t>(tensor.dtype());
  values[1] = tensor.shape().rank();
  for (int axis = 0; axis < tensor.shape().rank(); ++axis) {
    values[static_cast<std::size_t>(axis) + 2] = tensor.shape()[axis];
  }
  return row;
}

Shape shape_of(const Tensor& row) {
  const auto values = row.span<std::int64_t>();
  return Shape(std::span<const std::int64_t>(values).subspan(2, static_cast<std::size_t>(values[1])));
}

DType dtype_of(const Tensor& row) { return static_cast<DType>(row.span<std::int64_t>()[0]); }

}  // namespace

std::vector<Tensor> all_gather_tensors(Communicator& communicator, const Tensor& tensor) {
  const Tensor rows = Tensor::zeros({communicator.size(), kRowLength}, DType::kInt64);
  communicator.all_gather(shape_row(tensor), rows);

  std::vector<Shape> shapes;
  std::vector<std::size_t> counts;
  std::int64_t total = 0;
  for (int member = 0; member < communicator.size(); ++member) {
    const Tensor row = rows.row(member);
    if (dtype_of(row) != dtype_of(rows.row(0))) {
      const std::span<const MemberInfo> members = communicator.members();
      throw InvalidArgument("cannot gather {} of {} with {} of {}: dtypes must agree",
                            to_string(dtype_of(row)),
                            describe(member, members[static_cast<std::size_t>(member)]),
                            to_string(dtype_of(rows.row(0))), describe(0, members[0]));
    }
    shapes.push_back(shape_of(row));
    counts.push_back(shapes.back().elements());
    total += static_cast<std::int64_t>(counts.back());
  }

  const Tensor flat = Tensor::uninitialized({total}, tensor.dtype(), tensor.device());
  communicator.all_gather_uneven(tensor, flat, counts);
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const Shape& shape : shapes) {
    const auto end = begin + static_cast<std::int64_t>(shape.elements());
    parts.push_back(flat.rows(begin, end).reshape(shape));
    begin = end;
  }
  return parts;
}

namespace {

constexpr std::size_t kSmallBytes = 64;
/// Tensor sizes grow from kFirstLargeBytes to kLastLargeBytes by kGrowth until one call takes long enough to
/// drown clock resolution and latency.
constexpr std::size_t kFirstLargeBytes = std::size_t{256} << 10;
constexpr std::size_t kLastLargeBytes = std::size_t{16} << 20;
constexpr std::size_t kGrowth = 4;
constexpr double kLongEnough = 1e-3;
/// Queued one after the other on a GPU, which is asked once whether it has done them, as in a step.
constexpr int kCallsPerRound = 4;
constexpr int kRounds = 3;

/// The nearest power of two.
double rounded(double value) { return std::exp2(std::round(std::log2(value))); }

class Measurement {
 public:
  explicit Measurement(Communicator& communicator)
      : communicator_(communicator), device_(communicator.device()) {}

  [[nodiscard]] CommunicationCost take() {
    const double latency = seconds_of_small();
    std::size_t bytes = kFirstLargeBytes;
    double large = seconds_of_large(bytes);
    while (slowest({large})[0] < kLongEnough && bytes < kLastLargeBytes)
      large = seconds_of_large(bytes *= kGrowth);
    // What a member measures may be below the latency, by noise.
    const double per_byte = std::max(large - latency, large / 2) / static_cast<double>(bytes);
    const double per_copied_byte = seconds_of_copy(bytes) / static_cast<double>(bytes);
    const std::vector<double> agreed =
        slowest({rounded(latency), rounded(per_byte), rounded(per_copied_byte)});
    return {.latency_seconds = agreed[0],
            .bytes_per_second = 1 / agreed[1],
            .copied_bytes_per_second = 1 / agreed[2]};
  }

 private:
  [[nodiscard]] Tensor zeros(std::size_t bytes) const {
    return Tensor::zeros({static_cast<std::int64_t>(bytes / sizeof(float))}, DType::kFloat32, device_);
  }

  /// The median of what `function` takes; the members begin each round together.
  template <class Function>
  [[nodiscard]] double median_seconds(Function function) {
    std::vector<double> seconds;
    function();  // connections and memory that are made when first used
    for (int round = 0; round < kRounds; ++round) {
      synchronize(device_);
      communicator_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      function();
      synchronize(device_);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    const auto middle = seconds.begin() + kRounds / 2;
    std::ranges::nth_element(seconds, middle);
    return std::max(*middle, 1e-9);  // a clock may stand still
  }

  [[nodiscard]] double seconds_of_small() {
    const Tensor tensor = zeros(kSmallBytes);
    const auto calls = [&] {
      for (int i = 0; i < kCallsPerRound; ++i) communicator_.all_reduce(tensor, ReduceOp::kSum);
    };
    return median_seconds(calls) / kCallsPerRound;
  }

  [[nodiscard]] double seconds_of_large(std::size_t bytes) {
    const Tensor tensor = zeros(bytes);
    return median_seconds([&] { communicator_.all_reduce(tensor, ReduceOp::kSum); });
  }

  [[nodiscard]] double seconds_of_copy(std::size_t bytes) {
    const Tensor from = zeros(bytes);
    const Tensor to = zeros(bytes);
    const auto copies = [&] {
      for (int i = 0; i < kCallsPerRound; ++i) to.copy_from(from);
    };
    return median_seconds(copies) / kCallsPerRound;
  }

  /// Each number of the member where it is the largest.
  [[nodiscard]] std::vector<double> slowest(std::initializer_list<double> own) {
    const Tensor numbers = Tensor::from(own);
    communicator_.all_reduce(numbers, ReduceOp::kMax);
    const std::span<const double> agreed = numbers.span<double>();
    return {agreed.begin(), agreed.end()};
  }

  Communicator& communicator_;
  Device device_;
};

}  // namespace

CommunicationCost measured_cost(Communicator& communicator) { return Measurement(communicator).take(); }

}  // namespace cohort
