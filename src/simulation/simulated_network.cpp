#include "simulated_network.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cohort::simulation {
namespace {

/// What is measured from virtual time to the system's must not be negative.
constexpr auto kBeforeTheSystems = std::chrono::hours(48);

std::uint64_t line_of(const Transport::Address& from, int group) {
  static_assert(Transport::kLargestTag < 1 << 15 && ContextIdSet::kIds <= 1 << 9);
  return static_cast<std::uint64_t>(from.member) << 32 | static_cast<std::uint64_t>(from.channel) << 24 |
         static_cast<std::uint64_t>(group) << 15 | static_cast<std::uint64_t>(from.tag);
}

/// Simulated members may share their buffers, so the two may overlap.
void copy_bytes(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memmove(to, from.data(), from.size());
}

}  // namespace

SimulatedNetwork::SimulatedNetwork(SimulatedNetworkOptions options)
    : options_(std::move(options)),
      scratch_pool_(options_.copied_bytes),
      clock_(std::in_place),
      began_(clock_->now() - kBeforeTheSystems),
      members_(options_.node_of.size()) {
  set_time(0);
  const auto nodes = static_cast<std::size_t>(std::ranges::max(options_.node_of)) + 1;
  for (FreeAt* links : {&out_, &in_, &group_out_, &group_in_}) links->resize(nodes);
}

bool SimulatedNetwork::is_dead(int member) const noexcept {
  return std::ranges::any_of(options_.faults, [&](const Fault& fault) {
    return fault.kind == Fault::Kind::kKill && fault.member == member && now_ >= fault.at_seconds;
  });
}

bool SimulatedNetwork::is_cut(int from, int to) const noexcept {
  return std::ranges::any_of(options_.faults, [&](const Fault& fault) {
    if (now_ < fault.at_seconds) return false;
    if (fault.kind == Fault::Kind::kCut)
      return (from == fault.node && to == fault.other) || (to == fault.node && from == fault.other);
    return fault.kind == Fault::Kind::kPartition && (from <= fault.node) != (to <= fault.node);
  });
}

double SimulatedNetwork::delay_of(int node) const noexcept {
  double seconds = 0;
  for (const Fault& fault : options_.faults) {
    if (fault.kind == Fault::Kind::kDelay && fault.node == node && now_ >= fault.at_seconds)
      seconds += fault.seconds;
  }
  return seconds;
}

void SimulatedNetwork::set_time(double seconds) {
  now_ = seconds;
  clock_->set(began_ +
              std::chrono::duration_cast<MonotonicClock::duration>(std::chrono::duration<double>(seconds)));
}

std::optional<int> SimulatedNetwork::go_on(double latest) {
  while (!events_.empty() && events_.top().at <= latest) {
    const Event event = events_.top();
    events_.pop();
    set_time(event.at);
    if (const std::optional<int> member = handle(event)) return member;
  }
  set_time(latest);
  return std::nullopt;
}

/// The member that something is there for.
std::optional<int> SimulatedNetwork::handle(const Event& event) {
  Message& message = messages_[event.message];
  switch (event.step) {
    case Step::kStarts: start(event.message); return std::nullopt;
    case Step::kEnters: enter(event.message); return std::nullopt;
    case Step::kHasLeft:
      if (!message.is_eager) {
        const Transfer& receive = member(message.to).transfers[*message.receive];
        copy_bytes(receive.into.data(), copied_part(message.data));
      }
      member(message.from).transfers[message.sender_ticket].is_done = true;
      return message.from;
    case Step::kArrives: break;
  }
  const int to = message.to;
  if (!message.control.empty()) {
    member(to).control_messages.push_back({message.group, {message.from, std::move(message.control)}});
    forget(event.message);
  } else {
    message.has_arrived = true;
    if (message.receive) complete_receive(event.message);
  }
  return to;
}

void SimulatedNetwork::complete_receive(MessageNumber number) {
  const Message& message = messages_[number];
  Transfer& receive = member(message.to).transfers[*message.receive];
  if (message.is_eager) copy_bytes(receive.into.data(), message.copy);
  receive.bytes = message.data.size();
  receive.is_done = true;
  forget(number);
}

SimulatedNetwork::Ticket SimulatedNetwork::new_transfer(int rank, const Transfer& transfer) {
  Member& owner = member(rank);
  if (owner.free.empty()) {
    owner.transfers.push_back(transfer);
    return static_cast<Ticket>(owner.transfers.size() - 1);
  }
  const Ticket ticket = owner.free.back();
  owner.free.pop_back();
  owner.transfers[ticket] = transfer;
  return ticket;
}

SimulatedNetwork::MessageNumber SimulatedNetwork::new_message(int from, int to) {
  if (free_messages_.empty()) {
    free_messages_.push_back(static_cast<MessageNumber>(messages_.size()));
    messages_.emplace_back();
  }
  const MessageNumber number = free_messages_.back();
  free_messages_.pop_back();
  // The memory of an earlier copy serves the next one.
  std::vector<std::byte> copy = std::move(messages_[number].copy);
  copy.clear();
  messages_[number] = {.from = from, .to = to, .copy = std::move(copy), .sent_at = now_};
  return number;
}

void SimulatedNetwork::forget(MessageNumber number) { free_messages_.push_back(number); }

template <class Element>
void SimulatedNetwork::push(Queue& queue, std::vector<Element>& elements, std::uint32_t number) {
  elements[number].next = kNone;
  if (queue.empty())
    queue.first = number;
  else
    elements[queue.last].next = number;
  queue.last = number;
}

template <class Element>
std::uint32_t SimulatedNetwork::pop(Queue& queue, const std::vector<Element>& elements) {
  const std::uint32_t number = queue.first;
  queue.first = elements[number].next;
  return number;
}

SimulatedNetwork::Ticket SimulatedNetwork::send(int rank, int group, const Transport::Address& to,
                                                std::span<const std::byte> data) {
  const bool is_eager = data.size() <= options_.model.eager_bytes;
  if (is_cut(node_of(rank), node_of(to.member)) || is_dead(rank))
    return new_transfer(rank, {.is_done = is_eager, .bytes = data.size()});
  const MessageNumber number = new_message(rank, to.member);
  Message& message = messages_[number];
  message.data = data;
  message.is_eager = is_eager;
  if (is_eager) message.copy.assign(copied_part(data).begin(), copied_part(data).end());
  message.sender_ticket = new_transfer(rank, {.bytes = data.size()});
  const Ticket ticket = message.sender_ticket;
  if (is_eager) start(number);
  Member& receiver = member(to.member);
  const auto line = receiver.lines.try_emplace(line_of({to.channel, rank, to.tag}, group)).first;
  if (line->second.receives.empty()) {
    push(line->second.messages, messages_, number);
  } else {
    const Ticket receive = pop(line->second.receives, receiver.transfers);
    if (line->second.receives.empty()) receiver.lines.erase(line);
    meet(number, receive);
  }
  return ticket;
}

SimulatedNetwork::Ticket SimulatedNetwork::receive(int rank, int group, const Transport::Address& from,
                                                   std::span<std::byte> into) {
  const std::uint64_t key = line_of(from, group);
  const Ticket ticket = new_transfer(rank, {.into = into, .line = key});
  Member& receiver = member(rank);
  const auto line = receiver.lines.try_emplace(key).first;
  if (line->second.messages.empty()) {
    push(line->second.receives, receiver.transfers, ticket);
  } else {
    const MessageNumber number = pop(line->second.messages, messages_);
    if (line->second.messages.empty()) receiver.lines.erase(line);
    meet(number, ticket);
  }
  return ticket;
}

/// A message and its receive, of which the later one was started now.
void SimulatedNetwork::meet(MessageNumber number, Ticket receive) {
  Message& message = messages_[number];
  // One that is longer than its memory never completes the receive.
  if (message.data.size() > member(message.to).transfers[receive].into.size()) return;
  message.receive = receive;
  if (!message.is_eager)
    add_event(
        std::max(now_, message.sent_at + options_.model.latency_seconds) + options_.model.latency_seconds,
        number, Step::kStarts);
  else if (message.has_arrived)
    complete_receive(number);
}

namespace {

/// When the first byte passes a link, which is busy until the last one has.
double pass(double& free_at, double first, double seconds) {
  first = std::max(first, free_at);
  free_at = first + seconds;
  return first;
}

}  // namespace

/// A node's messages leave in the order in which they were started. Links further on pass them in the order
/// in which they come there, so that is not decided here.
void SimulatedNetwork::start(MessageNumber number) {
  const Message& message = messages_[number];
  const double bytes = static_cast<double>(message.data.size()) * options_.model.seconds_per_byte;
  double& link = out_[static_cast<std::size_t>(node_of(message.from))];
  const double first = pass(link, now_, std::max(bytes, options_.model.gap_seconds));
  add_event(first + bytes, number, Step::kHasLeft);
  if (first > now_)
    add_event(first, number, Step::kEnters);
  else
    enter(number);
}

void SimulatedNetwork::enter(MessageNumber number) {
  const Message& message = messages_[number];
  const NetworkModel& model = options_.model;
  const auto from = static_cast<std::size_t>(node_of(message.from));
  const auto to = static_cast<std::size_t>(node_of(message.to));
  const double bytes = static_cast<double>(message.data.size()) * model.seconds_per_byte;
  double first = now_;
  double slowest = bytes;
  if (model.nodes_of_group > 0) {
    const auto group = static_cast<std::size_t>(model.nodes_of_group);
    if (from / group != to / group) {
      const double of_group = bytes * model.taper / static_cast<double>(group);
      slowest = std::max(slowest, of_group);
      first = pass(group_out_[from / group], first, of_group);
      first = pass(group_in_[to / group], first, of_group);
    }
  }
  first = pass(in_[to], first + model.latency_seconds + delay_of(static_cast<int>(from)),
               std::max(bytes, model.gap_seconds));
  add_event(first + slowest, number, Step::kArrives);
}

void SimulatedNetwork::add_event(double at, MessageNumber number, Step step) {
  events_.push({at, events_made_++, number, step});
}

std::optional<std::size_t> SimulatedNetwork::poll(int rank, Ticket ticket) {
  Member& owner = member(rank);
  const Transfer& transfer = owner.transfers[ticket];
  if (!transfer.is_done) return std::nullopt;
  owner.free.push_back(ticket);
  return transfer.bytes;
}

bool SimulatedNetwork::cancel(int rank, Ticket ticket) {
  Member& owner = member(rank);
  const auto line = owner.lines.find(owner.transfers[ticket].line);
  if (line == owner.lines.end()) return false;
  bool is_found = false;
  Queue others;
  for (Queue& receives = line->second.receives; !receives.empty();) {
    const Ticket receive = pop(receives, owner.transfers);
    is_found = is_found || receive == ticket;
    if (receive != ticket) push(others, owner.transfers, receive);
  }
  line->second.receives = others;
  if (others.empty() && line->second.messages.empty()) owner.lines.erase(line);
  if (is_found) owner.free.push_back(ticket);
  return is_found;
}

void SimulatedNetwork::send_control(int rank, int group, int to, std::string_view text) {
  if (is_cut(node_of(rank), node_of(to)) || is_dead(rank)) return;
  const MessageNumber number = new_message(rank, to);
  messages_[number].group = group;
  messages_[number].control = text;
  add_event(now_ + options_.model.latency_seconds + delay_of(node_of(rank)), number, Step::kArrives);
}

std::optional<Transport::ControlMessage> SimulatedNetwork::receive_control(int rank, int group) {
  std::list<GroupMessage>& messages = member(rank).control_messages;
  const auto found = std::ranges::find(messages, group, &GroupMessage::group);
  if (found == messages.end()) return std::nullopt;
  Transport::ControlMessage message = std::move(found->message);
  messages.erase(found);
  return message;
}

std::optional<Transport::ControlMessage> SimulatedTransport::receive_control() {
  std::optional<ControlMessage> message = network_.receive_control(rank_, group_);
  if (message && !cluster_ranks_.empty()) {
    const auto from = std::ranges::find(cluster_ranks_, message->from);
    if (from == cluster_ranks_.end()) return std::nullopt;  // of a group that had the same number
    message->from = static_cast<int>(from - cluster_ranks_.begin());
  }
  return message;
}

std::unique_ptr<Transport> SimulatedTransport::split(std::span<const int> members, const ContextId& id) {
  auto group = std::make_unique<SimulatedTransport>(network_, rank_);
  for (const int member : members) group->cluster_ranks_.push_back(rank_in_cluster(member));
  group->context_ids_ = context_ids_;
  group->group_ = id.number;
  context_ids_->take(id);
  return group;
}

}  // namespace cohort::simulation
