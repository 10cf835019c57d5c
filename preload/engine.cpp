#include "engine.h"

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "collective/communicator_base.h"
#include "program_memory.h"

namespace cohort::preload {
namespace {

/// From so many on the buffers of a call may be large ones.
constexpr std::size_t kElementsOfLargeCall = 1024;

/// The one value that a Session's first worker sets and the others get, sent to all of them at once: they ask
/// for it while the first one sets it.
class BroadcastStore final : public rendezvous::Store {
 public:
  BroadcastStore(bool is_first, const Broadcast& broadcast) : is_first_(is_first), broadcast_(broadcast) {}
  /// The others wait for a value, also where this rank has failed before it had one.
  ~BroadcastStore() override {
    if (is_first_ && !was_sent_) send(kNothing);
  }
  BroadcastStore(const BroadcastStore&) = delete;
  BroadcastStore& operator=(const BroadcastStore&) = delete;

  void set(const std::string& /*key*/, std::string_view value) override {
    send(value.size());
    std::string bytes(value);
    broadcast_(std::as_writable_bytes(std::span(bytes)));
  }

  [[nodiscard]] std::optional<std::string> get(const std::string& /*key*/) override { return value_; }

  [[nodiscard]] bool wait(std::span<const std::string> /*keys*/, std::chrono::milliseconds) override {
    if (value_) return true;
    std::size_t bytes = 0;
    broadcast_(std::as_writable_bytes(std::span(&bytes, 1)));
    if (bytes == kNothing) throw Unavailable("the first rank of the node could not start");
    value_.emplace(bytes, '\0');
    broadcast_(std::as_writable_bytes(std::span(*value_)));
    return true;
  }

 private:
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

  void send(std::size_t bytes) {
    was_sent_ = true;
    broadcast_(std::as_writable_bytes(std::span(&bytes, 1)));
  }

  const bool is_first_;
  const Broadcast& broadcast_;
  bool was_sent_ = false;
  std::optional<std::string> value_;
};

}  // namespace

NodeRanks::NodeRanks(int rank, int size, const Broadcast& broadcast) {
  if (rank == 0) {
    std::random_device device;
    id_ = std::uint64_t{device()} << 32 | device();
  }
  broadcast(std::as_writable_bytes(std::span(&id_, 1)));
  rendezvous::SessionOptions options{
      .store = std::make_shared<BroadcastStore>(rank == 0, broadcast), .rank = rank, .size = size};
  // A rank that a debugger has stopped is waited for, as in MPI.
  if (!config().is_set("COHORT_SILENCE_SECONDS")) options.silence = std::chrono::seconds(0);
  options.names_stragglers = false;  // others' programs say only what they are asked for
  session_ = std::make_unique<rendezvous::Session>(std::move(options));
}

std::unique_ptr<Communicator> NodeRanks::make_communicator(std::span<const int> ranks, std::string_view name,
                                                           void (*while_waiting)()) const {
  CommunicationOptions options;
  options.while_waiting = while_waiting;
  options.eager = true;
  // MPI knows no deadlines, and a rank may be late for good reasons.
  if (!config().is_set("COHORT_COLLECTIVE_TIMEOUT_SECONDS")) options.timeout_seconds = 0;
  // What is left of the group afterwards would be connections between its members.
  std::unique_ptr<Communicator> made = session_->make_group(ranks, name)->make_communicator(options);
  return made->name() == "node" ? std::move(made) : nullptr;
}

ServedCalls served_calls() {
  const std::string calls = config().mpi_calls();
  return calls == "none" ? ServedCalls::kNone : calls == "exact" ? ServedCalls::kExact : ServedCalls::kAll;
}

std::size_t eager_bytes(const Communicator& communicator) noexcept {
  const auto* const base = dynamic_cast<const CommunicatorBase*>(&communicator);
  return base == nullptr ? 0 : base->eager_bytes();
}

void note_call_of_mpi(Communicator& communicator, const char* name) noexcept {
  static_cast<CommunicatorBase&>(communicator).note_call_outside(name);
}

void take_back_call_of_mpi(Communicator& communicator) noexcept {
  static_cast<CommunicatorBase&>(communicator).take_back_call_outside();
}

void carry_out(Communicator& communicator, const CollectiveCall& call) {
  if (call.elements >= kElementsOfLargeCall) [[unlikely]] {
    const int rank = communicator.rank();
    const int size = communicator.size();
    ProgramMemory& memory = ProgramMemory::of_this_process();
    if (call.input != call.output) memory.note({call.input, input_bytes(call, rank, size)});
    memory.note({call.output, output_bytes(call, rank, size)});
  }
  CommunicatorBase::run_checked(communicator, call);
}

}  // namespace cohort::preload
