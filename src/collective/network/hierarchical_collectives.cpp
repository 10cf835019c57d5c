#include "hierarchical_collectives.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "collective/choice/selection.h"
#include "collective/choice/tuning_figures.h"
#include "collective/node/call_plan.h"
#include "collective/task/task_group.h"
#include "cost_model.h"
#include "few_rounds.h"
#include "two_level.h"

namespace cohort::network {

HierarchicalCollectives::HierarchicalCollectives(node::Endpoint& endpoint, Wire& wire,
                                                 FailureDetector& failure_detector, const Topology& topology)
    : endpoint_(endpoint),
      topology_(topology),
      failure_detector_(failure_detector),
      context_{endpoint_, wire, topology_, constants_, std::min(topology_.lanes(), kBuiltInLanes)},
      peers_(context_) {
  if (topology_.is_leader()) roll_call_.emplace(leaders(), topology_, kPiggybackBytes);
}

Lane HierarchicalCollectives::leaders() const {
  return {context_.wire, topology_.leaders(), topology_.own_node()};
}

bool HierarchicalCollectives::is_piggybacked(const CollectiveCall& call) const {
  const std::size_t bytes = node::contributed_bytes(call, topology_.members());
  if (!fits_roll_call(bytes, topology_.members(), topology_.nodes(), constants_)) return false;
  const TransportCollectives* const collectives = context_.wire.transport().collectives();
  const bool prefers_others = collectives != nullptr && collectives->is_preferred(call, bytes);
  return !prefers_others || transport_collectives_for(call) == nullptr;
}

void HierarchicalCollectives::execute_now(const CollectiveCall& call) {
  if (context_.alone_on_node() && is_piggybacked(call)) return execute_alone_now(call);
  endpoint_.record_arrival(call);
  endpoint_.drive(call, execute(call));
  endpoint_.record_end();
}

/// The same as `execute_on_roll_call`, in one go: of a message of a few bytes, the coroutines would take a
/// tenth of the time.
void HierarchicalCollectives::execute_alone_now(const CollectiveCall& call) {
  piggyback_bytes_ = node::contributed_bytes(call, topology_.members());
  const node::CallPlan& plan = endpoint_.planner().plan(call);
  kernel_ = plan.kernel;
  endpoint_.open(plan);
  endpoint_.announce();
  answer_roll_call(call);
  roll_call_->begin();
  endpoint_.record_arrival(call);  // here it delays nobody
  endpoint_.wait_for(call, [this] { return roll_call_->has_ended(); });
  if (!roll_call_->is_unanimous()) [[unlikely]]
    endpoint_.drive(call, settle_disagreement(call, false));
  endpoint_.record_start();
  finish_on_roll_call(call);
  endpoint_.record_end();
}

Task<> HierarchicalCollectives::execute(const CollectiveCall& call) {
  return is_piggybacked(call) ? execute_on_roll_call(call) : execute_in_parts(call);
}

Task<> HierarchicalCollectives::execute_in_parts(const CollectiveCall& call) {
  endpoint_.begin_subcalls(call);
  if (!tuning_) co_await agree_on_tuning(call);
  const Selection::Choice choice = registered_choice(call);
  Task<> body = choice.algorithm != nullptr ? execute_registered(call, choice) : exchange(call);
  co_await body;
  require_unfailed_so_far();
  endpoint_.end_subcalls();
}

/// What has arrived may have come from tensors of members that had given up, and whose programs had changed
/// them. Such a member has told of its failure before, so the message is there as a rule; MPI keeps the order
/// of messages only within a tag.
void HierarchicalCollectives::require_unfailed_so_far() {
  endpoint_.failure_watch().require_unfailed_so_far();
  if (const std::optional<Error> error = failure_detector_.poll_failure(true, number()))
    endpoint_.failure_watch().fail(*error);
}

Task<> HierarchicalCollectives::exchange(const CollectiveCall& call) {
  if (is_piggybacked(call)) return execute_on_roll_call(call);
  piggyback_bytes_ = 0;
  if (TransportCollectives* const collectives = transport_collectives_for(call))
    return execute_by(*collectives, call);
  if (topology_.all_alone() && call.kind == CollectiveKind::kAllReduce)
    return all_reduce_while_agreeing(call);
  return agree_and_move(call);
}

Task<> HierarchicalCollectives::execute_on_roll_call(const CollectiveCall& call) {
  piggyback_bytes_ = node::contributed_bytes(call, topology_.members());
  co_await agree(call);
  finish_on_roll_call(call);
}

void HierarchicalCollectives::finish_on_roll_call(const CollectiveCall& call) {
  collect_result(call);
  endpoint_.set_algorithm("roll_call");
  endpoint_.set_reason(ChoiceReason::kSize);
}

Task<> HierarchicalCollectives::agree_and_move(const CollectiveCall& call) {
  co_await agree(call);
  co_await execute_large(call);
  endpoint_.set_reason(reason(call.kind));
}

/// The first parts are on their way together with the roll call, and are reduced after it.
Task<> HierarchicalCollectives::all_reduce_while_agreeing(const CollectiveCall& call) {
  TaskGroup tasks;
  const std::size_t agreement = tasks.add(agree(call));
  context_.agreed = false;
  tasks.add(two_level_all_reduce(context_, call));
  co_await tasks.wait_for(agreement);
  context_.agreed = true;
  co_await tasks.wait_for_all();
  endpoint_.set_reason(reason(call.kind));
}

/// By the collectives of the library below the transport.
Task<> HierarchicalCollectives::execute_by(TransportCollectives& collectives, const CollectiveCall& call) {
  co_await agree(call);
  by_transport_ = true;
  co_await collectives.execute(call);
  by_transport_ = false;
  const bool forced = endpoint_.group().selection().forced(call.kind) != nullptr;
  endpoint_.set_algorithm(kTransportAlgorithm);
  endpoint_.set_reason(forced ? ChoiceReason::kForced : ChoiceReason::kModel);
}

/// Those collectives, where they are wanted for the call and can carry it out.
TransportCollectives* HierarchicalCollectives::transport_collectives_for(const CollectiveCall& call) const {
  TransportCollectives* const collectives = context_.wire.transport().collectives();
  // Calls of different priority would start in an order of their own.
  if (collectives == nullptr || call.priority != Priority::kNormal ||
      endpoint_.group().fixes_order_of(call) || call.implementation != CommunicationImplementation::kAuto ||
      !collectives->is_legal(call)) {
    return nullptr;
  }
  const BuiltInAlgorithm* const forced = endpoint_.group().selection().forced(call.kind);
  const bool wanted =
      forced != nullptr ? forced->of_transport
                        : collectives->is_preferred(call, node::contributed_bytes(call, topology_.members()));
  return wanted ? collectives : nullptr;
}

/// By an algorithm that the program has registered.
Task<> HierarchicalCollectives::execute_registered(const CollectiveCall& call,
                                                   const Selection::Choice choice) {
  piggyback_bytes_ = 0;
  co_await agree(call);
  co_await choice.algorithm->execute(peers_, call);
  endpoint_.set_algorithm(choice.algorithm->name());
  endpoint_.set_reason(choice.forced ? ChoiceReason::kForced : reason(CollectiveKind::kBarrier));
}

Selection::Choice HierarchicalCollectives::registered_choice(const CollectiveCall& call) const {
  const Selection& selection = endpoint_.group().selection();
  // There are no tags for their messages beside those of urgent calls.
  if (!selection.has_registered() || call.priority != Priority::kNormal || is_piggybacked(call) ||
      endpoint_.group().fixes_order_of(call)) {
    return {};
  }
  const CallShape shape{.kind = call.kind,
                        .dtype = call.dtype,
                        .op = call.op,
                        .elements = node::block_elements(call),
                        .bytes = node::contributed_bytes(call, topology_.members()),
                        .uneven = !call.counts.empty(),
                        .members = topology_.members(),
                        .nodes = topology_.nodes(),
                        .lanes = context_.lanes};
  return selection.choose(shape, constants_, built_in_seconds);
}

ChoiceReason HierarchicalCollectives::reason(CollectiveKind kind) const {
  const BuiltInAlgorithm* const forced = endpoint_.group().selection().forced(kind);
  if (forced != nullptr && forced->lane_algorithm != nullptr) return ChoiceReason::kForced;
  if (!tuning_) return ChoiceReason::kModel;
  const std::vector<TuningFigure> figures = tuning_->figures(TuningScope::kNetwork);
  return reason_of(std::ranges::max_element(figures, {}, &TuningFigure::source)->source);
}

std::vector<TuningFigure> HierarchicalCollectives::tuning() const {
  if (!tuning_) return {};
  std::vector<TuningFigure> figures = tuning_->figures(TuningScope::kNetwork);
  const auto source = std::ranges::max_element(figures, {}, &TuningFigure::source)->source;
  std::ranges::copy(
      all_reduce_crossovers(topology_.nodes(), shared_by_lanes(constants_, context_.lanes), source),
      std::back_inserter(figures));
  return figures;
}

// ---- before the first large call: member 0's table if it has one for groups of this shape, or a probe's

Task<> HierarchicalCollectives::agree_on_tuning(const CollectiveCall& call) {
  // Members must be known to have called the same before they exchange anything else.
  piggyback_bytes_ = 0;
  co_await agree(call);
  tuning_.emplace();  // the parts of this go by what is built in
  struct Word {
    TuningTable table;
    bool known = false;
  };
  Word word;
  const std::string shape = shape_of_network(topology_.nodes(), topology_.members());
  TuningStore& store = TuningStore::of_this_process();
  if (topology_.rank() == 0) {
    if (const std::optional<TuningTable> table = store.find(TuningScope::kNetwork, shape))
      word = {*table, true};
  }
  co_await small_subcall(call.priority, CollectiveKind::kBroadcast, DType::kUInt8,
                         reinterpret_cast<std::byte*>(&word), sizeof word);
  if (!word.known) {
    const auto take_maximum = [this, &call](std::span<double> values) {
      return small_subcall(call.priority, CollectiveKind::kAllReduce, DType::kFloat64,
                           reinterpret_cast<std::byte*>(values.data()), values.size());
    };
    word.table = co_await probe(context_.wire, topology_, take_maximum);
    if (topology_.rank() == 0) store.save(TuningScope::kNetwork, shape, word.table);
  }
  store.keep(shape, word.table);
  tuning_ = word.table;
  constants_ = constants_of(word.table);
  context_.lanes = std::min(topology_.lanes(), lanes_of(word.table));
}

/// A small collective of all members, which takes the maximum if it reduces.
Task<> HierarchicalCollectives::small_subcall(Priority priority, CollectiveKind kind, DType dtype,
                                              std::byte* data, std::size_t elements) {
  CollectiveCall subcall;
  subcall.kind = kind;
  subcall.priority = priority;
  subcall.dtype = dtype;
  subcall.op = ReduceOp::kMax;
  subcall.elements = elements;
  subcall.input = subcall.output = data;
  co_await exchange(subcall);
}

Task<> HierarchicalCollectives::agree(const CollectiveCall& call) {
  const node::CallPlan& plan = endpoint_.planner().plan(call);
  kernel_ = plan.kernel;
  endpoint_.open(plan);
  if (!context_.alone_on_node()) contribute(call, !plan.payload_has_details);
  endpoint_.announce();
  co_await until([&] { return endpoint_.all_announced(); });
  if (topology_.is_leader()) {
    // Once: a difference that is noticed during the roll call is not what this node has answered.
    const bool on_own_node = endpoint_.disagreement();
    if (!on_own_node) {
      answer_roll_call(call);
      co_await roll_call_->execute();
    }
    if (on_own_node || !roll_call_->is_unanimous()) co_await settle_disagreement(call, on_own_node);
  } else if (endpoint_.disagreement()) {
    co_await learn_disagreement(call);
  }
  if (context_.alone_on_node()) co_return endpoint_.record_start();
  // The leader's second announcement says that all nodes agree, and where the contributions are.
  endpoint_.open(endpoint_.planner().plan(call));
  publish_contributions();
  endpoint_.announce();
  co_await until([&] { return endpoint_.all_announced(); });
  endpoint_.record_start();
}

/// A member that differs from its neighbours, or they from it, hears from the leader what all have called.
Task<> HierarchicalCollectives::learn_disagreement(const CollectiveCall& call) {
  co_await endpoint_.failure_watch().collect_calls(call);
  co_await until([&] { return endpoint_.group().failed(); });
  endpoint_.failure_watch().fail(endpoint_.group().failure());
}

/// All members of this node have called the same.
void HierarchicalCollectives::answer_roll_call(const CollectiveCall& call) {
  put_contributions(call, roll_call_->answer(signature(call, endpoint_.number()), piggyback_bytes_));
}

Task<> HierarchicalCollectives::settle_disagreement(const CollectiveCall& call, bool on_own_node) {
  NodeCalls own{.signature = signature(call, endpoint_.number())};
  if (on_own_node) {
    own.by_member = co_await endpoint_.failure_watch().collect_calls(call);
    if (own.by_member.empty()) {
      answer_roll_call(call);
    } else {
      roll_call_->answer(std::nullopt, 0);
    }
    co_await roll_call_->execute();
    if (roll_call_->is_unanimous()) co_return;
  }
  // What looks like a disagreement may be the answer to a call that the others have given up.
  if (const std::optional<Error> error = failure_detector_.poll_failure(true, number()))
    endpoint_.failure_watch().fail(*error);
  own.words = words_of(endpoint_.as_called(call));
  CallReport report(leaders(), topology_, own);
  co_await report.execute();
  endpoint_.failure_watch().fail(
      report.disagreement(endpoint_.failure_watch().name_of(call), endpoint_.group().members()));
}

Task<> HierarchicalCollectives::execute_large(const CollectiveCall& call) {
  // Blocks of different lengths go pairwise, and so do those that must be combined in the order of the ranks.
  const bool may_take_few_rounds = call.counts.empty() && !context_.keeps_rank_order(call);
  if (may_take_few_rounds && prefers_few_rounds(call.kind, call.elements * size_of(call.dtype),
                                                topology_.members(), topology_.nodes(), constants_))
    return execute_in_few_rounds(context_, call);
  switch (call.kind) {
    case CollectiveKind::kAllReduce: return two_level_all_reduce(context_, call);
    case CollectiveKind::kReduce: return two_level_reduce(context_, call);
    case CollectiveKind::kReduceScatter: return two_level_reduce_scatter(context_, call);
    case CollectiveKind::kBroadcast: return two_level_broadcast(context_, call);
    case CollectiveKind::kSplit:
    case CollectiveKind::kAllGather: return two_level_all_gather(context_, call);
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter: return two_level_gather_or_scatter(context_, call);
    case CollectiveKind::kAllToAll: return two_level_all_to_all(context_, call);
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  throw Internal("{} has no algorithm for several nodes", to_string(call.kind));
}

// ---- small calls: contributions lie beside the members' announcements, piggyback on the roll call,
// ---- and then, all of them, in the leader's slot, where each member takes from them what it needs

void HierarchicalCollectives::contribute(const CollectiveCall& call, bool line_is_free) {
  in_line_ = piggyback_bytes_ == 0 || (piggyback_bytes_ <= node::kPayloadBytes && line_is_free);
  if (!in_line_) slot_ = endpoint_.next_slot();
  if (piggyback_bytes_ == 0) return;
  if (in_line_) endpoint_.set_contents({.payload_bytes = piggyback_bytes_});
  put_own_contribution(call,
                       in_line_ ? endpoint_.own_payload() : endpoint_.slot(endpoint_.position().rank, slot_));
}

void HierarchicalCollectives::put_own_contribution(const CollectiveCall& call, std::byte* to) const {
  node::contribute(call, {topology_.rank(), topology_.members()}, {0, node::block_elements(call)}, to);
}

const std::byte* HierarchicalCollectives::contribution_of(int local_rank) const noexcept {
  return in_line_ ? endpoint_.payload_of(local_rank) : endpoint_.slot(local_rank, slot_);
}

void HierarchicalCollectives::put_contributions(const CollectiveCall& call, std::byte* to) const {
  if (piggyback_bytes_ == 0) return;
  if (context_.alone_on_node()) return put_own_contribution(call, to);
  for (int local_rank = 0; local_rank < context_.local_size(); ++local_rank, to += piggyback_bytes_)
    std::memcpy(to, contribution_of(local_rank), piggyback_bytes_);
}

void HierarchicalCollectives::publish_contributions() {
  if (piggyback_bytes_ == 0) return;
  slot_ = endpoint_.next_slot();
  if (!topology_.is_leader()) return;
  std::byte* const slot = endpoint_.slot(0, slot_);
  for (int node = 0; node < topology_.nodes(); ++node) {
    const std::byte* from = roll_call_->payload_of(node).data();
    for (const int rank : topology_.members_of(node)) {
      std::memcpy(slot + static_cast<std::size_t>(rank) * piggyback_bytes_, from, piggyback_bytes_);
      from += piggyback_bytes_;
    }
  }
}

void HierarchicalCollectives::collect_result(const CollectiveCall& call) {
  if (piggyback_bytes_ == 0) return;
  contributions_.resize(static_cast<std::size_t>(topology_.members()));
  // The leader keeps to its own copy: with two members on the node, the other one may fill the slot again
  // as soon as it has read it itself.
  for (int node = 0; node < topology_.nodes(); ++node) {
    const std::byte* from = topology_.is_leader() ? roll_call_->payload_of(node).data() : nullptr;
    for (const int rank : topology_.members_of(node)) {
      const auto index = static_cast<std::size_t>(rank);
      const auto number = static_cast<std::size_t>(topology_.local_rank_of(rank));
      contributions_[index] = topology_.is_leader() ? from + number * piggyback_bytes_
                                                    : endpoint_.slot(0, slot_) + index * piggyback_bytes_;
    }
  }
  node::collect(call, kernel_, {topology_.rank(), topology_.members()}, {0, node::block_elements(call)},
                contributions_, false);
}

std::optional<Error> HierarchicalCollectives::check_for_failure(const CollectiveCall& call,
                                                                const node::Waiting& waiting) {
  const std::chrono::duration<double> timeout = endpoint_.group().timeout(call);
  if (timeout.count() > 0 && waiting.waited() >= timeout)
    return failure_detector_.conclude_missing(call, endpoint_.number(), timeout, by_transport_);
  failure_detector_.drop(call.priority);
  // The leaders of the other nodes may wait for this one in a call of another priority.
  if (!topology_.is_leader()) return std::nullopt;
  return failure_detector_.compare_priorities(signature(call, endpoint_.number()), waiting.waited());
}

int NetworkPeers::tag_of_turn(int other, int tag) const {
  require_legal_message(*this, other, tag);
  // Above the tags of parts, and different in each call, so that a message left over from one call does not
  // match in the next.
  constexpr int kFirstTag = 8192;
  constexpr int kTurns = 4;
  static_assert(kFirstTag + kTurns * (kLargestTag + 1) <= kFirstUrgentTag);
  return kFirstTag + static_cast<int>(context_.endpoint.number() % kTurns) * (kLargestTag + 1) + tag;
}

Task<> NetworkPeers::send(int to, std::span<const std::byte> data, int tag) {
  co_await stream_to(context_.wire, to, tag_of_turn(to, tag), data.data(), data.size());
}

Task<> NetworkPeers::receive(int from, std::span<std::byte> into, int tag) {
  co_await stream_from(context_.wire, from, tag_of_turn(from, tag), into.data(), into.size());
}

}  // namespace cohort::network
