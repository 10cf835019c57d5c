#include "execute.h"

#include <cstring>
#include <optional>

#include "direct.h"
#include "pieces.h"
#include "small_call.h"

namespace cohort::node {
namespace {

bool is_from_root(const CollectiveCall& call) {
  return traits_of(call.kind).pattern == CollectiveTraits::Pattern::kFromRoot;
}

/// Whether this member gets nothing from the others in an eager call.
bool only_sends(const Endpoint& endpoint, const CollectiveCall& call) {
  return (endpoint.position().rank == call.root) == is_from_root(call);
}

/// For the others: whether all is here that they get.
bool has_come(Endpoint& endpoint, const CollectiveCall& call) {
  return is_from_root(call) ? endpoint.root_announced(call.root) : endpoint.all_announced();
}

Task<> execute_eager(Endpoint& endpoint, const CollectiveCall& call, const CallPlan plan) {
  const SmallCall small = begin_eager(endpoint, call, plan);
  if (!only_sends(endpoint, call)) {
    co_await until([&] { return has_come(endpoint, call); });
    if (endpoint.disagreement()) {
      co_await endpoint.failure_watch().explain_disagreement(call);
    }
    finish_among_many(small);
  } else if (call.kind == CollectiveKind::kScatter) {
    finish_among_many(small);  // the root's own block
  }
  if (!endpoint.next_line_is_free()) {
    co_await until([&] { return endpoint.half_of_lines_are_free(); });
  }
}

Task<> execute_small(Endpoint& endpoint, const CollectiveCall& call, const CallPlan plan) {
  const SmallCall small = begin_small(endpoint, call, plan);
  co_await until([&] { return endpoint.all_announced(); });
  if (endpoint.disagreement()) {
    co_await endpoint.failure_watch().explain_disagreement(call);
  }
  if (small.in_two_steps()) {
    reduce_own_part(small);
    co_await until([&] { return is_reduced(small); });
  }
  finish_small(small);
}

/// Whether this member's own buffers decide that the call goes in pieces, wherever the others' are.
bool goes_in_pieces(const Endpoint& endpoint, const CollectiveCall& call, const BufferAddresses& own,
                    const ProtocolChoice& choice, std::size_t bytes) {
  const bool private_to_process =
      !endpoint.group().is_one_process() && (!own.input_in_heap || !own.output_in_heap);
  const BufferAccess best =
      endpoint.group().memory().has_single_copy() ? BufferAccess::kSingleCopy : BufferAccess::kNone;
  return private_to_process && own.input != 0 && own.output != 0 &&
         choice.protocol(call.kind, best, false, bytes) == Protocol::kPieces;
}

Task<> exchange(Endpoint& endpoint, const CollectiveCall& call, const CallPlan plan,
                const ProtocolChoice choice) {
  endpoint.open(plan);
  const BufferAddresses own = addresses_of(call, endpoint.position());
  std::memcpy(endpoint.own_payload() + sizeof(CallDetails), &own, sizeof own);
  endpoint.set_contents({.payload_bytes = sizeof(CallDetails) + sizeof own});
  endpoint.announce();
  Task<> exchange;
  const bool in_steps = endpoint.has_levels() || goes_in_shares(endpoint, call.kind, plan.bytes);
  if (!in_steps && endpoint.cells_are_free() && goes_in_pieces(endpoint, call, own, choice, plan.bytes)) {
    // The first pieces are on their way while the announcements are.
    exchange = exchange_in_pieces(endpoint, call, plan.kernel);
    exchange.resume();
  }
  co_await until([&] { return endpoint.all_announced(); });
  if (endpoint.disagreement()) {
    co_await endpoint.failure_watch().explain_disagreement(call);
  }
  endpoint.record_start();
  endpoint.set_cells_are_free();  // the others have ended their calls before
  const auto [access, in_place] = announced_buffers(endpoint);
  Protocol protocol = choice.protocol(call.kind, access, in_place, plan.bytes);
  const bool along_members = in_steps && goes_along_members(endpoint, call, plan.bytes);
  ChoiceReason reason = choice.reason(call.kind, access, in_place);
  if (protocol == Protocol::kSingleCopy && along_members && !choice.is_granted(access)) {
    protocol = Protocol::kPieces;  // on shared cores the kernel's copies take longer
    reason = ChoiceReason::kModel;
  }
  endpoint.set_algorithm(to_string(protocol));
  endpoint.set_reason(reason);
  if (!exchange.valid()) {
    if (protocol != Protocol::kPieces && goes_along_sockets(endpoint, call, access))
      exchange = reduce_along_sockets(endpoint, call);
    else if (protocol != Protocol::kPieces)
      exchange = exchange_directly(endpoint, call, plan.kernel, in_place);
    else if (along_members)
      exchange = reduce_along_members(endpoint, call);
    else if (in_steps)
      exchange = exchange_in_steps(endpoint, call, plan.kernel);
    else
      exchange = exchange_in_pieces(endpoint, call, plan.kernel);
  }
  co_await exchange;
}

/// All members are found to have called the same; nothing moves yet.
Task<> agree(Endpoint& endpoint, const CollectiveCall& call, const CallPlan plan) {
  endpoint.open(plan);
  endpoint.announce();
  co_await until([&] { return endpoint.all_announced(); });
  if (endpoint.disagreement()) {
    co_await endpoint.failure_watch().explain_disagreement(call);
  }
  endpoint.record_start();
}

/// Before the first call that is too large for a slot, the members agree on the table that decides about it.
Task<> execute_first_large(Endpoint& endpoint, const CollectiveCall& call, const CallPlan plan) {
  const bool is_whole = !endpoint.in_subcalls();
  if (is_whole) endpoint.begin_subcalls(call);
  co_await agree(endpoint, call, plan);
  co_await agree_on_tuning(endpoint);
  co_await execute(endpoint, call);
  if (is_whole) endpoint.end_subcalls();
}

/// The protocol that COHORT_ALGORITHM names for such calls.
std::optional<Protocol> forced_protocol(const Endpoint& endpoint, const CollectiveCall& call) {
  const BuiltInAlgorithm* const forced = endpoint.group().selection().forced(endpoint.kind_of_whole(call));
  return forced == nullptr ? std::nullopt : forced->protocol;
}

/// Executes the call by an algorithm that the program has registered.
Task<> execute_registered(Endpoint& endpoint, const CollectiveCall& call, const CallPlan plan,
                          const Selection::Choice choice) {
  co_await agree(endpoint, call, plan);
  endpoint.set_algorithm(choice.algorithm->name());
  endpoint.set_reason(choice.forced ? ChoiceReason::kForced : ChoiceReason::kModel);
  // A member that waits in the middle of it can then name those that have not come to its end.
  endpoint.await_next_done();
  co_await choice.algorithm->execute(endpoint.peers(), call);
  endpoint.raise_done();
  co_await until([&] { return endpoint.all_are_done(); });
  endpoint.failure_watch().require_unfailed_so_far();
}

Selection::Choice registered_choice(const Endpoint& endpoint, const CollectiveCall& call,
                                    const CallPlan& plan) {
  const Selection& selection = endpoint.group().selection();
  // Parts of calls over several nodes are no concern of a program's, and urgent calls would meet the messages
  // of normal ones.
  if (!selection.has_registered() || endpoint.reaches_other_nodes() || call.priority != Priority::kNormal ||
      endpoint.group().fixes_order_of(call))
    return {};
  const CallShape shape{.kind = call.kind,
                        .dtype = call.dtype,
                        .op = call.op,
                        .elements = plan.elements,
                        .bytes = plan.bytes,
                        .uneven = !call.counts.empty(),
                        .members = endpoint.position().size,
                        .nodes = 1};
  return selection.choose(shape, kNodeConstants, built_in_seconds);
}

Task<> execute_large(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan) {
  if (const Selection::Choice choice = registered_choice(endpoint, call, plan); choice.algorithm != nullptr)
    return execute_registered(endpoint, call, plan, choice);
  if (!endpoint.tuning()) return execute_first_large(endpoint, call, plan);
  return exchange(endpoint, call, plan,
                  {*endpoint.tuning(), forced_protocol(endpoint, call), endpoint.position().size});
}

// Not inline in `execute_now`: what a short call does not need must not cost it registers.

[[gnu::noinline]] void execute_large_now(Endpoint& endpoint, const CollectiveCall& call,
                                         const CallPlan& plan) {
  endpoint.record_arrival(call, plan);
  endpoint.drive(call, execute_large(endpoint, call, plan));
  endpoint.record_end();
  endpoint.log_choice(call);
}

[[gnu::noinline]] void fail_by_disagreement(Endpoint& endpoint, const CollectiveCall& call) {
  endpoint.drive(call, endpoint.failure_watch().explain_disagreement(call));
}

[[gnu::noinline]] void reduce_together(const SmallCall small) {
  reduce_own_part(small);
  small.endpoint.wait_for(small.call, [&small] { return is_reduced(small); });
}

/// This member may be behind those that send in eager calls.
void expect_more(Endpoint& endpoint, const CollectiveCall& call, std::size_t bytes) {
  const auto each_sender = [&](const auto& look) {
    if (is_from_root(call)) return look(call.root);
    for (int member = 0; member < endpoint.position().size; ++member) {
      if (member != call.root) look(member);
    }
  };
  endpoint.expect_eager_lines(each_sender, bytes);
}

[[gnu::noinline]] void execute_eager_now(Endpoint& endpoint, const CollectiveCall& call,
                                         const CallPlan& plan) {
  const SmallCall small = begin_eager(endpoint, call, plan);
  endpoint.record_arrival(call, plan);
  if (only_sends(endpoint, call)) {
    endpoint.record_end_at_arrival();
    endpoint.prepare_eager_lines(plan.bytes);
    if (call.kind == CollectiveKind::kScatter) finish_among_many(small);  // the root's own block
  } else {
    const auto is_here = [&] { return has_come(endpoint, call); };
    if (!is_here())
      endpoint.wait_for(call, is_here);
    else
      expect_more(endpoint, call, plan.bytes);
    if (endpoint.disagreement()) [[unlikely]]
      fail_by_disagreement(endpoint, call);
    finish_among_many(small);
    endpoint.record_end_at_once();
  }
  if (!endpoint.next_line_is_free()) [[unlikely]]
    endpoint.wait_for(call, [&endpoint] { return endpoint.half_of_lines_are_free(); });
}

/// After all have announced it.
inline void finish_small_now(const SmallCall& small) {
  if (small.endpoint.disagreement()) [[unlikely]]
    fail_by_disagreement(small.endpoint, small.call);
  if (small.in_two_steps()) [[unlikely]]
    reduce_together(small);
  finish_small(small);
  small.endpoint.record_end_at_once();
}

[[gnu::noinline]] void execute_rooted_now(Endpoint& endpoint, const CollectiveCall& call,
                                          const CallPlan& plan) {
  const SmallCall small = begin_small(endpoint, call, plan);
  endpoint.record_arrival(call, plan);
  const auto all_are_here = [&endpoint] { return endpoint.all_announced(); };
  // The root has more to do than the others, so they are here already, and it need not pause before it looks.
  if (endpoint.position().rank != call.root || !all_are_here()) endpoint.wait_for(call, all_are_here);
  finish_small_now(small);
}

}  // namespace

Task<> execute(Endpoint& endpoint, const CollectiveCall& call) {
  const CallPlan& plan = endpoint.planner().plan(call);
  if (plan.eager) return execute_eager(endpoint, call, plan);
  return fits_slot(plan.bytes) ? execute_small(endpoint, call, plan) : execute_large(endpoint, call, plan);
}

void execute_now(Endpoint& endpoint, const CollectiveCall& call) {
  const CallPlan& plan = endpoint.planner().plan(call);
  if (!fits_slot(plan.bytes)) [[unlikely]]
    return execute_large_now(endpoint, call, plan);
  if (plan.pattern != CollectiveTraits::Pattern::kSymmetric) [[unlikely]]
    return plan.eager ? execute_eager_now(endpoint, call, plan) : execute_rooted_now(endpoint, call, plan);
  const SmallCall small = begin_small(endpoint, call, plan);
  endpoint.record_arrival(call, plan);
  endpoint.wait_for(call, [&endpoint] { return endpoint.all_announced(); });
  finish_small_now(small);
}

Task<> execute_by(Endpoint& endpoint, const CollectiveCall& call, Protocol protocol) {
  static const TuningTable built_in;
  return exchange(endpoint, call, endpoint.planner().plan(call),
                  {built_in, protocol, endpoint.position().size});
}

}  // namespace cohort::node
