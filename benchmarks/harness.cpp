#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include "bandwidth.h"
#include "buffers.h"
#include "mpi_group.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTrialRounds = 5;
constexpr double kSecondsPerSize = 0.5;
constexpr int kFewestIterations = 10;
constexpr int kMostIterations = 10000;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// Touches every byte of a result, as the program that asked for it would.
void read_all(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  std::size_t at = 0;
  for (; at + sizeof(sum) <= bytes.size(); at += sizeof(sum)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    sum += word;
  }
  for (; at < bytes.size(); ++at) sum += std::to_integer<std::uint64_t>(bytes[at]);
  __asm__ volatile("" : : "r"(sum));  // or the compiler would see that nobody wants the sum
}

/// One of the libraries that are compared, with buffers of its own.
struct Contender {
  std::string library;
  std::string algorithm;
  std::span<std::byte> input;
  std::span<std::byte> output;
  std::function<void()> call;

  std::vector<double> call_us;
  std::vector<double> iteration_us;
  std::uint64_t wrong = 0;
};

class Harness {
 public:
  Harness(const Collective& collective, const Problem& problem, const HarnessOptions& options,
          const MpiGroup& group)
      : collective_(collective),
        problem_(problem),
        options_(options),
        group_(group),
        values_(problem.dtype, problem.op, problem.member, problem.members) {}

  void measure(std::span<Contender> contenders);

 private:
  void check_first_call(Contender& contender);
  void count_wrong(Contender& contender);
  void prepare_kept(Contender& contender) const;
  [[nodiscard]] int agree_on_iterations(std::span<Contender> contenders);
  void run_round(std::span<Contender> contenders, int round);
  void run_iteration(Contender& contender);

  const Collective& collective_;
  const Problem& problem_;
  const HarnessOptions& options_;
  const MpiGroup& group_;
  ExactValues values_;
};

void Harness::measure(std::span<Contender> contenders) {
  for (Contender& contender : contenders) {
    check_first_call(contender);
    if (options_.inputs == Inputs::kKept) prepare_kept(contender);
  }
  const int iterations = agree_on_iterations(contenders);
  for (int round = 0; round < iterations / 10; ++round) run_round(contenders, round);
  for (Contender& contender : contenders) {
    contender.call_us.clear();
    contender.iteration_us.clear();
  }
  for (int round = 0; round < iterations; ++round) run_round(contenders, round);
  for (Contender& contender : contenders) {
    if (options_.inputs == Inputs::kRewritten) count_wrong(contender);
    contender.wrong = group_.sum(contender.wrong);
    group_.take_maximum(contender.call_us);
    group_.take_maximum(contender.iteration_us);
  }
}

/// Also the first warm-up call: it touches the buffers and sets up what is set up lazily.
void Harness::check_first_call(Contender& contender) {
  collective_.write_input(values_, contender.input);
  contender.call();
  count_wrong(contender);
}

void Harness::count_wrong(Contender& contender) {
  if (options_.check) contender.wrong += collective_.count_wrong(values_, contender.output);
}

/// Every operator maps zeros to zeros, so what stays in the buffers from call to call is ordinary
/// numbers, whereas sums of sums would grow to infinity.
void Harness::prepare_kept(Contender& contender) const {
  std::fill(contender.input.begin(), contender.input.end(), std::byte{0});
}

int Harness::agree_on_iterations(std::span<Contender> contenders) {
  std::vector<double> rounds_us;
  for (int round = 0; round < kTrialRounds; ++round) {
    const Clock::time_point start = Clock::now();
    run_round(contenders, round);
    rounds_us.push_back(microseconds(Clock::now() - start));
  }
  const double affordable = kSecondsPerSize * 1e6 / std::max(median(rounds_us), 1e-3);
  const auto bounded = static_cast<int>(std::clamp<double>(affordable, kFewestIterations, kMostIterations));
  return group_.from_rank_0(options_.iterations.value_or(bounded));
}

/// The libraries take turns, and take turns in going first, so that neither always finds the
/// caches as the other left them.
void Harness::run_round(std::span<Contender> contenders, int round) {
  const std::size_t first = static_cast<std::size_t>(round) % contenders.size();
  for (std::size_t i = 0; i < contenders.size(); ++i)
    run_iteration(contenders[(first + i) % contenders.size()]);
}

void Harness::run_iteration(Contender& contender) {
  const Clock::time_point writing = Clock::now();
  if (options_.inputs == Inputs::kRewritten) collective_.write_input(values_, contender.input);
  const Clock::time_point written = Clock::now();
  group_.barrier();
  const Clock::time_point calling = Clock::now();
  contender.call();
  const Clock::time_point called = Clock::now();
  read_all(contender.output);
  const Clock::time_point read = Clock::now();
  contender.call_us.push_back(microseconds(called - calling));
  contender.iteration_us.push_back(microseconds((written - writing) + (read - calling)));
}

Result to_result(const Collective& collective, const Problem& problem, const HarnessOptions& options,
                 const Contender& contender) {
  const Summary call = summarize(contender.call_us);
  const std::size_t bytes = problem.elements * size_of(problem.dtype);
  const double algbw = algorithm_bandwidth(bytes, call.median);
  return {
      .collective = std::string(collective.name),
      .library = contender.library,
      .algorithm = contender.algorithm,
      .dtype = std::string(to_string(problem.dtype)),
      .op = std::string(to_string(problem.op)),
      .members = problem.members,
      .bytes = bytes,
      .elements = problem.elements,
      .in_place = collective.in_place,
      .inputs = std::string(to_string(options.inputs)),
      .iterations = static_cast<int>(contender.call_us.size()),
      .median_us = call.median,
      .min_us = call.minimum,
      .p99_us = call.p99,
      .iteration_us = median(contender.iteration_us),
      .algbw_gbs = algbw,
      .busbw_gbs = algbw * collective.bus_factor(problem.members),
      .ratio_to_peer = {},
      .wrong = options.check ? std::optional(contender.wrong) : std::nullopt,
  };
}

}  // namespace

std::vector<Result> measure(const Collective& collective, const Problem& problem,
                            const HarnessOptions& options, Communicator& communicator,
                            const MpiGroup& group) {
  const bool with_peer = collective.why_no_peer(problem).empty();
  const Buffers buffers = allocate_on_all_ranks(collective, problem, with_peer, group);

  std::vector<Contender> contenders;
  contenders.push_back({.library = "cohort",
                        .algorithm = std::string(communicator.name()),
                        .input = buffers.input.raw(),
                        .output = buffers.output.raw(),
                        .call = [&] { collective.run(communicator, problem, buffers.input, buffers.output); },
                        .call_us = {},
                        .iteration_us = {}});
  if (with_peer) {
    const std::span<std::byte> input = buffers.peer_input->bytes();
    const std::span<std::byte> output = buffers.peer_output ? buffers.peer_output->bytes() : input;
    contenders.push_back({.library = "mpi",
                          .algorithm = std::string(collective.peer),
                          .input = input,
                          .output = output,
                          .call = [&, input, output] { collective.run_peer(group, problem, input, output); },
                          .call_us = {},
                          .iteration_us = {}});
  }

  Harness(collective, problem, options, group).measure(contenders);

  std::vector<Result> results;
  results.reserve(contenders.size());
  for (const Contender& contender : contenders) {
    results.push_back(to_result(collective, problem, options, contender));
  }
  if (results.size() == 2) {
    results[0].ratio_to_peer = results[1].median_us / results[0].median_us;
    results[1].ratio_to_peer = results[0].median_us / results[1].median_us;
  }
  return results;
}

}  // namespace cohort::bench
