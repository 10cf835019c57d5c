#include "link.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <cohort/collective/crew.h>

#include "../node/contribution.h"
#include "../tuning_store.h"
#include "probe.h"
#include "two_level_movement.h"
#include "two_level_reduce.h"
#include "two_level_reduce_scatter.h"

namespace cohort::network {

namespace {

std::vector<int> leaders_of(const Topology& topology) {
  std::vector<int> leaders;
  leaders.reserve(static_cast<std::size_t>(topology.nodes()));
  for (int node = 0; node < topology.nodes(); ++node) leaders.push_back(topology.members_of(node).front());
  return leaders;
}

std::vector<int> lane_of(const Topology& topology) {
  std::vector<int> ranks;
  if (topology.own_number() >= topology.lanes()) return ranks;
  for (int node = 0; node < topology.nodes(); ++node)
    ranks.push_back(topology.members_of(node)[static_cast<std::size_t>(topology.own_number())]);
  return ranks;
}

}  // namespace

Link::Link(node::Seat& seat, Wire& wire, Inquest& inquest, const Topology& topology)
    : seat_(seat),
      topology_(topology),
      inquest_(inquest),
      site_{seat_, wire, topology_, constants_, lane_of(topology_)},
      peers_(site_),
      leaders_(leaders_of(topology_)),
      roll_call_(Lane(wire, leaders_, topology_.own_node()), topology_, kRidingBytes),
      cells_(static_cast<std::size_t>(topology_.members())) {}

bool Link::rides(const CollectiveCall& call) const {
  const std::size_t bytes = node::contributed_bytes(call, topology_.members());
  if (!rides_on_roll_call(bytes, topology_.members(), topology_.nodes(), constants_)) return false;
  const LibraryCollectives* const library = library_for(call);
  return library == nullptr || !library->is_preferred(call, bytes);
}

Steps Link::carry_out(const CollectiveCall& call) {
  seat_.begin_parts(call);
  if (!tuning_ && !rides(call)) {
    Steps tuning = agree_on_tuning(call);
    co_await finished(tuning);
  }
  const Selection::Choice choice = registered_choice(call);
  Steps body = choice.algorithm != nullptr ? carry_out_registered(call, choice) : exchange(call);
  co_await finished(body);
  seat_.end_parts();
}

Steps Link::exchange(const CollectiveCall& call) {
  const bool rides_along = rides(call);
  riding_bytes_ = rides_along ? node::contributed_bytes(call, topology_.members()) : 0;
  LibraryCollectives* const library = rides_along ? nullptr : library_for(call);
  if (library != nullptr) return carry_out_by(*library, call);
  if (!rides_along && topology_.all_alone() && call.kind == CollectiveKind::kAllReduce)
    return all_reduce_while_agreeing(call);
  return rides_along ? ride(call) : agree_and_move(call);
}

Steps Link::ride(const CollectiveCall& call) {
  Steps agreement = agree(call);
  co_await finished(agreement);
  collect_result(call);
  seat_.algorithm = "roll_call";
  seat_.reason = ChoiceReason::kSize;
}

Steps Link::agree_and_move(const CollectiveCall& call) {
  Steps agreement = agree(call);
  co_await finished(agreement);
  Steps movement = carry_out_large(call);
  co_await finished(movement);
  seat_.reason = reason(call.kind);
}

/// The first parts are on their way together with the roll call, and are reduced after it.
Steps Link::all_reduce_while_agreeing(const CollectiveCall& call) {
  Crew crew;
  const std::size_t agreement = crew.add(agree(call));
  site_.agreed = false;
  static_cast<void>(crew.add(two_level_all_reduce(site_, call)));
  Steps roll_call = one_done(crew, agreement);
  co_await finished(roll_call);
  site_.agreed = true;
  Steps rest = all_done(crew);
  co_await finished(rest);
  seat_.reason = reason(call.kind);
}

/// By the collectives of the transport's library.
Steps Link::carry_out_by(LibraryCollectives& library, const CollectiveCall& call) {
  Steps agreement = agree(call);
  co_await finished(agreement);
  Steps steps = library.carry_out(call);
  co_await finished(steps);
  const bool forced = seat_.group().selection().forced(call.kind).has_value();
  seat_.algorithm = to_string(BuiltInAlgorithm::kMpi);
  seat_.reason = forced ? ChoiceReason::kForced : ChoiceReason::kModel;
}

/// Those collectives, where they are wanted for the call and can carry it out.
LibraryCollectives* Link::library_for(const CollectiveCall& call) const {
  LibraryCollectives* const library = site_.wire.transport().collectives();
  // Calls of different priority would start in an order of their own.
  if (library == nullptr || call.priority != Priority::kNormal || seat_.group().fixes_order_of(call) ||
      call.implementation != CommunicationImplementation::kAuto || !library->is_legal(call)) {
    return nullptr;
  }
  const std::optional<BuiltInAlgorithm> forced = seat_.group().selection().forced(call.kind);
  const bool wanted = forced
                          ? *forced == BuiltInAlgorithm::kMpi
                          : library->is_preferred(call, node::contributed_bytes(call, topology_.members()));
  return wanted ? library : nullptr;
}

/// By an algorithm that the program has registered.
Steps Link::carry_out_registered(const CollectiveCall& call, const Selection::Choice choice) {
  riding_bytes_ = 0;
  Steps agreement = agree(call);
  co_await finished(agreement);
  Steps steps = choice.algorithm->carry_out(peers_, call);
  co_await finished(steps);
  seat_.algorithm = choice.algorithm->name();
  seat_.reason = choice.forced ? ChoiceReason::kForced : reason(CollectiveKind::kBarrier);
}

Selection::Choice Link::registered_choice(const CollectiveCall& call) const {
  const Selection& selection = seat_.group().selection();
  // There are no tags for their messages beside those of urgent calls.
  if (!selection.has_registered() || call.priority != Priority::kNormal || rides(call) ||
      seat_.group().fixes_order_of(call)) {
    return {};
  }
  const CallShape shape{.kind = call.kind,
                        .dtype = call.dtype,
                        .op = call.op,
                        .elements = node::block_elements(call),
                        .bytes = node::contributed_bytes(call, topology_.members()),
                        .uneven = !call.counts.empty(),
                        .members = topology_.members(),
                        .nodes = topology_.nodes()};
  return selection.choose(shape, constants_, built_in_seconds);
}

ChoiceReason Link::reason(CollectiveKind kind) const {
  const std::optional<BuiltInAlgorithm> forced = seat_.group().selection().forced(kind);
  if (forced && *forced >= BuiltInAlgorithm::kRecursiveDoubling && *forced != BuiltInAlgorithm::kMpi)
    return ChoiceReason::kForced;
  if (!tuning_) return ChoiceReason::kModel;
  const std::vector<TuningFigure> figures = tuning_->figures(TuningScope::kNetwork);
  return reason_of(std::ranges::max_element(figures, {}, &TuningFigure::source)->source);
}

std::vector<TuningFigure> Link::tuning() const {
  if (!tuning_) return {};
  std::vector<TuningFigure> figures = tuning_->figures(TuningScope::kNetwork);
  const auto source = std::ranges::max_element(figures, {}, &TuningFigure::source)->source;
  std::ranges::copy(all_reduce_crossovers(topology_.nodes(), constants_, source),
                    std::back_inserter(figures));
  return figures;
}

// ---- before the first large call: member 0's table if it has one for groups of this shape, or a probe's

Steps Link::agree_on_tuning(const CollectiveCall& call) {
  // Members must be known to have called the same before they exchange anything else.
  riding_bytes_ = 0;
  Steps agreement = agree(call);
  co_await finished(agreement);
  tuning_.emplace();  // the parts of this go by what is built in
  struct Word {
    TuningTable table;
    bool known = false;
  };
  Word word;
  const std::string shape = fmt::format("{} nodes, {} members", topology_.nodes(), topology_.members());
  TuningStore& store = TuningStore::of_this_process();
  if (topology_.rank() == 0) {
    if (const std::optional<TuningTable> table = store.find(TuningScope::kNetwork, shape))
      word = {*table, true};
  }
  Steps publication =
      small_part(CollectiveKind::kBroadcast, DType::kUInt8, reinterpret_cast<std::byte*>(&word), sizeof word);
  co_await finished(publication);
  if (!word.known) {
    const Lane leaders(site_.wire, leaders_, topology_.own_node());
    const auto take_maximum = [this](std::span<double> values) {
      return small_part(CollectiveKind::kAllReduce, DType::kFloat64,
                        reinterpret_cast<std::byte*>(values.data()), values.size());
    };
    Steps probing = probe(topology_.is_leader() ? &leaders : nullptr, take_maximum, word.table);
    co_await finished(probing);
    if (topology_.rank() == 0) store.save(TuningScope::kNetwork, shape, word.table);
  }
  store.keep(shape, word.table);
  tuning_ = word.table;
  constants_ = constants_of(word.table);
}

/// A small collective of all members, which takes the maximum if it reduces.
Steps Link::small_part(CollectiveKind kind, DType dtype, std::byte* data, std::size_t elements) {
  CollectiveCall part;
  part.kind = kind;
  part.dtype = dtype;
  part.op = ReduceOp::kMax;
  part.elements = elements;
  part.input = part.output = data;
  Steps steps = exchange(part);
  co_await finished(steps);
}

Steps Link::agree(const CollectiveCall& call) {
  const node::CallPlan& plan = seat_.plan(call);
  kernel_ = plan.kernel;
  seat_.open(plan);
  contribute(call, !plan.says_details);
  seat_.announce();
  co_await until([&] { return seat_.all_announced(); });
  if (topology_.is_leader()) {
    Steps roll_call = hold_roll_call(call);
    co_await finished(roll_call);
  } else if (seat_.disagreement()) {
    Steps lesson = learn_disagreement(call);
    co_await finished(lesson);
  }
  if (site_.alone_on_node()) co_return;
  // The leader's second announcement says that all nodes agree, and where the contributions are.
  seat_.open(seat_.plan(call));
  publish_contributions();
  seat_.announce();
  co_await until([&] { return seat_.all_announced(); });
}

/// A member that differs from its neighbours, or they from it, hears from the leader what all have called.
Steps Link::learn_disagreement(const CollectiveCall& call) {
  node::Seat::Signatures signatures;
  Steps description = seat_.collect_signatures(call, signatures);
  co_await finished(description);
  co_await until([&] { return seat_.group().failed(); });
  seat_.fail(seat_.group().failure());
}

Steps Link::hold_roll_call(const CollectiveCall& call) {
  NodeCalls own{.signature = signature(call, seat_.number())};
  if (seat_.disagreement()) {
    node::Seat::Signatures signatures;
    Steps collection = seat_.collect_signatures(call, signatures);
    co_await finished(collection);
    own.by_member = std::move(signatures.calls);
    own.ranks = std::move(signatures.ranks);
  }
  const std::size_t neighbours = own.ranks.empty() ? topology_.neighbours().size() : 0;
  std::byte* const payload = roll_call_.answer(own, neighbours * riding_bytes_);
  if (neighbours > 0) put_contributions(payload);
  Steps exchange = roll_call_.carry_out();
  co_await finished(exchange);
  if (roll_call_.is_unanimous()) co_return;
  // What looks like a disagreement may be the answer to a call that the others have given up.
  if (const std::optional<Error> error = inquest_.listen(true)) seat_.fail(*error);
  seat_.fail(roll_call_.disagreement(seat_.name_of(call), seat_.group().members()));
}

Steps Link::carry_out_large(const CollectiveCall& call) {
  switch (call.kind) {
    case CollectiveKind::kAllReduce: return two_level_all_reduce(site_, call);
    case CollectiveKind::kReduce: return two_level_reduce(site_, call);
    case CollectiveKind::kReduceScatter: return two_level_reduce_scatter(site_, call);
    case CollectiveKind::kBroadcast: return two_level_broadcast(site_, call);
    case CollectiveKind::kSplit:
    case CollectiveKind::kAllGather: return two_level_all_gather(site_, call);
    case CollectiveKind::kGather: return two_level_gather(site_, call);
    case CollectiveKind::kScatter: return two_level_scatter(site_, call);
    case CollectiveKind::kAllToAll: return two_level_all_to_all(site_, call);
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  throw Internal("{} has no algorithm for several nodes", to_string(call.kind));
}

// ---- small calls: contributions lie beside the members' announcements, ride on the leaders' roll call,
// ---- and then, all of them, in the leader's slot, where each member takes from them what it needs

void Link::contribute(const CollectiveCall& call, bool line_is_free) {
  in_line_ = riding_bytes_ == 0 || (riding_bytes_ <= node::kPayloadBytes && line_is_free);
  if (!in_line_) slot_ = seat_.next_slot();
  if (riding_bytes_ == 0) return;
  const node::Place place{topology_.rank(), topology_.members()};
  std::byte* const to =
      in_line_ ? seat_.payload_of(seat_.place().rank) : seat_.slot(seat_.place().rank, slot_);
  node::contribute(call, place, {0, node::block_elements(call)}, to);
}

const std::byte* Link::contribution_of(int seat) const noexcept {
  return in_line_ ? seat_.payload_of(seat) : seat_.slot(seat, slot_);
}

void Link::put_contributions(std::byte* to) const {
  for (int seat = 0; riding_bytes_ > 0 && seat < site_.neighbours(); ++seat, to += riding_bytes_)
    std::memcpy(to, contribution_of(seat), riding_bytes_);
}

void Link::publish_contributions() {
  if (riding_bytes_ == 0) return;
  slot_ = seat_.next_slot();
  if (!topology_.is_leader()) return;
  std::byte* const slot = seat_.slot(0, slot_);
  for (int node = 0; node < topology_.nodes(); ++node) {
    const std::byte* from = roll_call_.payload_of(node).data();
    for (const int rank : topology_.members_of(node)) {
      std::memcpy(slot + static_cast<std::size_t>(rank) * riding_bytes_, from, riding_bytes_);
      from += riding_bytes_;
    }
  }
}

void Link::collect_result(const CollectiveCall& call) {
  if (riding_bytes_ == 0) return;
  // The leader keeps to its own copy: with two members on the node, the other one may fill the slot again
  // as soon as it has read it itself.
  for (int node = 0; node < topology_.nodes(); ++node) {
    const std::byte* from = topology_.is_leader() ? roll_call_.payload_of(node).data() : nullptr;
    for (const int rank : topology_.members_of(node)) {
      const auto place = static_cast<std::size_t>(rank);
      const auto number = static_cast<std::size_t>(topology_.number_of(rank));
      cells_[place] = topology_.is_leader() ? from + number * riding_bytes_
                                            : seat_.slot(0, slot_) + place * riding_bytes_;
    }
  }
  node::collect(call, kernel_, {topology_.rank(), topology_.members()}, {0, node::block_elements(call)},
                cells_, false);
}

std::optional<Error> Link::look_around(const CollectiveCall& call, const node::Waiting& waiting) {
  const std::chrono::duration<double> timeout = seat_.group().timeout(call);
  if (timeout.count() > 0 && waiting.waited() >= timeout)
    return inquest_.conclude(call, seat_.number(), timeout);
  inquest_.drop(call.priority);
  // The leaders of the other nodes may wait for this one in a call of another priority.
  if (!topology_.is_leader()) return std::nullopt;
  return inquest_.compare_priorities(signature(call, seat_.number()), waiting.waited());
}

}  // namespace cohort::network
