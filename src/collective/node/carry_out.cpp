#include "carry_out.h"

#include <cstring>
#include <optional>

#include "cost_model.h"
#include "direct.h"
#include "probe.h"
#include "staged.h"

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

/// Whether this member's own buffers settle that the call goes in pieces, whatever the others have.
bool goes_in_pieces(const Seat& seat, const CollectiveCall& call, const BufferAddresses& own,
                    const WayChoice& choice, std::size_t bytes) {
  const bool private_to_process =
      !seat.group().is_one_process() && (!own.input_in_heap || !own.output_in_heap);
  const Reach best = seat.group().memory().has_single_copy() ? Reach::kSingleCopy : Reach::kNone;
  return private_to_process && own.input != 0 && own.output != 0 &&
         choice.way(call.kind, best, false, bytes) == Way::kPieces;
}

Steps exchange(Seat& seat, const CollectiveCall& call, const CallPlan plan, const WayChoice choice) {
  seat.open(plan);
  const BufferAddresses own = addresses_of(call, seat.place());
  std::memcpy(seat.payload_of(seat.place().rank) + sizeof(CallDetails), &own, sizeof own);
  seat.announce();
  Steps exchange;
  if (goes_in_pieces(seat, call, own, choice, plan.bytes)) {
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
  const Way way = choice.way(call.kind, reach, in_place, plan.bytes);
  seat.algorithm = to_string(way);
  seat.reason = choice.reason(call.kind, reach, in_place);
  if (!exchange.started()) {
    exchange = way == Way::kPieces ? exchange_in_pieces(seat, call, plan.kernel)
                                   : exchange_directly(seat, call, plan.kernel, in_place);
  }
  co_await finished(exchange);
}

/// All members are found to have called the same; nothing moves yet.
Steps agree(Seat& seat, const CollectiveCall& call, const CallPlan plan) {
  seat.open(plan);
  seat.announce();
  co_await until([&] { return seat.all_announced(); });
  if (seat.disagreement()) {
    Steps explanation = seat.explain_disagreement(call);
    co_await finished(explanation);
  }
}

/// Before the first call that is too large for a slot, the members agree on the table that decides about it.
Steps carry_out_first_large(Seat& seat, const CollectiveCall& call, const CallPlan plan) {
  const bool is_whole = !seat.in_parts();
  if (is_whole) seat.begin_parts(call);
  Steps agreement = agree(seat, call, plan);
  co_await finished(agreement);
  Steps tuning = agree_on_tuning(seat);
  co_await finished(tuning);
  Steps exchange = carry_out(seat, call);
  co_await finished(exchange);
  if (is_whole) seat.end_parts();
}

/// A way that COHORT_ALGORITHM names for such calls.
std::optional<Way> wanted_way(const Seat& seat, const CollectiveCall& call) {
  const std::optional<BuiltInAlgorithm> forced = seat.group().selection().forced(seat.kind_of_whole(call));
  if (forced == BuiltInAlgorithm::kPieces) return Way::kPieces;
  if (forced == BuiltInAlgorithm::kDirect) return Way::kDirect;
  if (forced == BuiltInAlgorithm::kSingleCopy) return Way::kSingleCopy;
  return std::nullopt;
}

/// By an algorithm that the program has registered.
Steps carry_out_registered(Seat& seat, const CollectiveCall& call, const CallPlan plan,
                           const Selection::Choice choice) {
  Steps agreement = agree(seat, call, plan);
  co_await finished(agreement);
  seat.algorithm = choice.algorithm->name();
  seat.reason = choice.forced ? ChoiceReason::kForced : ChoiceReason::kModel;
  // Whoever waits in the middle of it can tell who has not come to its end.
  seat.await_next_shares();
  Steps steps = choice.algorithm->carry_out(seat.peers(), call);
  co_await finished(steps);
  seat.raise_shares();
  co_await until([&] { return seat.all_have_shares(); });
}

Selection::Choice registered_choice(const Seat& seat, const CollectiveCall& call, const CallPlan& plan) {
  const Selection& selection = seat.group().selection();
  // Parts of calls over several nodes are no concern of a program's.
  // And urgent calls would meet the messages of normal ones.
  if (!selection.has_registered() || seat.reaches_outside() || call.priority != Priority::kNormal ||
      seat.group().fixes_order_of(call))
    return {};
  const CallShape shape{.kind = call.kind,
                        .dtype = call.dtype,
                        .op = call.op,
                        .elements = plan.elements,
                        .bytes = plan.bytes,
                        .uneven = !call.counts.empty(),
                        .members = seat.place().size,
                        .nodes = 1};
  return selection.choose(shape, kNodeConstants, built_in_seconds);
}

Steps carry_out_large(Seat& seat, const CollectiveCall& call, const CallPlan& plan) {
  if (const Selection::Choice choice = registered_choice(seat, call, plan); choice.algorithm != nullptr)
    return carry_out_registered(seat, call, plan, choice);
  if (!seat.tuning) return carry_out_first_large(seat, call, plan);
  return exchange(seat, call, plan, {*seat.tuning, wanted_way(seat, call)});
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

Steps carry_out_by(Seat& seat, const CollectiveCall& call, Way way) {
  static const TuningTable built_in;
  return exchange(seat, call, seat.plan(call), {built_in, way});
}

}  // namespace cohort::node
