#include "messages.h"

#include <cstring>

#include <fmt/format.h>

#include <cohort/collective/copy_bytes.h>
#include <cohort/device/node_heap.h>

namespace cohort::node {
namespace {

/// Up to here a send is finished when it has been posted.
constexpr std::size_t kEagerBytes = std::size_t{64} << 10;

}  // namespace

int Mailbox::seat_of(const CollectiveCall& call) const { return *seat_.group().seat_of(call.root); }

Parcel* Mailbox::find_free() {
  for (std::size_t i = 0; i < kParcels; ++i) {
    Parcel& parcel = seat_.own().parcels[i];
    const Parcel::State state = parcel.state.load(std::memory_order_acquire);
    if (state == Parcel::State::kTaken) contents_[i] = nullptr;
    if (state == Parcel::State::kTaken || state == Parcel::State::kFree) return &parcel;
  }
  return nullptr;
}

Steps Mailbox::send(const CollectiveCall& call) {
  Parcel* parcel = nullptr;
  co_await until([&] { return (parcel = find_free()) != nullptr; });
  const std::size_t bytes = call.elements * size_of(call.dtype);
  const NodeGroup& group = seat_.group();
  const NodeHeap* heap = NodeHeap::of_this_process();
  const std::byte* data = call.input;
  const bool reachable = (heap != nullptr && heap->offset_of(data)) || group.is_one_process() ||
                         group.memory().has_single_copy();
  const bool copied = bytes <= kEagerBytes || !reachable;
  if (copied && bytes > 0) {
    auto& contents = contents_[static_cast<std::size_t>(parcel - seat_.own().parcels.data())];
    contents = allocate(bytes, Device());
    copy_bytes(contents->data(), data, bytes);
    data = contents->data();
  }
  const auto offset = heap == nullptr ? std::nullopt : heap->offset_of(data);
  parcel->to = seat_of(call);
  parcel->tag = call.tag;
  parcel->dtype = call.dtype;
  parcel->elements = call.elements;
  parcel->in_heap = offset.has_value();
  parcel->address = offset.value_or(reinterpret_cast<std::uintptr_t>(data));
  parcel->number = number_++;
  parcel->state.store(Parcel::State::kPosted, std::memory_order_release);
  if (copied) co_return;
  posted_[&call] = parcel;
  co_await until([parcel] { return parcel->state.load(std::memory_order_acquire) == Parcel::State::kTaken; });
  posted_.erase(&call);
}

Parcel* Mailbox::find_for(const CollectiveCall& call) {
  Parcel* first = nullptr;
  for (Parcel& parcel : seat_.peer(seat_of(call)).parcels) {
    if (parcel.state.load(std::memory_order_acquire) != Parcel::State::kPosted) continue;
    if (parcel.to != seat_.place().rank || parcel.tag != call.tag) continue;
    if (first == nullptr || parcel.number < first->number) first = &parcel;
  }
  return first;
}

Steps Mailbox::receive(const CollectiveCall& call) {
  Parcel* parcel = nullptr;
  co_await until([&] { return (parcel = find_for(call)) != nullptr; });
  auto posted = Parcel::State::kPosted;
  // A sender that has given up takes its parcel back.
  while (!parcel->state.compare_exchange_strong(posted, Parcel::State::kBeingTaken)) {
    co_await until([&] { return (parcel = find_for(call)) != nullptr; });
    posted = Parcel::State::kPosted;
  }
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

void Mailbox::fetch(const CollectiveCall& call, Parcel& parcel) {
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
  if (const Error* fault = group.fault()) seat_.fail(*fault);
  const bool late = group.timeout().count() > 0 && waiting.waited() >= group.timeout();
  const bool left = seat_.peer(seat_of(call)).left.load(std::memory_order_acquire);
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

std::vector<std::shared_ptr<const Buffer>> Mailbox::take_contents() {
  std::vector<std::shared_ptr<const Buffer>> contents;
  for (std::size_t i = 0; i < kParcels; ++i) {
    const Parcel::State state = seat_.own().parcels[i].state.load(std::memory_order_acquire);
    if (contents_[i] != nullptr && state != Parcel::State::kTaken)
      contents.push_back(std::move(contents_[i]));
  }
  return contents;
}

}  // namespace cohort::node
