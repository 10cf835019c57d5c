#include "carry_out.h"

#include <cstring>
#include <limits>

#include "direct.h"
#include "staged.h"
#include "tuning.h"

namespace cohort::node {
namespace {

Steps carry_out_small(Seat& seat, const CollectiveCall& call, const CallPlan plan) {
  SlotCall slot(seat, call, plan);
  co_await until([&] { return seat.all_announced(); });
  if (seat.disagreement()) {
    Steps explanation = seat.explain_disagreement(call);
    co_await finished(explanation);
  }
  slot.finish();
}

std::size_t smallest_direct_call(Reach reach, bool in_place) {
  switch (reach) {
    case Reach::kAddressed: return in_place ? kSmallestDirectInPlace : kSmallestDirect;
    case Reach::kSingleCopy: return kSmallestSingleCopy;
    case Reach::kNone: break;
  }
  return std::numeric_limits<std::size_t>::max();
}

Steps carry_out_large(Seat& seat, const CollectiveCall& call, const CallPlan plan) {
  seat.open(plan);
  const BufferAddresses addresses = addresses_of(call);
  std::memcpy(seat.payload() + sizeof(CallDetails), &addresses, sizeof addresses);
  seat.announce();
  co_await until([&] { return seat.all_announced(); });
  if (seat.disagreement()) {
    Steps explanation = seat.explain_disagreement(call);
    co_await finished(explanation);
  }
  const Reach reach = reach_of_buffers(seat);
  const bool in_place = all_in_place(seat);
  const bool directly = plan.bytes >= smallest_direct_call(reach, in_place);
  seat.algorithm = !directly ? "pieces" : reach == Reach::kAddressed ? "direct" : "single_copy";
  Steps exchange = directly ? exchange_directly(seat, call, plan.kernel, in_place)
                            : exchange_in_pieces(seat, call, plan.kernel);
  co_await finished(exchange);
}

}  // namespace

Steps carry_out(Seat& seat, const CollectiveCall& call) {
  const CallPlan& plan = seat.plan(call);
  return fits_slot(plan.bytes) ? carry_out_small(seat, call, plan) : carry_out_large(seat, call, plan);
}

void carry_out_now(Seat& seat, const CollectiveCall& call) {
  const CallPlan& plan = seat.plan(call);
  if (!fits_slot(plan.bytes)) return seat.drive(call, carry_out_large(seat, call, plan));
  SlotCall slot(seat, call, plan);
  seat.wait_for(call, [&] { return seat.all_announced(); });
  if (seat.disagreement()) seat.drive(call, seat.explain_disagreement(call));
  slot.finish();
}

}  // namespace cohort::node
