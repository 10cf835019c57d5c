#include "node_group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>
#include <cohort/device/node_heap.h>

namespace cohort::node {
namespace {

/// Seats that their members have left, while others may still look at them.
class DepartedSeats {
 public:
  static DepartedSeats& of_this_process() {
    static auto* const seats =
        new DepartedSeats;  // other threads may still leave while statics are destroyed
    return *seats;
  }

  void add(const SeatMemory& memory, int others, std::vector<std::shared_ptr<const void>> blocks) {
    {
      const std::lock_guard lock(mutex_);
      seats_.push_back({&memory, others, std::move(blocks)});
    }
    sweep();
  }

  void sweep() {
    std::list<Seat> forsaken;  // what users' memory does at its end, it does without the lock
    const std::lock_guard lock(mutex_);
    for (auto seat = seats_.begin(); seat != seats_.end();) {
      const auto next = std::next(seat);
      if (seat->memory->departures.load(std::memory_order_acquire) == seat->others)
        forsaken.splice(forsaken.end(), seats_, seat);
      seat = next;
    }
  }

 private:
  struct Seat {
    const SeatMemory* memory;
    int others;
    std::vector<std::shared_ptr<const void>> blocks;  ///< what is kept until the others have departed
  };

  std::mutex mutex_;
  std::list<Seat> seats_;
};

/// The block is aligned by hand: the heap promises cache lines, a seat wants pages.
SeatMemory* place_seat(const Buffer& block) {
  void* data = block.data();
  std::size_t room = block.bytes();
  void* aligned = std::align(alignof(SeatMemory), sizeof(SeatMemory), data, room);
  COHORT_CHECK(aligned != nullptr);
  return new (aligned) SeatMemory;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::vector<std::uint64_t> parse_offsets(const std::string& blob) {
  std::vector<std::uint64_t> offsets(blob.size() / sizeof(std::uint64_t));
  std::memcpy(offsets.data(), blob.data(), offsets.size() * sizeof(std::uint64_t));
  return offsets;
}

template <std::size_t kSize>
void write_text(std::array<char, kSize>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::copy_n(text.begin(), length, to.begin());
  to[length] = '\0';
}

}  // namespace

NodeGroup::NodeGroup(const NodeGroupOptions& options)
    : process_(::getpid()),
      memory_(options.memory),
      timeout_(options.communication.timeout_seconds.value_or(config().collective_timeout().count())),
      fault_(options.fault) {
  if (options.members < 1)
    throw InvalidArgument("a group needs at least one member, not {}", options.members);
  static_cast<void>(
      options.communication.deadline());  // a wrong time-out is reported here, not by the first collective
  DepartedSeats::of_this_process().sweep();

  std::vector<SeatMemory*> own_seats;
  for (int i = 0; i < options.members; ++i) {
    own_blocks_.push_back(allocate(sizeof(SeatMemory) + alignof(SeatMemory), Device()));
    own_seats.push_back(place_seat(*own_blocks_.back()));
  }
  first_local_ = options.rank * options.members;
  if (options.workers.size() <= 1) {
    seats_ = own_seats;
    const MemberInfo self = options.workers.empty()
                                ? MemberInfo{0, host_name()}
                                : MemberInfo{options.workers[0].rank, options.workers[0].host};
    members_.assign(own_seats.size(), self);
    workers_.assign(own_seats.size(), self.worker);
  } else {
    meet_other_processes(options, own_seats);
  }
  crowded_ = size() > memory_->cores();
}

void NodeGroup::meet_other_processes(const NodeGroupOptions& options,
                                     std::span<SeatMemory* const> own_seats) {
  const NodeHeap* heap = NodeHeap::of_this_process();
  std::vector<std::uint64_t> offsets;
  for (const SeatMemory* seat : own_seats) {
    const auto offset =
        heap == nullptr ? std::nullopt : heap->offset_of(reinterpret_cast<const std::byte*>(seat));
    if (offset) offsets.push_back(*offset);
  }
  // Who lacks room says so by an empty list: alone it must not give up, for the others would wait for it.
  if (offsets.size() < own_seats.size()) offsets.clear();
  const std::vector<std::string> blobs = options.exchange(
      {reinterpret_cast<const char*>(offsets.data()), offsets.size() * sizeof(std::uint64_t)});
  for (const WorkerInfo& worker : options.workers) {
    const std::vector<std::uint64_t> theirs = parse_offsets(blobs[static_cast<std::size_t>(worker.rank)]);
    if (theirs.empty()) {
      throw Unavailable("the node heap of {} has no room for a communicator's {} KiB per member",
                        describe(worker), sizeof(SeatMemory) / 1024);
    }
    if (theirs.size() != own_seats.size()) {
      throw InvalidArgument(
          "{} makes a communicator with {} members, this worker one with {}; the numbers must agree",
          describe(worker), theirs.size(), own_seats.size());
    }
    for (const std::uint64_t offset : theirs) {
      seats_.push_back(reinterpret_cast<SeatMemory*>(memory_->address(worker.rank, offset)));
      members_.push_back({worker.rank, worker.host});
      workers_.push_back(worker.rank);
    }
  }
}

NodeGroup::~NodeGroup() = default;

Error NodeGroup::fail(const Error& error) {
  FailureRecord& record = this->record();
  auto state = FailureRecord::State::kNone;
  if (record.state.compare_exchange_strong(state, FailureRecord::State::kBeingWritten)) {
    record.code = static_cast<std::int32_t>(error.code());
    record.member = error.origin().member;
    write_text(record.host, error.origin().host);
    write_text(record.call, error.origin().call);
    write_text(record.text, error.what());
    record.state.store(FailureRecord::State::kWritten, std::memory_order_release);
    return error;
  }
  // Whoever was first is about to finish writing, or died over it.
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  while (record.state.load(std::memory_order_acquire) != FailureRecord::State::kWritten) {
    if (deadline.expired()) return error;
    std::this_thread::yield();
  }
  return failure();
}

Error NodeGroup::failure() const {
  const FailureRecord& record = this->record();
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  while (record.state.load(std::memory_order_acquire) != FailureRecord::State::kWritten) {
    if (deadline.expired())
      return Aborted("the communicator failed, and the member that noticed it died before it said why");
    std::this_thread::yield();
  }
  return {static_cast<ErrorCode>(record.code), record.text.data(),
          ErrorOrigin{record.call.data(), record.member, record.host.data()}};
}

bool NodeGroup::is_of_this_process() const noexcept { return process_ == ::getpid(); }

void NodeGroup::leave(int member, std::vector<std::shared_ptr<const void>> held) {
  seat(member).left.store(true, std::memory_order_release);
  for (int other = 0; other < size(); ++other) {
    if (other != member) seat(other).departures.fetch_add(1, std::memory_order_acq_rel);
  }
  held.push_back(std::move(own_blocks_[static_cast<std::size_t>(member - first_local_)]));
  DepartedSeats::of_this_process().add(seat(member), size() - 1, std::move(held));
}

}  // namespace cohort::node
