#include "messages.h"

#include <functional>
#include <new>
#include <span>

#include <fmt/format.h>

#include <cohort/collective/copy_bytes.h>

#include "device/node_heap.h"

namespace cohort::node {
namespace {

/// Up to here a send is finished when it has been posted.
constexpr std::size_t kEagerBytes = std::size_t{64} << 10;

/// One of the first parcels, which every member has.
bool lies_in(const SeatMemory& seat, const Parcel& parcel) {
  const std::less<const Parcel*> before;
  return !before(&parcel, seat.parcels.data()) && before(&parcel, seat.parcels.data() + kParcels);
}

}  // namespace

int Mailbox::seat_of(const CollectiveCall& call) const { return *seat_.group().seat_of(call.root); }

Mailbox::Mailbox(Seat& seat) : seat_(seat), last_link_(&own().more_parcels) {
  for (Parcel& parcel : own().parcels) sendings_.push_back({&parcel, nullptr});
}

Mailbox::Sending* Mailbox::find_free() {
  for (Sending& sending : sendings_) {
    const Parcel::State state = sending.parcel->state.load(std::memory_order_acquire);
    if (state == Parcel::State::kTaken) sending.contents = nullptr;
    if (state == Parcel::State::kTaken || state == Parcel::State::kFree) return &sending;
  }
  return add_parcels();
}

Mailbox::Sending* Mailbox::add_parcels() {
  const std::shared_ptr<const Buffer> block = allocate(sizeof(MoreParcels), Device());
  const NodeHeap* heap = NodeHeap::of_this_process();
  const auto offset = heap == nullptr ? std::nullopt : heap->offset_of(block->data(), block->bytes());
  const bool one_process = seat_.group().is_one_process();
  if (!one_process && !offset) return nullptr;  // out of the others' reach: wait for a free one
  auto* more = new (block->data()) MoreParcels;
  const std::size_t first = sendings_.size();
  for (Parcel& parcel : more->parcels) sendings_.push_back({&parcel, nullptr});
  const std::uint64_t address = one_process ? reinterpret_cast<std::uintptr_t>(more) : *offset;
  last_link_->store(address + 1, std::memory_order_release);
  last_link_ = &more->more;
  more_parcels_.push_back(block);
  return &sendings_[first];
}

MoreParcels* Mailbox::follow(int member, const ParcelLink& link) const {
  const std::uint64_t address = link.load(std::memory_order_acquire);
  if (address == 0) return nullptr;
  const NodeGroup& group = seat_.group();
  if (!group.is_one_process())
    return reinterpret_cast<MoreParcels*>(group.memory().address(group.worker_of(member), address - 1));
  return reinterpret_cast<MoreParcels*>(address - 1);  // NOLINT(performance-no-int-to-ptr)
}

Steps Mailbox::send(const CollectiveCall& call) {
  Sending* sending = nullptr;
  co_await until([&] { return (sending = find_free()) != nullptr; });
  Parcel& parcel = *sending->parcel;
  const std::size_t bytes = call.elements * size_of(call.dtype);
  const NodeGroup& group = seat_.group();
  const NodeHeap* heap = NodeHeap::of_this_process();
  const std::byte* data = call.input;
  const bool reachable = (heap != nullptr && heap->offset_of(data, bytes)) || group.is_one_process() ||
                         group.memory().has_single_copy();
  // Who has many messages on their way waits for the receivers, or would run ahead of them for ever.
  const bool eager = lies_in(own(), parcel) && (bytes <= kEagerBytes || !reachable);
  if ((eager || !reachable) && bytes > 0) {
    sending->contents = allocate(bytes, Device());
    data = sending->contents->data();
    copy_bytes(sending->contents->data(), call.input, bytes);
  }
  const auto offset = heap == nullptr ? std::nullopt : heap->offset_of(data, bytes);
  parcel.to.store(seat_of(call), std::memory_order_relaxed);
  parcel.tag.store(call.tag, std::memory_order_relaxed);
  parcel.dtype = call.dtype;
  parcel.elements = call.elements;
  parcel.in_heap = offset.has_value();
  parcel.address = offset.value_or(reinterpret_cast<std::uintptr_t>(data));
  parcel.number.store(number_++, std::memory_order_relaxed);
  parcel.state.store(Parcel::State::kPosted, std::memory_order_release);
  if (eager) co_return;
  posted_[&call] = &parcel;
  co_await until([&parcel] { return parcel.state.load(std::memory_order_acquire) == Parcel::State::kTaken; });
  posted_.erase(&call);
}

bool Mailbox::is_for(const Parcel& parcel, const CollectiveCall& receive) const noexcept {
  return parcel.to.load(std::memory_order_relaxed) == seat_.place().rank &&
         parcel.tag.load(std::memory_order_relaxed) == receive.tag;
}

Parcel* Mailbox::find_for(const CollectiveCall& call) const {
  Parcel* first = nullptr;
  const auto look_through = [&](std::span<Parcel> parcels) {
    for (Parcel& parcel : parcels) {
      if (parcel.state.load(std::memory_order_acquire) != Parcel::State::kPosted) continue;
      if (!is_for(parcel, call)) continue;
      if (first == nullptr || parcel.number < first->number) first = &parcel;
    }
  };
  const int from = seat_of(call);
  SeatMemory& sender = seat_.group().seat(from);
  look_through(sender.parcels);
  for (MoreParcels* more = follow(from, sender.more_parcels); more != nullptr;
       more = follow(from, more->more)) {
    look_through(more->parcels);
  }
  return first;
}

Parcel* Mailbox::take_for(const CollectiveCall& call) const {
  Parcel* parcel = find_for(call);
  auto posted = Parcel::State::kPosted;
  // A sender that has given up takes its parcel back, and may have posted it anew for somebody else.
  if (parcel == nullptr || !parcel->state.compare_exchange_strong(posted, Parcel::State::kBeingTaken))
    return nullptr;
  if (is_for(*parcel, call)) return parcel;
  parcel->state.store(Parcel::State::kPosted, std::memory_order_release);
  return nullptr;
}

Steps Mailbox::receive(const CollectiveCall& call) {
  Parcel* parcel = nullptr;
  co_await until([&] { return (parcel = take_for(call)) != nullptr; });
  const bool fits = parcel->dtype == call.dtype && parcel->elements == call.elements;
  const std::string sent = fits ? "" : fmt::format("{}[{}]", to_string(parcel->dtype), parcel->elements);
  if (fits) fetch(call, *parcel);
  parcel->state.store(Parcel::State::kTaken, std::memory_order_release);
  if (fits) co_return;
  throw InvalidArgument(
      ErrorOrigin{"receive", call.root, seat_.group().host_of(call.root)},
      fmt::format(
          "receive: {} sent {} with tag {}, but member {} receives {}[{}]: dtype and elements must agree",
          seat_.group().who(call.root), sent, call.tag, seat_.group().rank_of(seat_.place().rank),
          to_string(call.dtype), call.elements));
}

void Mailbox::fetch(const CollectiveCall& call, const Parcel& parcel) const {
  const std::size_t bytes = call.elements * size_of(call.dtype);
  if (bytes == 0) return;
  const NodeMemory& memory = seat_.group().memory();
  const int worker = seat_.group().worker_of(seat_of(call));
  const auto* address =
      reinterpret_cast<const std::byte*>(parcel.address);  // NOLINT(performance-no-int-to-ptr)
  if (parcel.in_heap) {
    copy_bytes(call.output, memory.address(worker, parcel.address), bytes);
  } else if (memory.is_this_process(worker)) {
    copy_bytes(call.output, address, bytes);
  } else {
    memory.copy_from(worker, address, call.output, bytes);
  }
}

void Mailbox::look_around(const CollectiveCall& call, const Waiting& waiting) {
  NodeGroup& group = seat_.group();
  if (group.failed()) seat_.fail(group.failure());
  if (const std::optional<Error> fault = group.fault()) seat_.fail(*fault);
  const std::chrono::duration<double> timeout = group.timeout(call);
  const bool late = timeout.count() > 0 && waiting.waited() >= timeout;
  const bool left = group.seat(seat_of(call)).left.load(std::memory_order_acquire);
  if (!late && !left) return;
  if (call.kind == CollectiveKind::kReceive) {
    if (find_for(call) != nullptr) return;
  } else if (const auto posted = posted_.find(&call); posted != posted_.end()) {
    // Takes the parcel back, unless the receiver is at it already.
    auto state = Parcel::State::kPosted;
    if (!posted->second->state.compare_exchange_strong(state, Parcel::State::kFree)) return;
    posted_.erase(posted);
  }
  const std::string& host = group.host_of(call.root);
  const std::string name(to_string(call.kind));
  if (left) {
    throw Aborted(ErrorOrigin{name, call.root, host},
                  fmt::format("{}: {} has left the communicator", describe(call), group.who(call.root)));
  }
  const int missing[] = {call.root};
  throw DeadlineExceeded(ErrorOrigin{name, call.root, host},
                         explain_missing(call, 0, missing, group.members(), waiting.waited().count()));
}

std::vector<std::shared_ptr<const void>> Mailbox::take_contents() {
  std::vector<std::shared_ptr<const void>> contents(more_parcels_.begin(), more_parcels_.end());
  for (Sending& sending : sendings_) {
    const Parcel::State state = sending.parcel->state.load(std::memory_order_acquire);
    if (sending.contents != nullptr && state != Parcel::State::kTaken)
      contents.push_back(std::move(sending.contents));
  }
  return contents;
}

}  // namespace cohort::node
