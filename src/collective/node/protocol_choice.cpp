#include "execute.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "collective/choice/tuning_figures.h"
#include "device/node_heap.h"
#include "endpoint.h"

namespace cohort::node {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a probe may take; what is not found out by then keeps its built-in value.
constexpr std::chrono::milliseconds kProbeBudget{25};

/// A protocol counts as faster if it wins this many times in a row, each time by the margin.
constexpr int kWins = 6;
constexpr double kMargin = 1.1;

/// How far a figure may move: a few doublings, and not to where the probe's own memory would count.
constexpr std::size_t kFarthest = 8;
constexpr std::size_t kLargestBuffer = std::size_t{4} << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Reads the result, as a program would.
void read_all(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + sizeof sum <= bytes.size(); at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum += word;
  }
  const volatile std::uint64_t seen = sum;  // or nothing would be read
  static_cast<void>(seen);
}

/// A small collective among the members of the node.
Task<> small_subcall(Endpoint& endpoint, CollectiveKind kind, DType dtype, ReduceOp op, std::byte* data,
                     std::size_t elements) {
  CollectiveCall part;
  part.kind = kind;
  part.dtype = dtype;
  part.op = op;
  part.elements = elements;
  part.input = part.output = data;
  co_await execute(endpoint, part);
}

/// Two protocols for the same kind of call: `late` replaces the first one from some size on.
struct Crossover {
  Figure figure;
  CollectiveKind kind;
  bool in_place;
  bool in_heap;
  Protocol late;
};

constexpr std::array kCrossovers{
    Crossover{Figure::kDirectReduction, CollectiveKind::kAllReduce, true, true, Protocol::kDirect},
    Crossover{Figure::kDirectOutOfPlace, CollectiveKind::kAllReduce, false, true, Protocol::kDirect},
    Crossover{Figure::kDirectMove, CollectiveKind::kAllGather, false, true, Protocol::kDirect},
    Crossover{Figure::kDirectBroadcast, CollectiveKind::kBroadcast, true, true, Protocol::kDirect},
    Crossover{Figure::kSingleCopy, CollectiveKind::kAllReduce, true, false, Protocol::kSingleCopy},
};

/// Of the slowest member.
struct Seconds {
  double of_call = 0;
  double of_step = 0;
};

/// One comparison; trivially copyable, so that members can agree on it.
struct Round {
  Seconds incumbent;
  Seconds challenger;
  double since_start = 0;  ///< of the probe

  /// Faster as a whole, and not at the expense of the call.
  [[nodiscard]] bool challenger_wins() const noexcept {
    return challenger.of_step * kMargin < incumbent.of_step && challenger.of_call < incumbent.of_call;
  }
};

class Probe {
 public:
  explicit Probe(Endpoint& endpoint) : endpoint_(endpoint) {}
  /// After a failure in the middle of a comparison, others may still read and write its buffers.
  ~Probe() {
    for (std::shared_ptr<const void>& buffer : buffers_) NodeGroup::keep_for_ever(std::move(buffer));
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  Task<TuningTable> run() {
    TuningTable table;
    for (const Crossover& crossover : kCrossovers) {
      const bool exists = crossover.in_heap || !endpoint_.group().is_one_process();
      if (!exists || spent_) continue;
      const std::size_t built_in = table.bytes(crossover.figure);
      const std::size_t threshold = co_await find(crossover, built_in);
      if (threshold != built_in)
        table.set(crossover.figure, static_cast<double>(threshold), TuningSource::kProbed);
    }
    co_return table;
  }

 private:
  /// The figure, moved down while the late protocol wins below it, or up while the early one wins at it.
  Task<std::size_t> find(const Crossover& crossover, std::size_t built_in) {
    const std::size_t least = std::max(built_in / kFarthest, kSlotBytes + 1);
    const std::size_t most = std::min(kFarthest * built_in, largest(crossover));
    std::size_t threshold = built_in;
    bool moves = true;
    while (moves && threshold / 2 >= least) {
      moves = co_await is_faster(crossover, threshold / 2, Protocol::kPieces, crossover.late);
      if (moves) threshold /= 2;
    }
    moves = threshold == built_in;
    while (moves && 2 * threshold <= most) {
      moves = co_await is_faster(crossover, threshold, crossover.late, Protocol::kPieces);
      if (moves) threshold *= 2;
    }
    co_return threshold;
  }

  /// Whether `challenger` is clearly faster at this size than what the table has.
  Task<bool> is_faster(const Crossover& crossover, std::size_t bytes, Protocol incumbent,
                       Protocol challenger) {
    const std::size_t elements = (bytes + sizeof(float) - 1) / sizeof(float);
    const std::size_t blocks = output_blocks(crossover.kind);
    std::byte* const input = make_buffer(elements * sizeof(float), crossover.in_heap);
    CollectiveCall call;
    call.kind = crossover.kind;
    call.dtype = DType::kFloat32;
    call.elements = elements;
    call.input = input;
    call.output =
        crossover.in_place ? input : make_buffer(blocks * elements * sizeof(float), crossover.in_heap);

    bool wins = true;
    // The first round pays for memory that nobody has touched, and does not count.
    for (int round = 0; wins && round <= kWins; ++round) {
      Round times;
      for (const int turn : {0, 1}) {
        // Each of the protocols goes first in every second round.
        const bool first = turn == round % 2;
        const Protocol protocol = first ? incumbent : challenger;
        Seconds& seconds = first ? times.incumbent : times.challenger;
        seconds = co_await take_step(call, input, protocol, blocks, round);
        // All members come to the same answer whether their buffers allow this protocol.
        wins = wins && endpoint_.algorithm() == to_string(protocol);
      }
      times.since_start = seconds_since(start_);
      co_await small_subcall(endpoint_, CollectiveKind::kAllReduce, DType::kFloat64, ReduceOp::kMax,
                             reinterpret_cast<std::byte*>(&times), sizeof times / sizeof(double));
      spent_ = times.since_start > std::chrono::duration<double>(kProbeBudget).count();
      wins = wins && !spent_ && (round == 0 || times.challenger_wins());
    }
    buffers_.clear();
    co_return wins;
  }

  /// Of the heap, or of this process alone; until the comparison has ended.
  [[nodiscard]] std::byte* make_buffer(std::size_t bytes, bool in_heap) {
    if (in_heap) {
      const std::shared_ptr<const Buffer> buffer = allocate(bytes, Device());
      buffers_.push_back(buffer);
      return buffer->data();
    }
    const auto buffer = std::make_shared<std::byte[]>(bytes);
    buffers_.push_back(buffer);
    return buffer.get();
  }

  /// What a training step does: other values each time, the call, a look at the result. A protocol that
  /// leaves cache lines in the other cores' caches makes the call short, and what surrounds it long.
  Task<Seconds> take_step(const CollectiveCall& call, std::byte* input, Protocol protocol, std::size_t blocks,
                          int round) {
    const std::size_t bytes = call.elements * size_of(call.dtype);
    const bool brings_data = reads_input(call, endpoint_.position().rank);
    const Clock::time_point start = Clock::now();
    if (brings_data) std::memset(input, round, bytes);
    const Clock::time_point called = Clock::now();
    co_await execute_by(endpoint_, call, protocol);
    const double of_call = seconds_since(called);
    read_all({call.output, blocks * bytes});
    co_return Seconds{.of_call = of_call, .of_step = seconds_since(start)};
  }

  [[nodiscard]] std::size_t largest(const Crossover& crossover) const {
    return kLargestBuffer / output_blocks(crossover.kind);
  }

  [[nodiscard]] std::size_t output_blocks(CollectiveKind kind) const {
    return traits_of(kind).output == CollectiveTraits::Extent::kAllBlocks
               ? static_cast<std::size_t>(endpoint_.position().size)
               : 1;
  }

  Endpoint& endpoint_;
  Clock::time_point start_ = Clock::now();
  std::vector<std::shared_ptr<const void>> buffers_;  ///< of the comparison
  bool spent_ = false;                                ///< the time for probing; all members know alike
};

/// What probes of this group would find depends on it.
std::string shape_of(const NodeGroup& group) {
  std::vector<int> workers;
  workers.reserve(static_cast<std::size_t>(group.size()));
  for (int member = 0; member < group.size(); ++member) workers.push_back(group.worker_of(member));
  const auto processes = std::unique(workers.begin(), workers.end()) - workers.begin();
  std::string shape = fmt::format("node of {} {}", group.size(), processes == 1 ? "threads" : "processes");
  if (processes > 1 && processes < group.size()) shape += fmt::format(", members of {}", processes);
  if (processes > 1 && !group.memory().has_single_copy()) shape += ", without single copies";
  if (processes > 1 && NodeHeap::of_this_process() == nullptr) shape += ", without a heap";
  return shape;
}

}  // namespace

Task<> agree_on_tuning(Endpoint& endpoint) {
  struct Word {
    TuningTable table;
    bool known = false;
  };
  if (endpoint.position().size == 1) {
    endpoint.set_tuning({});
    co_return;
  }
  Word word;
  const std::string shape = shape_of(endpoint.group());
  TuningStore& store = TuningStore::of_this_process();
  if (endpoint.position().rank == 0) {
    if (const std::optional<TuningTable> table = store.find(TuningScope::kNode, shape))
      word = {*table, true};
    else if (endpoint.group().size() > endpoint.group().memory().cores())
      word.known = true;  // members that take turns on the cores would time the scheduler, for long
  }
  co_await small_subcall(endpoint, CollectiveKind::kBroadcast, DType::kUInt8, ReduceOp::kSum,
                         reinterpret_cast<std::byte*>(&word), sizeof word);
  if (!word.known) {
    Probe probe(endpoint);
    word.table = co_await probe.run();
    if (endpoint.position().rank == 0) store.save(TuningScope::kNode, shape, word.table);
  }
  store.keep(shape, word.table);
  endpoint.set_tuning(word.table);
}

double built_in_seconds(const CallShape& call, const CostConstants& constants) {
  const double waits = 2 * constants.latency_seconds;
  const auto bytes = static_cast<double>(call.bytes);
  switch (call.kind) {
    case CollectiveKind::kAllReduce: return waits + 2 * bytes * constants.seconds_per_byte;
    // A buffer that has all members' blocks is read or written by all of them at once.
    case CollectiveKind::kAllGather: return waits + bytes * call.members * constants.seconds_per_byte;
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kSplit:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  return waits + bytes * constants.seconds_per_byte;
}

}  // namespace cohort::node
