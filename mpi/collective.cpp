#include "collective.h"

#include <numeric>
#include <vector>

#include "eager.h"

namespace cohort::mpi {

void Collective::submit(Agreement& agreement, const Place& place) const {
  agreement.submit(own_signature(), is_eager(call(), place.size) ? eager_contribution(call(), place.rank)
                                                                 : std::span<const std::byte>());
}

bool Collective::can_be_settled(Agreement& agreement, const Place& place) {
  if (place.rank == 0) return agreement.gathered(own_signature(), eager_contribution(call(), 0));
  const std::optional<std::span<const std::byte>> result = agreement.consent();
  if (result) eager_result_ = *result;
  return result.has_value();
}

void Collective::settle(Agreement& agreement, const Place& place, const Operators& operators,
                        std::span<const MemberInfo> members) {
  const bool eager = is_eager(call(), place.size);
  if (place.rank == 0) {
    require_agreement(agreement.signatures(), members);
    if (eager) eager_result_ = eager_result(call(), agreement.contributions(), agreement.room_for_result());
    agreement.give_consent(eager_result_);
  }
  agreed_ = true;
  if (eager) {
    take_eager_result(call(), place.rank, eager_result_);
    finish();
  } else if (place.reproducible && reduces(call().kind) && depends_on_order(call().op, call().dtype)) {
    ordered_transfer_.emplace(place, operators, call());
  } else {
    transfer_.emplace(place, operators, call());
  }
}

void Collective::require_agreement(std::span<const CallSignature> by_member,
                                   std::span<const MemberInfo> members) const {
  int odd = -1;
  std::vector<int> callers(by_member.size());
  std::iota(callers.begin(), callers.end(), 0);
  const std::optional<std::string> mismatch = explain_mismatch(by_member, callers, members, odd);
  if (!mismatch) return;
  throw InvalidArgument(ErrorOrigin{name(), odd, members[static_cast<std::size_t>(odd)].host}, *mismatch);
}

bool Collective::advance() {
  if (!(transfer_ ? transfer_->advance() : ordered_transfer_->advance())) return false;
  finish();
  return true;
}

}  // namespace cohort::mpi
