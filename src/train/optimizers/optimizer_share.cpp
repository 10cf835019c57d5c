#include "optimizer_share.h"

#include <algorithm>
#include <map>
#include <utility>

#include <cohort/base/fingerprint.h>

#include "share_plan.h"

namespace cohort {
namespace {

Tensor elements(const Tensor& whole, std::int64_t begin, std::int64_t end) { return whole.rows(begin, end); }

std::int64_t length(const SharePart& part) { return part.end - part.begin; }

}  // namespace

OptimizerShare::OptimizerShare(std::shared_ptr<const SharePlan> plan, std::span<const Tensor> values,
                               int replica, const SlotKindsOf& slots)
    : plan_(std::move(plan)), replica_(replica), gradients_(values.size()) {
  for (const Tensor& value : values) values_.push_back(value.reshape({-1}));
  for (const SharePart& place : plan_->parts_of(replica))
    parts_.push_back({place, elements(values_[place.variable], place.begin, place.end), {}});
  std::size_t part = plan_->runs().size();
  for (const SharedPack& pack : plan_->packs()) {
    const auto own = static_cast<std::size_t>(std::ranges::count(pack.parts, replica, &PackedPart::replica));
    const Device device = values_[pack.parts.front().variable].device();
    // What no part fills is summed and gathered with them.
    packs_.push_back({Tensor::zeros({pack.room * plan_->replicas()}, pack.dtype, device), part, part + own});
    part += own;
  }
  make_slots(slots);
}

void OptimizerShare::make_slots(const SlotKindsOf& slots_of) {
  std::map<DType, std::int64_t> totals;
  for (const Part& part : parts_) totals[part.value.dtype()] += length(part.place);
  for (const auto& [dtype, total] : totals) {
    const SlotKinds kinds = slots_of(dtype);
    for (std::size_t slot = 0; slot < kinds.beginnings.size(); ++slot) make_slot(dtype, total, kinds, slot);
  }
}

/// One allocation for all parts of variables of this dtype.
void OptimizerShare::make_slot(DType dtype, std::int64_t total, const SlotKinds& kinds, std::size_t slot) {
  const auto first = std::ranges::find(parts_, dtype, [](const Part& part) { return part.value.dtype(); });
  const Tensor memory = Tensor::full({total}, kinds.dtype, kinds.beginnings[slot], first->value.device());
  slot_bytes_ += memory.bytes();
  std::int64_t begin = 0;
  for (Part& part : parts_) {
    if (part.value.dtype() != dtype) continue;
    part.slots.push_back(elements(memory, begin, begin + length(part.place)));
    if (slot == kinds.master) part.slots.back().copy_from(part.value.on_host().cast(kinds.dtype));
    begin += length(part.place);
  }
}

/// The caller's gradients are left alone then.
void OptimizerShare::make_sums() {
  if (has_sums_) return;
  for (std::size_t run = 0; run < plan_->runs().size(); ++run) {
    Part& part = parts_[run];
    part.sum = Tensor::uninitialized({length(part.place)}, part.value.dtype(), part.value.device());
  }
  has_sums_ = true;
}

Tensor OptimizerShare::own_block(const Tensor& blocks) const {
  const std::int64_t block = blocks.shape()[0] / plan_->replicas();
  return elements(blocks, replica_ * block, (replica_ + 1) * block);
}

void OptimizerShare::forget_gradients() {
  std::ranges::fill(gradients_, Tensor());
  for (Part& part : parts_) part.gradient = Tensor();
}

double OptimizerShare::sum_examples(Communicator* communicator, double own, DType dtype) {
  const Device device = communicator == nullptr ? Device() : communicator->device();
  if (!examples_ || examples_->dtype() != dtype) examples_ = Tensor::zeros({}, dtype, device);
  examples_->fill(own);
  if (communicator != nullptr) communicator->all_reduce(*examples_, ReduceOp::kSum);
  return examples_->on_host().item<double>();
}

void OptimizerShare::scatter(Communicator& communicator, bool in_place) {
  if (!in_place) make_sums();
  for (std::size_t run = 0; run < plan_->runs().size(); ++run) {
    const SharedRun& place = plan_->runs()[run];
    const Tensor all = elements(gradients_[place.variable], place.begin, place.end);
    Part& part = parts_[run];
    part.gradient = in_place ? own_block(all) : part.sum;
    communicator.reduce_scatter(all, part.gradient, ReduceOp::kSum, {.layout = run + 1});
  }
  for (std::size_t pack = 0; pack < packs_.size(); ++pack) scatter_pack(communicator, pack);
}

void OptimizerShare::scatter_pack(Communicator& communicator, std::size_t pack) {
  const Tensor& memory = packs_[pack].memory;
  std::size_t own = packs_[pack].first_part;
  for (const PackedPart& part : plan_->packs()[pack].parts) {
    const Tensor place = elements(memory, part.place, part.place + part.end - part.begin);
    place.copy_from(elements(gradients_[part.variable], part.begin, part.end));
    if (part.replica == replica_) parts_[own++].gradient = place;
  }
  communicator.reduce_scatter(memory, own_block(memory), ReduceOp::kSum,
                              {.layout = plan_->runs().size() + pack + 1});
}

void OptimizerShare::take_own_gradients() {
  for (Part& part : parts_)
    part.gradient = elements(gradients_[part.place.variable], part.place.begin, part.place.end);
}

void OptimizerShare::sum_squares(Communicator* communicator) {
  if (!squares_) {
    std::size_t blocks = 0;
    for (const Tensor& value : values_) {
      first_block_.push_back(blocks);
      blocks += blocks_of(value.elements());
    }
    first_block_.push_back(blocks);
    const bool is_host = communicator == nullptr || !is_cpu(communicator->device());
    squares_ = Tensor::zeros({static_cast<std::int64_t>(blocks)}, DType::kFloat64,
                             is_host ? Device() : communicator->device());
  }
  const std::span<double> sums = squares_->span<double>();
  std::ranges::fill(sums, 0.0);
  for (const Part& part : parts_) {
    const auto first =
        first_block_[part.place.variable] + static_cast<std::size_t>(part.place.begin) / kSquaresBlock;
    const Tensor there = part.gradient.on_host();
    block_squares(there, sums.subspan(first, blocks_of(there.elements())));
  }
  if (communicator == nullptr) return;
  // Of each block there are one number and zeros.
  const Tensor within_reach = squares_->to(communicator->device());
  communicator->all_reduce(within_reach, ReduceOp::kSum);
  if (!is_cpu(within_reach)) squares_->copy_from(within_reach);
}

double OptimizerShare::add_squares(double sum, std::size_t variable) const {
  const auto sums = squares_->span<double>();
  for (std::size_t block = first_block_[variable]; block < first_block_[variable + 1]; ++block)
    sum += sums[block];
  return sum;
}

void OptimizerShare::update_and_gather(Communicator* communicator, const UpdateElements& update) {
  const auto update_part = [&](Part& part) {
    update(part.place.variable, part.value, part.slots, part.gradient);
    part.gradient = Tensor();  // it is the caller's
  };
  for (std::size_t run = 0; run < plan_->runs().size(); ++run) {
    update_part(parts_[run]);
    if (communicator == nullptr) continue;
    const SharedRun& place = plan_->runs()[run];
    communicator->all_gather(parts_[run].value, elements(values_[place.variable], place.begin, place.end),
                             {.layout = run + 1});
  }
  for (std::size_t pack = 0; pack < packs_.size(); ++pack) {
    for (std::size_t part = packs_[pack].first_part; part < packs_[pack].end_part; ++part)
      update_part(parts_[part]);
    if (communicator != nullptr) gather_pack(*communicator, pack);
  }
  forget_gradients();
}

void OptimizerShare::gather_pack(Communicator& communicator, std::size_t pack) {
  const Tensor& memory = packs_[pack].memory;
  const auto for_each_part = [&](auto copy) {
    for (const PackedPart& part : plan_->packs()[pack].parts)
      copy(part.replica == replica_, elements(memory, part.place, part.place + part.end - part.begin),
           elements(values_[part.variable], part.begin, part.end));
  };
  for_each_part([](bool is_own, const Tensor& place, const Tensor& value) {
    if (is_own) place.copy_from(value);
  });
  communicator.all_gather(own_block(memory), memory, {.layout = plan_->runs().size() + pack + 1});
  for_each_part([](bool is_own, const Tensor& place, const Tensor& value) {
    if (!is_own) value.copy_from(place);
  });
}

std::vector<OptimizerShare::SlotPart> OptimizerShare::slot_parts(std::size_t variable,
                                                                 std::size_t slot) const {
  std::vector<SlotPart> parts;
  for (const Part& part : parts_)
    if (part.place.variable == variable)
      parts.push_back({part.place.begin, part.place.end, part.slots[slot]});
  return parts;
}

namespace {

constexpr std::uint64_t kAppliesInShares = fingerprint_of("apply_gradients in shares");

/// A component on each replica's device is what shares are gathered into.
void require_mirrored(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  if (owner == nullptr) {
    if (get_strategy().num_replicas_in_sync() == 1) return;
    throw InvalidArgument(
        "ShardedOptimizer: variable '{}' belongs to no strategy; make it in the scope of the strategy",
        variable.name());
  }
  const bool has_one_copy = owner->variable_placement() != VariablePlacement::kMirrored;
  if (has_one_copy && (owner->num_replicas_in_sync() > 1 || variable.state()->is_kept_elsewhere())) {
    throw Unimplemented(
        "ShardedOptimizer: variable '{}' is kept in one copy under {}; use the optimizer itself, or a "
        "strategy that "
        "mirrors variables",
        variable.name(), owner->strategy_name());
  }
  if (variable.synchronization() == VariableSynchronization::kOnRead) {
    throw InvalidArgument(
        "ShardedOptimizer: variable '{}' is ON_READ, each replica has its own; it cannot be updated in "
        "shares",
        variable.name());
  }
  if (strategy_of(variable)->has_own_cross_device_ops()) {
    throw Unimplemented(
        "ShardedOptimizer: the program's cross-device operations for {} have none that scatters sums; use "
        "the "
        "optimizer itself",
        owner->strategy_name());
  }
}

/// The order of a plan: that in which the variables were made, the same on all workers.
std::vector<Variable> in_order_of_making(std::vector<Variable> variables) {
  std::ranges::stable_sort(variables, {},
                           [](const Variable& variable) { return variable.state()->number(); });
  return variables;
}

}  // namespace

StrategyExtended* strategy_of(const Variable& variable) {
  return static_cast<StrategyExtended*>(variable.state()->owner());  // only strategies own variables
}

std::string names_of(const std::vector<Variable>& variables) {
  std::string names;
  for (const Variable& variable : variables) names += (names.empty() ? "" : ", ") + variable.name();
  return names;
}

std::size_t ShardedOptimizer::Shares::place_of(const Variable& variable) const {
  const auto found = std::ranges::find(variables, variable);
  if (found != variables.end()) return static_cast<std::size_t>(found - variables.begin());
  throw InvalidArgument(
      "ShardedOptimizer: variable '{}' is not one of those that the replicas share, which are {}; give "
      "all variables in the first step, or to make_slots or the checkpoint before it",
      variable.name(), names_of(variables));
}

void ShardedOptimizer::Shares::begin(std::vector<Variable> all) {
  for (const Variable& variable : all) require_mirrored(variable);
  if (plan != nullptr) {
    for (const Variable& variable : all) static_cast<void>(place_of(variable));
    return;
  }
  variables = in_order_of_making(std::move(all));
  std::vector<TensorSpec> specs;
  Fingerprint numbers;
  numbers.add(kAppliesInShares);
  for (const Variable& variable : variables) {
    specs.push_back({variable.shape(), variable.dtype()});
    numbers.add(variable.state()->number());
  }
  fingerprint = numbers.value();
  const StrategyExtended* strategy = variables.empty() ? nullptr : strategy_of(variables.front());
  plan = std::make_shared<const SharePlan>(specs, strategy == nullptr ? 1 : strategy->num_replicas_in_sync());
}

OptimizerShare& ShardedOptimizer::Shares::share_of(int local_replica, const SlotKindsOf& slots) {
  std::unique_ptr<OptimizerShare>& share = by_replica[local_replica];
  if (share != nullptr) return *share;
  const auto component = static_cast<std::size_t>(std::max(local_replica, 0));
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.components()[component]);
  const StrategyExtended* strategy = variables.empty() ? nullptr : strategy_of(variables.front());
  const int first = strategy == nullptr ? 0 : strategy->first_replica_id();
  share = std::make_unique<OptimizerShare>(plan, values, first + static_cast<int>(component), slots);
  return *share;
}

const std::vector<std::size_t>& ShardedOptimizer::Shares::places_of(
    int local_replica, const std::vector<GradientAndVariable>& gradients) {
  Order& order = orders[local_replica];
  const auto is_state_of = [](const std::shared_ptr<VariableState>& state, const GradientAndVariable& pair) {
    return state == pair.variable.state();
  };
  if (std::ranges::equal(order.list, gradients, is_state_of) && !order.list.empty()) return order.places;
  order = {};
  for (const GradientAndVariable& pair : gradients) {
    order.places.push_back(place_of(pair.variable));
    order.list.push_back(pair.variable.state());
  }
  std::vector<std::size_t> sorted = order.places;
  std::ranges::sort(sorted);
  const bool is_each_once = std::ranges::adjacent_find(sorted) == sorted.end();
  if (is_each_once && sorted.size() == variables.size()) return order.places;
  order = {};
  throw InvalidArgument(
      "ShardedOptimizer: a step has {} gradients, but the replicas share {} variables: {}; give one "
      "gradient of each in every step",
      gradients.size(), variables.size(), names_of(variables));
}

}  // namespace cohort
