#include "optimizer_share.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cohort {
namespace {

Tensor elements(const Tensor& whole, std::int64_t begin, std::int64_t end) { return whole.rows(begin, end); }

std::int64_t length(const SharePart& part) { return part.end - part.begin; }

}  // namespace

OptimizerShare::OptimizerShare(std::shared_ptr<const SharePlan> plan, std::span<const Tensor> values,
                               int replica, std::size_t slots)
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

/// One allocation for each slot and dtype; of all its parts.
void OptimizerShare::make_slots(std::size_t slots) {
  std::map<DType, std::int64_t> totals;
  for (const Part& part : parts_) totals[part.value.dtype()] += length(part.place);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    std::map<DType, std::pair<Tensor, std::int64_t>> rest;
    for (const auto& [dtype, total] : totals) {
      const auto first =
          std::ranges::find(parts_, dtype, [](const Part& part) { return part.value.dtype(); });
      rest.insert({dtype, {Tensor::zeros({total}, dtype, first->value.device()), 0}});
      slot_bytes_ += static_cast<std::size_t>(total) * size_of(dtype);
    }
    for (Part& part : parts_) {
      auto& [memory, begin] = rest.at(part.value.dtype());
      part.slots.push_back(elements(memory, begin, begin + length(part.place)));
      begin += length(part.place);
    }
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

void OptimizerShare::forget_gradients() { std::ranges::fill(gradients_, Tensor()); }

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

void OptimizerShare::update_and_gather(Communicator* communicator, const UpdateElements& update) {
  const auto update_part = [&](Part& part) {
    update(part.value, part.slots, part.gradient);
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

}  // namespace cohort
