#include "rank_order_transfer.h"

#include <cstring>
#include <vector>

#include <cohort/collective/reduction.h>

namespace cohort::mpi {
namespace {

std::size_t blocks_of(std::size_t elements, std::size_t members) {
  return (elements + members - 1) / members;
}

}  // namespace

RankOrderTransfer::RankOrderTransfer(const Place& place, const Operators& operators,
                                     const CollectiveCall& call)
    : place_(place),
      operators_(operators),
      call_(call),
      members_(static_cast<std::size_t>(place.size)),
      block_elements_(is_scatter() ? call.elements : blocks_of(call.elements, members_)) {
  if (call.elements > 0) exchange_contributions();
}

void RankOrderTransfer::exchange_contributions() {
  contributions_ = allocate(bytes(members_), Device());
  part_.kind = CollectiveKind::kAllToAll;
  part_.dtype = call_.dtype;
  part_.elements = block_elements_;
  part_.input = call_.input;
  part_.output = contributions_->data();
  const std::size_t own_bytes = call_.elements * size_of(call_.dtype);
  if (!is_scatter() && own_bytes < bytes(members_)) {
    input_ = allocate(bytes(members_), Device());
    std::memcpy(input_->data(), call_.input, own_bytes);
    std::memset(input_->data() + own_bytes, 0, bytes(members_) - own_bytes);
    part_.input = input_->data();
  }
  step_.emplace(place_, operators_, part_);
}

bool RankOrderTransfer::advance() {
  if (step_ && !step_->advance()) return false;
  if (!combined_) {
    combined_ = true;
    if (call_.elements == 0) return true;
    combine();
    if (is_scatter()) return true;
    gather_results();
    return false;
  }
  if (call_.output != nullptr) std::memcpy(call_.output, part_.output, call_.elements * size_of(call_.dtype));
  return true;
}

void RankOrderTransfer::combine() {
  std::vector<const std::byte*> inputs;
  for (std::size_t member = 0; member < members_; ++member)
    inputs.push_back(contributions_->data() + bytes(member));
  if (!is_scatter()) result_ = allocate(bytes(1 + members_), Device());
  reduce_elements(call_.dtype, call_.op, inputs, is_scatter() ? call_.output : result_->data(),
                  block_elements_);
}

void RankOrderTransfer::gather_results() {
  part_.kind = call_.kind == CollectiveKind::kReduce ? CollectiveKind::kGather : CollectiveKind::kAllGather;
  part_.root = call_.root;
  part_.input = result_->data();
  part_.output = result_->data() + bytes(1);
  step_.emplace(place_, operators_, part_);
}

}  // namespace cohort::mpi
