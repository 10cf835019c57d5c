#include "sweep/sweep.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>

#include "buffers.h"
#include "errors.h"
#include "exact_values.h"
#include "gpu/gpu_side.h"
#include "output.h"
#include "private_memory.h"
#include "team.h"
#include "timing.h"

namespace cohort::bench {
namespace {

// How fast this machine's memory could do an in-place all-reduce, if nothing had to be agreed
// on: every member reads its share of all members' buffers and writes the result back to each,
// which is reading and writing as many bytes as a buffer has. Here all members do so at once,
// each on memory of its own, so that nothing crosses between cores and nobody waits.

/// From this size on, memory and not the caches is what counts.
constexpr std::size_t kMemoryLimitFrom = std::size_t{64} << 20;

struct MemoryLimitProblem {
  std::size_t bytes = 0;  ///< of each member's buffer
  int members = 1;
  bool huge_pages = true;
};

constexpr int kRepetitions = 9;

/// Elements of a block: of all operands together, few enough to stay in the first-level cache until the
/// last operand has been added.
constexpr std::size_t kBlock = 512;

/// Adds `other` to `data`, and writes the sum to both. Ordinary stores: the lines were just read, so
/// writing around the caches would be slower.
void add_to_both(float* __restrict data, float* __restrict other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = data[i] + other[i];
    data[i] = sum;
    other[i] = sum;
  }
}

/// Reads `operands` neighbouring stretches of `length` floats, and writes their sum to each. With two
/// operands this is one pass, without any step between reading and writing.
void reduce_and_spread(float* data, std::size_t operands, std::size_t length) {
  if (operands == 2) return add_to_both(data, data + length, length);
  for (std::size_t start = 0; start < length; start += kBlock) {
    const std::size_t count = std::min(kBlock, length - start);
    float* const total = data + start;
    for (std::size_t operand = 1; operand < operands; ++operand) {
      const float* const other = data + operand * length + start;
      for (std::size_t i = 0; i < count; ++i) total[i] += other[i];
    }
    for (std::size_t operand = 1; operand < operands; ++operand) {
      std::copy_n(total, count, data + operand * length + start);
    }
  }
}

/// The time in microseconds of the slowest member; the least of several, since it is a limit. Called by all
/// members, at least two and all on one node, and the same on all of them.
/// @throws std::bad_alloc when memory is short.
double measure_memory_limit(const MemoryLimitProblem& problem, const Team& team, const TickClock& clock) {
  const auto operands = static_cast<std::size_t>(problem.members);
  const std::size_t length = problem.bytes / sizeof(float) / operands;
  const PrivateMemory memory(length * operands * sizeof(float), problem.huge_pages);
  auto* data = reinterpret_cast<float*>(memory.bytes().data());
  std::vector<double> times_us;
  for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
    // As before a timed call: what was just written is partly still in the caches. Sums of zeros stay small.
    std::fill_n(data, length * operands, 0.0f);
    team.barrier();
    const std::uint64_t before = clock.now();
    reduce_and_spread(data, operands, length);
    times_us.push_back(clock.microseconds(clock.now() - before));
  }
  times_us.erase(times_us.begin());  // it touched the memory first
  team.take_maximum(times_us);
  return *std::min_element(times_us.begin(), times_us.end());
}

/// The arguments of one of Cohort's collectives.
struct CohortCall {
  Communicator* communicator = nullptr;
  Tensor input;
  Tensor output;
  ReduceOp op = ReduceOp::kSum;
  std::vector<std::size_t> counts;  ///< of each member, where they differ
};

using CohortFunction = void (*)(const CohortCall& call);

struct Entry {
  const Collective* collective;
  CohortFunction function;
};

constexpr std::array kCalls{
    Entry{&kAllReduce, [](const CohortCall& c) { c.communicator->all_reduce(c.input, c.output, c.op); }},
    Entry{&kReduce, [](const CohortCall& c) { c.communicator->reduce(c.input, c.output, c.op, kRoot); }},
    Entry{&kBroadcast, [](const CohortCall& c) { c.communicator->broadcast(c.output, kRoot); }},
    Entry{&kAllGather, [](const CohortCall& c) { c.communicator->all_gather(c.input, c.output); }},
    Entry{&kAllGatherUneven,
          [](const CohortCall& c) { c.communicator->all_gather_uneven(c.input, c.output, c.counts); }},
    Entry{&kReduceScatter,
          [](const CohortCall& c) { c.communicator->reduce_scatter(c.input, c.output, c.op); }},
    Entry{&kAllToAll, [](const CohortCall& c) { c.communicator->all_to_all(c.input, c.output); }},
    Entry{&kGather, [](const CohortCall& c) { c.communicator->gather(c.input, c.output, kRoot); }},
    Entry{&kScatter, [](const CohortCall& c) { c.communicator->scatter(c.input, c.output, kRoot); }},
    Entry{&kBarrier, [](const CohortCall& c) { c.communicator->barrier(); }},
};

/// The function that makes the blocking call of `collective`.
CohortFunction cohort_function(const Collective& collective) {
  for (const Entry& entry : kCalls) {
    if (entry.collective == &collective) return entry.function;
  }
  throw Internal("{} has no entry in the table of Cohort's calls", collective.name);
}

/// What was measured of one library at one size, round after round.
struct Rounds {
  std::vector<double> median_us;  ///< of each round
  std::vector<double> p99_us;
  // Of the loops of all rounds.
  std::vector<double> call_us;
  std::vector<double> iteration_us;
  int iterations = 0;
  std::optional<std::uint64_t> wrong;

  void add(const Measurement& measurement) {
    median_us.push_back(median(measurement.call_us));
    p99_us.push_back(percentile(measurement.single_us, 99));
    call_us.insert(call_us.end(), measurement.call_us.begin(), measurement.call_us.end());
    iteration_us.insert(iteration_us.end(), measurement.iteration_us.begin(), measurement.iteration_us.end());
    iterations = measurement.iterations;
    if (measurement.wrong) wrong = wrong.value_or(0) + *measurement.wrong;
  }
};

class Sweep {
 public:
  Sweep(const SweepOptions& options, const RunOptions& run, const MemberContext& context)
      : options_(options), collective_(*options.collective), run_(run), context_(context) {}

  /// The rows of one size: Cohort's and, where there is one, the peer's; of this round and those before,
  /// which are in `rounds`.
  [[nodiscard]] std::vector<SweepRow> measure_size(std::size_t bytes, std::vector<Rounds>& rounds) const;

  /// Empty, or why the peer does not take part at this size.
  [[nodiscard]] std::string why_no_peer(std::size_t bytes) const;

  [[nodiscard]] std::vector<std::size_t> sizes() const {
    return collective_.moves_data() ? sizes_in(options_.sizes) : std::vector<std::size_t>{0};
  }

 private:
  [[nodiscard]] Role role_for(std::size_t bytes) const;
  [[nodiscard]] CohortCall cohort_call(const Role& role, const Buffers& buffers) const;
  [[nodiscard]] PeerCall peer_call(const Role& role) const;
  [[nodiscard]] Contender peer_contender(const Role& role, const Buffers& buffers, const OffHost* gpu) const;
  [[nodiscard]] SweepRow to_row(const Role& role, const Rounds& rounds) const;
  [[nodiscard]] std::optional<double> memory_limit(const Role& role) const;
  void label(std::span<SweepRow> rows) const;

  const SweepOptions& options_;
  const Collective& collective_;
  const RunOptions& run_;
  const MemberContext& context_;
};

Role Sweep::role_for(std::size_t bytes) const {
  Role role{.member = context_.rank(), .members = context_.size()};
  if (!collective_.moves_data()) return role;
  role.elements = std::max<std::size_t>(bytes / size_of(run_.dtype), 1);
  if (collective_.divided) {
    const auto members = static_cast<std::size_t>(role.members);
    role.elements = std::max<std::size_t>(role.elements / members, 1) * members;
  }
  return role;
}

CohortCall Sweep::cohort_call(const Role& role, const Buffers& buffers) const {
  CohortCall call{.communicator = context_.communicator,
                  .input = buffers.input,
                  .output = buffers.output,
                  .op = options_.op,
                  .counts = {}};
  if (&collective_ == &kAllGatherUneven) call.counts = uneven_counts(role);
  return call;
}

/// On `gpu` it works on Cohort's memory.
Contender Sweep::peer_contender(const Role& role, const Buffers& buffers, const OffHost* gpu) const {
  PeerCall call = peer_call(role);
  if (gpu != nullptr) {
    call.input = buffers.input.data();
    call.output = buffers.output.data();
    return {
        .input = buffers.host_input.raw(),
        .output = buffers.host_output.raw(),
        .call = context_.peer->prepare(call),
        .off_host = gpu,
        .limit = context_.limit_of(function_of(run_.peer, collective_), role.elements * size_of(run_.dtype))};
  }
  call.input = buffers.peer->input.data();
  call.output = buffers.peer->output.data();
  return {.input = buffers.peer->input, .output = buffers.peer->output, .call = context_.peer->prepare(call)};
}

/// Without its memory.
PeerCall Sweep::peer_call(const Role& role) const {
  return {.collective = &collective_,
          .role = role,
          .dtype = run_.dtype,
          .op = options_.op,
          .in_place = options_.in_place};
}

std::string Sweep::why_no_peer(std::size_t bytes) const {
  return context_.peer == nullptr ? "" : context_.peer->why_not(peer_call(role_for(bytes)));
}

std::optional<double> Sweep::memory_limit(const Role& role) const {
  const std::size_t bytes = role.elements * size_of(run_.dtype);
  const bool applies = run_.device == DeviceKind::kCpu && &collective_ == &kAllReduce && options_.in_place &&
                       role.members > 1 && context_.all_on_one_node();
  if (!applies || bytes < kMemoryLimitFrom) return std::nullopt;
  return measure_memory_limit({.bytes = bytes, .members = role.members, .huge_pages = run_.huge_pages},
                              *context_.team, *context_.clock);
}

SweepRow Sweep::to_row(const Role& role, const Rounds& rounds) const {
  const double call_us = median(rounds.call_us);
  const std::size_t bytes = role.elements * size_of(run_.dtype);
  const double algbw = algorithm_bandwidth(bytes, call_us);
  return {
      .collective = std::string(collective_.name),
      .library = {},
      .algorithm = {},
      .choice = {},
      .dtype = collective_.moves_data() ? std::string(to_string(run_.dtype)) : "none",
      .op = collective_.reduces ? std::string(to_string(options_.op)) : "none",
      .members = role.members,
      .bytes = bytes,
      .elements = role.elements,
      .in_place = options_.in_place,
      .inputs = std::string(to_string(options_.harness.inputs)),
      .buffers = {},
      .loops = options_.harness.loops,
      .iterations = rounds.iterations,
      .median_us = call_us,
      .min_us = *std::min_element(rounds.call_us.begin(), rounds.call_us.end()),
      .p99_us = median(rounds.p99_us),
      .iteration_us = median(rounds.iteration_us),
      .rounds_us = rounds.median_us,
      .algbw_gbs = algbw,
      .busbw_gbs = algbw * collective_.bus_factor(role.members),
      .ratio_to_peer = {},
      .wrong = rounds.wrong,
      .memory_limit_us = {},
  };
}

std::vector<SweepRow> Sweep::measure_size(std::size_t bytes, std::vector<Rounds>& rounds) const {
  const Role role = role_for(bytes);
  const bool on_cpu = run_.device == DeviceKind::kCpu;
  const bool with_peer = context_.peer != nullptr && why_no_peer(bytes).empty();
  const Buffers buffers = allocate_on_all_members({.collective = &collective_,
                                                   .layout = collective_.layout(role),
                                                   .in_place = options_.in_place,
                                                   .with_peer = with_peer && on_cpu,
                                                   .device = context_.device,
                                                   .members_on_node = context_.members_on_node},
                                                  run_, *context_.team);
  const std::optional<double> limit = memory_limit(role);

  const CohortCall own = cohort_call(role, buffers);
  const CohortFunction call_cohort = cohort_function(collective_);
  std::unique_ptr<const OffHost> gpu;
  if (!on_cpu)
    gpu = make_gpu_side({{buffers.input, buffers.host_input}}, {{buffers.output, buffers.host_output}});
  std::vector<Contender> contenders;
  contenders.push_back({.input = buffers.host_input.raw(),
                        .output = buffers.host_output.raw(),
                        .call = [&] { call_cohort(own); },
                        .off_host = gpu.get()});
  if (with_peer) contenders.push_back(peer_contender(role, buffers, gpu.get()));
  // What moves unchanged may be anything: the whole range of values that an order of them needs.
  const ExactValues values(run_.dtype, collective_.reduces ? options_.op : ReduceOp::kMax, role.members);
  const std::vector<Measurement> measurements =
      measure(collective_, role, values, contenders, options_.harness, *context_.team, *context_.clock);

  rounds.resize(measurements.size());
  std::vector<SweepRow> rows;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    rounds[i].add(measurements[i]);
    rows.push_back(to_row(role, rounds[i]));
    rows.back().memory_limit_us = limit;
  }
  label(rows);
  return rows;
}

/// Says which library each row is of, and how the two compare.
void Sweep::label(std::span<SweepRow> rows) const {
  const bool moves_data = collective_.moves_data();
  rows[0].library = "cohort";
  rows[0].algorithm = std::string(context_.communicator->last_algorithm());
  rows[0].choice = std::string(context_.communicator->last_choice());
  rows[0].buffers = moves_data ? buffers_of(run_) : "none";
  if (rows.size() == 1) return;
  rows[1].library = to_string(run_.peer);
  rows[1].algorithm = function_of(run_.peer, collective_);
  rows[1].choice = "library";
  rows[1].buffers = !moves_data ? "none" : run_.peer == Peer::kNccl ? rows[0].buffers : "private";
  rows[0].ratio_to_peer = rows[1].median_us / rows[0].median_us;
  rows[1].ratio_to_peer = rows[0].median_us / rows[1].median_us;
}

}  // namespace

std::string describe(const SweepOptions& sweep, const RunOptions& run) {
  const Collective& collective = *sweep.collective;
  std::string text(collective.name);
  if (collective.reduces) text += fmt::format(" ({})", to_string(sweep.op));
  if (collective.moves_data()) {
    text +=
        fmt::format(", {}, inputs {}, {} buffers", sweep.in_place ? "in place" : "out of place",
                    sweep.harness.inputs == Inputs::kRewritten ? "rewritten each time" : "kept between calls",
                    buffers_of(run));
    if (run.memory == MemoryKind::kPrivate || run.peer == Peer::kMpi) {
      text += fmt::format(", huge pages {}", run.huge_pages ? "on" : "off");
    }
  }
  if (run.reproducible) text += ", reproducible";
  if (run.peer == Peer::kNone) return text + "; no peer";
  return fmt::format("{}; peer: {}", text, function_of(run.peer, collective));
}

void run_sweep(const SweepOptions& options, const RunOptions& run, const MemberContext& context) {
  const Sweep sweep(options, run, context);
  const std::vector<std::size_t> sizes = sweep.sizes();
  // A rehearsal: the first calls of a run are slow, whatever their size.
  std::vector<Rounds> rehearsed;
  (void)sweep.measure_size(sizes.front(), rehearsed);

  std::uint64_t wrong = 0;
  std::string why_no_peer;
  std::vector<std::vector<Rounds>> measured(sizes.size());
  for (int round = 1; round <= options.rounds; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::vector<SweepRow> rows = sweep.measure_size(sizes[i], measured[i]);
      if (round < options.rounds) continue;
      for (const SweepRow& row : rows) wrong += row.wrong.value_or(0);
      if (why_no_peer.empty()) why_no_peer = sweep.why_no_peer(sizes[i]);
      if (context.output != nullptr) context.output->add(rows);
    }
  }
  if (context.output != nullptr && context.communicator->name() == "staged")
    context.output->note("Cohort's calls went through the host, not NCCL");
  if (context.output != nullptr && !why_no_peer.empty()) {
    context.output->note("no peer in some rows: " + why_no_peer);
  }
  if (wrong > 0) throw AgreedError("{} elements were wrong", wrong);
}

}  // namespace cohort::bench
