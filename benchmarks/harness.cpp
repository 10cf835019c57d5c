#include "harness.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace cohort::bench {
namespace {

constexpr double kMicrosecondsPerLoop = 60000;
constexpr int kMostIterations = 20000;
constexpr std::size_t kBarriers = 200;  // that are called to see whether somebody leaves one early

/// A step between the starting points of two iterations' values; far apart, and prime to the period.
constexpr std::size_t kShift = 389;

/// Reads every byte of a result, as the program that asked for it would. By cache lines: a loop of single
/// words takes 0.5 or 0.9 ns for each, as the linker happens to place it, and the other members wait for
/// that.
void read_all(std::span<const std::byte> bytes) {
  constexpr std::size_t kWords = 8;
  std::array<std::uint64_t, kWords> sums{};
  std::array<std::uint64_t, kWords> line{};
  std::size_t at = 0;
  for (; at + sizeof(line) <= bytes.size(); at += sizeof(line)) {
    std::memcpy(line.data(), bytes.data() + at, sizeof(line));
    for (std::size_t word = 0; word < kWords; ++word) sums[word] += line[word];
  }
  for (; at < bytes.size(); ++at) sums[0] += std::to_integer<std::uint64_t>(bytes[at]);
  // Or the compiler would see that nobody wants the sums.
  for (const std::uint64_t sum : sums) __asm__ volatile("" : : "r"(sum));
}

/// What a result should be: tables of values, one for each part of it.
class Expectation {
 public:
  Expectation(const std::vector<ResultPart>& parts, const ValueSource& values) : parts_(parts) {
    for (const ResultPart& part : parts) {
      tables_.push_back(part.source == ResultPart::kReduced ? values.reduced() : values.input(part.source));
      elements_ += part.elements;
    }
  }

  [[nodiscard]] std::uint64_t count_wrong(std::span<const std::byte> result, std::size_t shift) const {
    if (elements_ == 0) return 0;
    const std::size_t element_bytes = result.size() / elements_;
    std::uint64_t wrong = 0;
    std::size_t done = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::size_t bytes = parts_[i].elements * element_bytes;
      wrong += tables_[i].count_wrong(result.subspan(done, bytes), parts_[i].first + shift);
      done += bytes;
    }
    return wrong;
  }

 private:
  std::vector<ResultPart> parts_;
  std::vector<ValueTable> tables_;
  std::size_t elements_ = 0;
};

class Harness {
 public:
  Harness(const Collective& collective, const Role& role, const ValueSource& values,
          const HarnessOptions& options, const Team& team, const TickClock& clock)
      : collective_(collective),
        options_(options),
        team_(team),
        clock_(clock),
        input_(values.input(role.member)),
        expectation_(collective.layout(role).result, values) {}

  /// One contender's figures while they are being collected, all of this member alone.
  struct Record {
    bool off_host = false;  ///< ticks are nanoseconds there, not those of the clock
    int iterations = 0;
    std::vector<double> call_us;
    std::vector<double> iteration_us;
    std::vector<std::uint64_t> ticks;  ///< of every call
    std::uint64_t wrong = 0;
  };

  [[nodiscard]] Record warm_up(const Contender& contender);
  void run_loop(const Contender& contender, Record& record);
  [[nodiscard]] Measurement combine(Record& record) const;

 private:
  void write_input(const Contender& contender) const;
  [[nodiscard]] std::uint64_t time_call(const Contender& contender) const;
  [[nodiscard]] double call_microseconds(const Record& record, std::uint64_t ticks,
                                         std::uint64_t calls = 1) const;
  [[nodiscard]] bool checks_every_call() const {
    return options_.check && options_.inputs == Inputs::kRewritten;
  }

  const Collective& collective_;
  const HarnessOptions& options_;
  const Team& team_;
  const TickClock& clock_;
  ValueTable input_;
  Expectation expectation_;
  std::size_t shift_ = 0;  ///< where this iteration's values begin
};

void Harness::write_input(const Contender& contender) const {
  input_.write(contender.input, shift_);
  if (contender.off_host != nullptr) contender.off_host->bring();
}

std::uint64_t Harness::time_call(const Contender& contender) const {
  if (contender.off_host != nullptr) {
    const std::uint64_t nanoseconds = contender.off_host->time(contender.call, contender.limit);
    contender.off_host->fetch();
    return nanoseconds;
  }
  const std::uint64_t before = clock_.now();
  contender.call();
  return clock_.now() - before;
}

double Harness::call_microseconds(const Record& record, std::uint64_t ticks, std::uint64_t calls) const {
  constexpr double kMicrosecondsPerNanosecond = 1e-3;
  return record.off_host ? kMicrosecondsPerNanosecond * static_cast<double>(ticks)
                         : clock_.microseconds(ticks, calls);
}

/// Finds out how many iterations a loop should have, and settles what is set up lazily. The first
/// call is checked in any case.
Harness::Record Harness::warm_up(const Contender& contender) {
  Record record;
  record.off_host = contender.off_host != nullptr;
  write_input(contender);
  static_cast<void>(time_call(contender));
  const std::uint64_t wrong = options_.check ? expectation_.count_wrong(contender.output, shift_) : 0;
  if (options_.inputs == Inputs::kKept) {
    // Every operator maps zeros to zeros, so what stays in the buffers from call to call is ordinary
    // numbers, whereas sums of sums would grow to infinity.
    std::fill(contender.input.begin(), contender.input.end(), std::byte{0});
    if (contender.off_host != nullptr) contender.off_host->bring();
  }
  // Small calls need many to settle, and large ones have no time for them.
  constexpr std::size_t kSmall = 65536;
  // Buffers differ between the root and the others, the number of calls must not.
  const int own = std::max(contender.input.size(), contender.output.size()) <= kSmall ? 50 : 2;
  record.iterations = team_.from_first(own);
  for (int loop = 0; loop < 2; ++loop) run_loop(contender, record);
  team_.take_maximum(record.iteration_us);
  const double affordable = kMicrosecondsPerLoop / std::max(record.iteration_us.back(), 1e-3);
  const int few = std::max(contender.input.size(), contender.output.size()) > (std::size_t{64} << 20) ? 2 : 3;
  const auto bounded = static_cast<int>(std::clamp<double>(affordable, few, kMostIterations));
  record.iterations = team_.from_first(options_.iterations.value_or(bounded));
  record.call_us.clear();
  record.iteration_us.clear();
  record.ticks.clear();
  // Outside the clock, but within the loop: growing here would evict the buffers from the caches.
  record.ticks.reserve(static_cast<std::size_t>(record.iterations) *
                       static_cast<std::size_t>(options_.loops));
  record.wrong += wrong;
  return record;
}

void Harness::run_loop(const Contender& contender, Record& record) {
  const bool rewritten = options_.inputs == Inputs::kRewritten;
  const bool checks = checks_every_call();
  std::uint64_t in_calls = 0;
  team_.barrier();  // the loops of all members begin together; within them, members wait in the call only
  const std::uint64_t start = clock_.now();
  for (int i = 0; i < record.iterations; ++i) {
    shift_ = (shift_ + kShift) % ValueTable::kPeriod;
    if (rewritten) write_input(contender);
    const std::uint64_t ticks = time_call(contender);
    in_calls += ticks;
    record.ticks.push_back(ticks);
    if (checks) {
      record.wrong += expectation_.count_wrong(contender.output, shift_);
    } else {
      read_all(contender.output);
    }
  }
  const std::uint64_t whole = clock_.now() - start;
  const auto iterations = static_cast<std::uint64_t>(record.iterations);
  record.call_us.push_back(call_microseconds(record, in_calls, iterations) / record.iterations);
  record.iteration_us.push_back(clock_.microseconds(whole) / record.iterations);
}

Measurement Harness::combine(Record& record) const {
  Measurement measurement;
  measurement.iterations = record.iterations;
  measurement.call_us = std::move(record.call_us);
  measurement.iteration_us = std::move(record.iteration_us);
  measurement.single_us.reserve(record.ticks.size());
  for (const std::uint64_t ticks : record.ticks)
    measurement.single_us.push_back(call_microseconds(record, ticks));
  team_.take_maximum(measurement.call_us);
  team_.take_maximum(measurement.iteration_us);
  team_.take_maximum(measurement.single_us);
  if (options_.check && collective_.moves_data()) measurement.wrong = team_.sum(record.wrong);
  return measurement;
}

double nanoseconds_now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::optional<std::uint64_t> count_early_leavers(const std::function<void()>& barrier, const Team& team) {
  if (!team.shares_a_clock()) return std::nullopt;
  std::vector<double> last_came;
  std::vector<double> first_left;  // negated, so that the maximum over members is the earliest
  for (std::size_t call = 0; call < kBarriers; ++call) {
    last_came.push_back(nanoseconds_now());
    barrier();
    first_left.push_back(-nanoseconds_now());
  }
  team.take_maximum(last_came);
  team.take_maximum(first_left);
  std::uint64_t early = 0;
  for (std::size_t call = 0; call < kBarriers; ++call) {
    if (-first_left[call] < last_came[call]) ++early;
  }
  return early;
}

std::vector<Measurement> measure(const Collective& collective, const Role& role, const ValueSource& values,
                                 std::span<const Contender> contenders, const HarnessOptions& options,
                                 const Team& team, const TickClock& clock) {
  Harness harness(collective, role, values, options, team, clock);
  std::vector<Harness::Record> records;
  for (const Contender& contender : contenders) records.push_back(harness.warm_up(contender));
  for (int loop = 0; loop < options.loops; ++loop) {
    // The libraries take turns in going first, so that neither always finds the caches as the other left
    // them.
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const std::size_t next = (i + static_cast<std::size_t>(loop)) % contenders.size();
      harness.run_loop(contenders[next], records[next]);
    }
  }
  std::vector<Measurement> measurements;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    measurements.push_back(harness.combine(records[i]));
    if (options.check && !collective.moves_data()) {
      measurements.back().wrong = count_early_leavers(contenders[i].call, team);
    }
  }
  return measurements;
}

}  // namespace cohort::bench
