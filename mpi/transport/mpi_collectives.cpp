#include "mpi_transport.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/reduction.h>

#include "../environment.h"
#include "../messages.h"

namespace cohort::mpi {
namespace {

/// From this size on an all-reduce in place is given a copy of its input: Open MPI's
/// non-blocking form is twice as slow in place (64 MiB on two ranks: 61 ms against 18 ms).
constexpr std::size_t kCopyInputBytes = 64 * 1024;

/// From here on MPI libraries copy a message of a neighbour from where it lies.
constexpr std::size_t kLongBytes = 4096;

std::shared_ptr<const Buffer> copy_of(const std::byte* data, std::size_t bytes) {
  std::shared_ptr<const Buffer> copy = allocate(bytes, Device());
  std::memcpy(copy->data(), data, bytes);
  return copy;
}

template <class Half>
void widen(const std::byte* halves, float* floats, std::size_t elements) {
  const auto* from = reinterpret_cast<const Half*>(halves);
  for (std::size_t i = 0; i < elements; ++i) floats[i] = static_cast<float>(from[i]);
}

template <class Half>
void narrow(const float* floats, std::byte* halves, std::size_t elements) {
  auto* to = reinterpret_cast<Half*>(halves);
  for (std::size_t i = 0; i < elements; ++i) to[i] = Half(floats[i]);
}

int to_count(std::size_t elements) { return static_cast<int>(elements); }

/// One call: MPI's non-blocking operation and what it reads and writes.
class Movement {
 public:
  /// Starts it; `call` must outlive this.
  Movement(MPI_Comm comm, const Operators& operators, const CollectiveCall& call);

  /// True once the result is in place.
  [[nodiscard]] bool advance();

 private:
  void start();
  void start_all_reduce();
  void start_reduce();
  void start_reduce_scatter();
  void start_all_gather();
  void start_gather();
  void start_scatter();

  [[nodiscard]] bool is_root() const noexcept { return call_.root == rank_; }
  [[nodiscard]] std::size_t bytes(std::size_t elements) const { return elements * size_of(call_.dtype); }
  /// This member's block of a buffer of all members' blocks.
  [[nodiscard]] std::size_t own_block() const {
    return static_cast<std::size_t>(rank_) * bytes(call_.elements);
  }
  const void* widened_input(std::size_t elements);
  std::byte* widened_output(std::size_t elements);
  void put_result_in_place();

  MPI_Comm comm_;
  const int rank_;
  const int size_;
  const CollectiveCall& call_;
  MpiArithmetic arithmetic_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::shared_ptr<const Buffer> staged_input_;
  std::shared_ptr<const Buffer> staged_output_;
  std::vector<int> counts_;
  std::vector<int> offsets_;
};

Movement::Movement(MPI_Comm comm, const Operators& operators, const CollectiveCall& call)
    : comm_(comm), rank_(comm_rank(comm)), size_(comm_size(comm)), call_(call) {
  if (reduces(call.kind)) arithmetic_ = operators.arithmetic(call.dtype, call.op);
  const bool something_moves = call.elements > 0 || !call.counts.empty();
  if (something_moves) start();
}

void Movement::start() {
  MPI_Datatype type = storage_type(call_.dtype);
  switch (call_.kind) {
    case CollectiveKind::kAllReduce: return start_all_reduce();
    case CollectiveKind::kReduce: return start_reduce();
    case CollectiveKind::kReduceScatter: return start_reduce_scatter();
    case CollectiveKind::kSplit:
    case CollectiveKind::kAllGather: return start_all_gather();
    case CollectiveKind::kGather: return start_gather();
    case CollectiveKind::kScatter: return start_scatter();
    case CollectiveKind::kBroadcast:
      request_ = ibroadcast(call_.output, to_count(call_.elements), type, call_.root, comm_);
      return;
    case CollectiveKind::kAllToAll:
      request_ = iall_to_all(call_.input, call_.output, to_count(call_.elements), type, comm_);
      return;
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: return;
  }
}

const void* Movement::widened_input(std::size_t elements) {
  if (!arithmetic_.as_float32) return call_.input;
  staged_input_ = allocate(elements * sizeof(float), Device());
  auto* floats = reinterpret_cast<float*>(staged_input_->data());
  if (call_.dtype == DType::kFloat16)
    widen<float16>(call_.input, floats, elements);
  else
    widen<bfloat16>(call_.input, floats, elements);
  return floats;
}

std::byte* Movement::widened_output(std::size_t elements) {
  if (!arithmetic_.as_float32) return call_.output;
  staged_output_ = allocate(elements * sizeof(float), Device());
  return staged_output_->data();
}

void Movement::start_all_reduce() {
  const void* input = widened_input(call_.elements);
  std::byte* output = widened_output(call_.elements);
  if (input == output) {
    input = MPI_IN_PLACE;
    if (bytes(call_.elements) >= kCopyInputBytes) {
      staged_input_ = copy_of(call_.input, bytes(call_.elements));
      input = staged_input_->data();
    }
  }
  request_ = iall_reduce(input, output, to_count(call_.elements), arithmetic_.type, arithmetic_.op, comm_);
}

void Movement::start_reduce() {
  const void* input = widened_input(call_.elements);
  std::byte* output = is_root() ? widened_output(call_.elements) : nullptr;
  if (input == output) input = MPI_IN_PLACE;
  request_ =
      ireduce(input, output, to_count(call_.elements), arithmetic_.type, arithmetic_.op, call_.root, comm_);
}

void Movement::start_reduce_scatter() {
  const std::size_t all = call_.elements * static_cast<std::size_t>(size_);
  const void* input = widened_input(all);
  std::byte* output = widened_output(call_.elements);
  if (call_.output == call_.input + own_block() && !arithmetic_.as_float32) {
    // MPI's own form in place would put the result at the front, over another member's block.
    staged_output_ = allocate(bytes(call_.elements), Device());
    output = staged_output_->data();
  }
  request_ =
      ireduce_scatter(input, output, to_count(call_.elements), arithmetic_.type, arithmetic_.op, comm_);
}

void Movement::start_all_gather() {
  MPI_Datatype type = storage_type(call_.dtype);
  if (call_.counts.empty()) {
    const bool in_place = call_.input == call_.output + own_block();
    request_ = iall_gather(in_place ? MPI_IN_PLACE : call_.input, call_.output, to_count(call_.elements),
                           type, comm_);
    return;
  }
  int before = 0;
  for (const std::size_t count : call_.counts) {
    offsets_.push_back(before);
    counts_.push_back(to_count(count));
    before += to_count(count);
  }
  if (before == 0) return;
  const auto own_offset = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(rank_)]);
  const bool in_place = call_.input == call_.output + bytes(own_offset);
  request_ = iall_gather_uneven(in_place ? MPI_IN_PLACE : call_.input, to_count(call_.elements), call_.output,
                                counts_.data(), offsets_.data(), type, comm_);
}

void Movement::start_gather() {
  const bool in_place = is_root() && call_.input == call_.output + own_block();
  request_ = igather(in_place ? MPI_IN_PLACE : call_.input, call_.output, to_count(call_.elements),
                     storage_type(call_.dtype), call_.root, comm_);
}

void Movement::start_scatter() {
  const bool in_place = is_root() && call_.output == call_.input + own_block();
  request_ = iscatter(call_.input, in_place ? MPI_IN_PLACE : call_.output, to_count(call_.elements),
                      storage_type(call_.dtype), call_.root, comm_);
}

bool Movement::advance() {
  if (!test(request_)) return false;
  put_result_in_place();
  return true;
}

void Movement::put_result_in_place() {
  if (!reduces(call_.kind) || call_.output == nullptr || call_.elements == 0) return;
  const auto members = static_cast<std::size_t>(size_);
  const bool mean = call_.op == ReduceOp::kMean;
  if (arithmetic_.as_float32) {
    if (mean) divide_elements(DType::kFloat32, staged_output_->data(), call_.elements, members);
    const auto* floats = reinterpret_cast<const float*>(staged_output_->data());
    if (call_.dtype == DType::kFloat16)
      narrow<float16>(floats, call_.output, call_.elements);
    else
      narrow<bfloat16>(floats, call_.output, call_.elements);
    return;
  }
  if (staged_output_) std::memcpy(call_.output, staged_output_->data(), bytes(call_.elements));
  if (mean) divide_elements(call_.dtype, call_.output, call_.elements, members);
}

/// A movement that a failure may end before MPI has.
class InFlight {
 public:
  InFlight(SharedComms& comms, const CollectiveCall& call)
      : comms_(comms),
        movement_(std::make_shared<Movement>(comms.comm(Transport::Channel::kCollective), comms.operators(),
                                             call)) {}

  ~InFlight() {
    if (done_) return;
    comms_.leave_open();
    keep_for_ever(movement_);
  }

  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  [[nodiscard]] bool advance() {
    const MpiLock::Guard guard = comms_.lock().try_acquire();
    if (guard) done_ = movement_->advance();
    return done_;
  }

 private:
  SharedComms& comms_;
  std::shared_ptr<Movement> movement_;
  bool done_ = false;
};

}  // namespace

bool MpiCollectives::is_legal(const CollectiveCall& call) const {
  // MPI counts with int.
  using Extent = CollectiveTraits::Extent;
  const CollectiveTraits& traits = traits_of(call.kind);
  const bool has_all_blocks = traits.input == Extent::kAllBlocks || traits.output == Extent::kAllBlocks;
  const std::size_t members = has_all_blocks ? static_cast<std::size_t>(comms_->workers()) : 1;
  const std::size_t blocks = std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
  return std::max(call.elements * members, blocks) <=
         static_cast<std::size_t>(std::numeric_limits<int>::max());
}

// Within a machine MPI copies long messages from process to process, and Cohort's algorithms cut them up;
// what is reduced gains more from overlapping the parts.
bool MpiCollectives::is_preferred(const CollectiveCall& call, std::size_t bytes) const {
  return comms_->neighbours_are_apart() && !reduces(call.kind) && bytes >= kLongBytes;
}

Task<> MpiCollectives::execute(const CollectiveCall& call) {
  std::optional<InFlight> in_flight;
  {
    const MpiLock::Guard guard = comms_->lock().acquire();
    in_flight.emplace(*comms_, call);
  }
  co_await until([&] { return in_flight->advance(); });
}

}  // namespace cohort::mpi
