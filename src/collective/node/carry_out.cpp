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

std::size_t smallest_addressed_call(CollectiveKind kind, bool in_place) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return in_place ? kSmallestDirectReduction : kSmallestDirectOutOfPlace;
    case CollectiveKind::kReduce:
    case CollectiveKind::kReduceScatter: return kSmallestDirectReduction;
    case CollectiveKind::kBroadcast: return kSmallestDirectBroadcast;
    default: return kSmallestDirectMove;
  }
}

std::size_t smallest_direct_call(CollectiveKind kind, Reach reach, bool in_place) {
  switch (reach) {
    case Reach::kAddressed: return smallest_addressed_call(kind, in_place);
    case Reach::kSingleCopy: return kSmallestSingleCopy;
    case Reach::kNone: break;
  }
  return std::numeric_limits<std::size_t>::max();
}

/// Whether this member's own buffers settle that the call goes in pieces, whatever the others have.
bool goes_in_pieces(const Seat& seat, CollectiveKind kind, const BufferAddresses& own, std::size_t bytes) {
  const bool private_to_process =
      !seat.group().is_one_process() && (!own.input_in_heap || !own.output_in_heap);
  const Reach best = seat.group().memory().has_single_copy() ? Reach::kSingleCopy : Reach::kNone;
  return private_to_process && own.input != 0 && own.output != 0 &&
         bytes < smallest_direct_call(kind, best, false);
}

Steps carry_out_large(Seat& seat, const CollectiveCall& call, const CallPlan plan) {
  seat.open(plan);
  const BufferAddresses own = addresses_of(call, seat.place());
  std::memcpy(seat.payload_of(seat.place().rank) + sizeof(CallDetails), &own, sizeof own);
  seat.announce();
  Steps exchange;
  if (goes_in_pieces(seat, call.kind, own, plan.bytes)) {
    // The first pieces are on their way while the announcements are.
    exchange = exchange_in_pieces(seat, call, plan.kernel);
    exchange.resume();
  }
  co_await until([&] { return seat.all_announced(); });
  if (seat.disagreement()) {
    Steps explanation = seat.explain_disagreement(call);
    co_await finished(explanation);
  }
  const Reach reach = reach_of_buffers(seat);
  const bool in_place = all_in_place(seat);
  const bool directly = plan.bytes >= smallest_direct_call(call.kind, reach, in_place);
  seat.algorithm = !directly ? "pieces" : reach == Reach::kAddressed ? "direct" : "single_copy";
  if (!exchange.started()) {
    exchange = directly ? exchange_directly(seat, call, plan.kernel, in_place)
                        : exchange_in_pieces(seat, call, plan.kernel);
  }
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
