#include "messages.h"

#include <functional>
#include <new>
#include <span>

#include <fmt/format.h>

#include <cohort/collective/copy_bytes.h>

#include "collective/choice/selection.h"
#include "device/node_heap.h"

namespace cohort::node {
namespace {

/// Up to here a send is finished when it has been posted.
constexpr std::size_t kEagerBytes = std::size_t{64} << 10;

/// The receiver is done with an envelope that it was taking. False if the sender had withdrawn it meanwhile.
bool release(Envelope& envelope, Envelope::State state) {
  auto expected = Envelope::State::kBeingTaken;
  if (envelope.state.compare_exchange_strong(expected, state)) return true;
  envelope.state.store(Envelope::State::kFree, std::memory_order_release);
  return false;
}

/// One of the first envelopes, which every member has.
bool lies_in(const ControlBlock& block, const Envelope& envelope) {
  const std::less<const Envelope*> before;
  return !before(&envelope, block.envelopes.data()) && before(&envelope, block.envelopes.data() + kEnvelopes);
}

}  // namespace

int Mailbox::local_rank_of(const CollectiveCall& call) const {
  return *endpoint_.group().local_rank_of(call.root);
}

Mailbox::Mailbox(Endpoint& endpoint) : endpoint_(endpoint), last_link_(&own().more_envelopes) {
  for (Envelope& envelope : own().envelopes) sendings_.push_back({&envelope, nullptr});
}

Mailbox::Sending* Mailbox::find_free() {
  for (Sending& sending : sendings_) {
    const Envelope::State state = sending.envelope->state.load(std::memory_order_acquire);
    if (state == Envelope::State::kTaken) sending.contents = nullptr;
    if (state == Envelope::State::kTaken || state == Envelope::State::kFree) return &sending;
  }
  return add_envelopes();
}

Mailbox::Sending* Mailbox::add_envelopes() {
  const std::shared_ptr<const Buffer> block = allocate(sizeof(MoreEnvelopes), Device());
  const NodeHeap* heap = NodeHeap::of_this_process();
  const auto offset = heap == nullptr ? std::nullopt : heap->offset_of(block->data(), block->bytes());
  const bool one_process = endpoint_.group().is_one_process();
  if (!one_process && !offset) return nullptr;  // out of the others' reach: wait for a free one
  auto* more = new (block->data()) MoreEnvelopes;
  const std::size_t first = sendings_.size();
  for (Envelope& envelope : more->envelopes) sendings_.push_back({&envelope, nullptr});
  const std::uint64_t address = one_process ? reinterpret_cast<std::uintptr_t>(more) : *offset;
  last_link_->store(address + 1, std::memory_order_release);
  last_link_ = &more->more;
  more_envelopes_.push_back(block);
  return &sendings_[first];
}

MoreEnvelopes* Mailbox::follow(int member, const EnvelopeChain& link) const {
  const std::uint64_t address = link.load(std::memory_order_acquire);
  if (address == 0) return nullptr;
  const NodeGroup& group = endpoint_.group();
  if (!group.is_one_process())
    return reinterpret_cast<MoreEnvelopes*>(group.memory().address(group.worker_of(member), address - 1));
  return reinterpret_cast<MoreEnvelopes*>(address - 1);  // NOLINT(performance-no-int-to-ptr)
}

Task<> Mailbox::send(const CollectiveCall& call) {
  Sending* sending = nullptr;
  co_await until([&] { return (sending = find_free()) != nullptr; });
  Envelope& envelope = *sending->envelope;
  const std::size_t bytes = call.elements * size_of(call.dtype);
  const NodeGroup& group = endpoint_.group();
  const NodeHeap* heap = NodeHeap::of_this_process();
  const std::byte* data = call.input;
  const bool reachable = (heap != nullptr && heap->offset_of(data, bytes)) || group.is_one_process() ||
                         group.memory().has_single_copy();
  // A sender that has many messages on their way waits for the receivers: it could run ahead of them for
  // ever.
  const bool eager = lies_in(own(), envelope) && (bytes <= kEagerBytes || !reachable);
  if ((eager || !reachable) && bytes > 0) {
    sending->contents = allocate(bytes, Device());
    data = sending->contents->data();
    copy_bytes(sending->contents->data(), call.input, bytes);
  }
  const auto offset = heap == nullptr ? std::nullopt : heap->offset_of(data, bytes);
  envelope.to.store(local_rank_of(call), std::memory_order_relaxed);
  envelope.tag.store(call.tag, std::memory_order_relaxed);
  envelope.dtype = call.dtype;
  envelope.elements = call.elements;
  envelope.in_heap = offset.has_value();
  envelope.address = offset.value_or(reinterpret_cast<std::uintptr_t>(data));
  envelope.number.store(number_++, std::memory_order_relaxed);
  envelope.state.store(Envelope::State::kPosted, std::memory_order_release);
  if (eager) co_return;
  posted_[&call] = &envelope;
  co_await until(
      [&envelope] { return envelope.state.load(std::memory_order_acquire) == Envelope::State::kTaken; });
  posted_.erase(&call);
}

bool Mailbox::is_for(const Envelope& envelope, const CollectiveCall& receive) const noexcept {
  return envelope.to.load(std::memory_order_relaxed) == endpoint_.position().rank &&
         envelope.tag.load(std::memory_order_relaxed) == receive.tag;
}

std::optional<Mailbox::Found> Mailbox::look_for(const CollectiveCall& call) const {
  std::optional<Found> first;
  bool is_busy = false;
  const auto look_through = [&](std::span<Envelope> envelopes) {
    for (Envelope& envelope : envelopes) {
      const Envelope::State state = envelope.state.load(std::memory_order_acquire);
      if (state != Envelope::State::kPosted && state != Envelope::State::kBeingTaken) continue;
      if (!is_for(envelope, call)) continue;
      if (state == Envelope::State::kBeingTaken) is_busy = true;
      const std::uint64_t number = envelope.number.load(std::memory_order_relaxed);
      if (!first || number < first->number) first = {&envelope, number};
    }
  };
  const int from = local_rank_of(call);
  ControlBlock& sender = endpoint_.group().control_block(from);
  look_through(sender.envelopes);
  for (MoreEnvelopes* more = follow(from, sender.more_envelopes); more != nullptr;
       more = follow(from, more->more)) {
    look_through(more->envelopes);
  }
  return is_busy ? std::nullopt : first;
}

std::optional<Mailbox::Found> Mailbox::find_for(const CollectiveCall& call) const {
  std::optional<Found> found = look_for(call);
  const Envelope* const first = endpoint_.group().control_block(local_rank_of(call)).envelopes.data();
  // While the others were looked at, earlier messages may have been posted in those that were free before.
  // Having seen the later one makes them visible.
  while (found && found->envelope != first) {
    const std::optional<Found> again = look_for(call);
    if (again == found) break;
    found = again;
  }
  return found;
}

Envelope* Mailbox::take_for(const CollectiveCall& call) const {
  const std::optional<Found> found = find_for(call);
  if (!found) return nullptr;
  Envelope& envelope = *found->envelope;
  auto posted = Envelope::State::kPosted;
  if (!envelope.state.compare_exchange_strong(posted, Envelope::State::kBeingTaken)) return nullptr;
  // A sender that has given up takes its envelope back, and may have posted it anew.
  if (envelope.number.load(std::memory_order_relaxed) == found->number) return &envelope;
  release(envelope, Envelope::State::kPosted);
  return nullptr;
}

Task<> Mailbox::receive(const CollectiveCall& call) {
  bool fits = false;
  std::string sent;
  for (bool taken = false; !taken;) {
    Envelope* envelope = nullptr;
    co_await until([&] { return (envelope = take_for(call)) != nullptr; });
    fits = envelope->dtype == call.dtype && envelope->elements == call.elements;
    if (!fits) sent = fmt::format("{}[{}]", to_string(envelope->dtype), envelope->elements);
    taken = fits ? fetch(call, *envelope) : release(*envelope, Envelope::State::kTaken);
  }
  // A sender whose group has failed may have changed what was copied.
  endpoint_.failure_watch().require_unfailed_so_far();
  if (fits) co_return;
  throw InvalidArgument(
      ErrorOrigin{"receive", call.root, endpoint_.group().host_of(call.root)},
      fmt::format(
          "receive: {} sent {} with tag {}, but member {} receives {}[{}]: dtype and elements must agree",
          endpoint_.group().who(call.root), sent, call.tag,
          endpoint_.group().rank_of(endpoint_.position().rank), to_string(call.dtype), call.elements));
}

/// Copies the contents. False if the sender gave up meanwhile.
bool Mailbox::fetch(const CollectiveCall& call, Envelope& envelope) const {
  try {
    copy_contents(call, envelope);
  } catch (const Error&) {
    // A sender that gave up may have freed the memory.
    if (release(envelope, Envelope::State::kTaken)) throw;
    return false;
  }
  return release(envelope, Envelope::State::kTaken);
}

void Mailbox::copy_contents(const CollectiveCall& call, const Envelope& envelope) const {
  const std::size_t bytes = call.elements * size_of(call.dtype);
  if (bytes == 0) return;
  const NodeMemory& memory = endpoint_.group().memory();
  const int worker = endpoint_.group().worker_of(local_rank_of(call));
  const auto* address =
      reinterpret_cast<const std::byte*>(envelope.address);  // NOLINT(performance-no-int-to-ptr)
  if (envelope.in_heap) {
    copy_bytes(call.output, memory.address(worker, envelope.address), bytes);
  } else if (memory.is_this_process(worker)) {
    copy_bytes(call.output, address, bytes);
  } else {
    memory.copy_from(worker, address, call.output, bytes);
  }
}

/// False if the message has been taken.
bool Mailbox::take_back(const CollectiveCall& call) {
  const auto posted = posted_.find(&call);
  auto state = Envelope::State::kPosted;
  if (posted->second->state.compare_exchange_strong(state, Envelope::State::kFree)) {
    posted_.erase(posted);
    return true;
  }
  state = Envelope::State::kBeingTaken;
  return posted->second->state.compare_exchange_strong(state, Envelope::State::kWithdrawn);
}

void Mailbox::check_for_failure(const CollectiveCall& call, const Waiting& waiting) {
  NodeGroup& group = endpoint_.group();
  endpoint_.failure_watch().check_group();
  const std::chrono::duration<double> timeout = group.timeout(call);
  const bool late = timeout.count() > 0 && waiting.waited() >= timeout;
  const bool left = group.control_block(local_rank_of(call)).left.load(std::memory_order_acquire);
  if (!late && !left) return;
  if (call.kind == CollectiveKind::kReceive) {
    if (find_for(call)) return;
  } else if (posted_.contains(&call)) {
    if (!take_back(call)) return;
  }
  const std::string& host = group.host_of(call.root);
  const std::string name(to_string(call.kind));
  if (left) {
    throw Aborted(ErrorOrigin{name, call.root, host},
                  fmt::format("{}: {} has left the communicator", describe(call), group.who(call.root)));
  }
  const int missing[] = {call.root};
  throw DeadlineExceeded(ErrorOrigin{name, call.root, host},
                         explain_missing(call, 0, {missing}, group.members(), waiting.waited().count()));
}

std::vector<std::shared_ptr<const void>> Mailbox::take_contents() {
  std::vector<std::shared_ptr<const void>> contents(more_envelopes_.begin(), more_envelopes_.end());
  for (Sending& sending : sendings_) {
    const Envelope::State state = sending.envelope->state.load(std::memory_order_acquire);
    if (sending.contents != nullptr && state != Envelope::State::kTaken)
      contents.push_back(std::move(sending.contents));
  }
  return contents;
}

// ---- for registered algorithms

CollectiveCall NodePeers::message(CollectiveKind kind, int other, std::size_t bytes, int tag) const {
  require_legal_message(*this, other, tag);
  // Above the tags of programs, and different in each call, so that a message left over from one call does
  // not match in the next.
  constexpr int kFirstTag = 1 << 16;
  constexpr std::uint64_t kTurns = 1 << 14;
  CollectiveCall message;
  message.kind = kind;
  message.root = endpoint_.group().rank_of(other);
  message.tag = kFirstTag + static_cast<int>(endpoint_.number() % kTurns) * (kLargestTag + 1) + tag;
  message.elements = bytes;
  return message;
}

Task<> NodePeers::send(int to, std::span<const std::byte> data, int tag) {
  CollectiveCall call = message(CollectiveKind::kSend, to, data.size(), tag);
  call.input = data.data();
  co_await mailbox_.send(call);
}

Task<> NodePeers::receive(int from, std::span<std::byte> into, int tag) {
  CollectiveCall call = message(CollectiveKind::kReceive, from, into.size(), tag);
  call.output = into.data();
  co_await mailbox_.receive(call);
}

}  // namespace cohort::node
