#include "coordinator/coordinator.h"

#include <sys/resource.h>

#include <algorithm>
#include <numeric>

#include <cohort/base/error.h>

#include "parameters/server_job.h"
#include "server/store/store.h"
#include "timing.h"

namespace cohort::bench {
namespace {

constexpr double kJobUs = 200'000;
constexpr int kRoundTrips = 500;

/// What the original, TensorFlow 2.21.0, took with every task a process of its own: medians, on 2 cores that
/// had other work, too.
struct OriginalRate {
  double closures_per_s;
  double round_trip_us;
};
constexpr OriginalRate kOneWorker{899, 4478};
constexpr OriginalRate kTwoWorkers{747, 4479};

void do_nothing() {}
void change_one(const Variable& variable) { variable.assign_add(1); }
void change_two(const Variable& first, const Variable& second) {
  first.assign_add(1);
  second.assign_add(1);
}

/// Processor time of this process, on all threads.
double cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

class CoordinatorMeasurement {
 public:
  CoordinatorMeasurement(const CoordinatorOptions& options, const TickClock& clock)
      : options_(options), clock_(clock), result_{.loops = options.loops, .rows = {}} {}

  [[nodiscard]] CoordinatorResult measure();

 private:
  struct Rate {
    double per_s = 0;
    double cpu_us = 0;
  };

  /// Times `call(n)`, which makes n operations; the first loops find out how many last long enough.
  template <class Call>
  [[nodiscard]] Rate rate_of(Call call) const;

  /// `schedule()` schedules one function and returns its RemoteValue.
  template <class Schedule>
  void add(std::string name, ServerJob& job, Schedule schedule);

  void measure_job(ServerJob& job);
  void measure_commits(bool recorded);

  const CoordinatorOptions& options_;
  const TickClock& clock_;
  CoordinatorResult result_;
};

template <class Call>
CoordinatorMeasurement::Rate CoordinatorMeasurement::rate_of(Call call) const {
  const auto timed = [&](int n) {
    const std::uint64_t start = clock_.now();
    call(n);
    return clock_.microseconds(clock_.now() - start);
  };
  int n = 100;
  for (double us = timed(n); us < kJobUs; us = timed(n))
    n = std::max(2 * n, static_cast<int>(std::min(100.0, 0.9 * kJobUs / us) * n));
  std::vector<double> per_s;
  per_s.reserve(static_cast<std::size_t>(options_.loops));
  const double cpu_before = cpu_us();
  for (int loop = 0; loop < options_.loops; ++loop) per_s.push_back(1e6 * n / timed(n));
  return {median(per_s), (cpu_us() - cpu_before) / n / options_.loops};
}

template <class Schedule>
void CoordinatorMeasurement::add(std::string name, ServerJob& job, Schedule schedule) {
  const auto [workers, servers] = job.size();
  CoordinatorRow row{.name = std::move(name), .workers = workers, .servers = servers};
  const Rate rate = rate_of([&](int n) {
    for (int i = 0; i < n; ++i) schedule();
    job.coordinator().join();
  });
  row.closures_per_s = rate.per_s;
  row.chief_cpu_us = rate.cpu_us;
  std::vector<double> trips;
  for (int i = 0; i < kRoundTrips * options_.loops; ++i) {
    const std::uint64_t start = clock_.now();
    schedule().get();
    trips.push_back(clock_.microseconds(clock_.now() - start));
  }
  row.round_trip_us = median(trips);
  result_.rows.push_back(std::move(row));
}

void CoordinatorMeasurement::measure_job(ServerJob& job) {
  const ClusterCoordinator& coordinator = job.coordinator();
  const auto [workers, servers] = job.size();
  add("empty", job, [&] { return coordinator.schedule<do_nothing>(); });
  if (servers == 1 && workers <= 2) {
    const OriginalRate& original = workers == 1 ? kOneWorker : kTwoWorkers;
    result_.rows.back().original_per_s = original.closures_per_s;
    result_.rows.back().original_trip_us = original.round_trip_us;
  }
  const auto scope = job.strategy().scope();
  std::vector<Variable> counters;
  for (const char* name : {"first", "second"})
    counters.emplace_back(VariableOptions{.dtype = DType::kInt64, .name = name});
  std::int64_t scheduled = 0;
  const auto check = [&](const Variable& counter) {
    coordinator.join();
    if (const auto counted = counter.read().item<std::int64_t>(); counted != scheduled)
      throw Internal("{} functions were scheduled, but took effect {} times", scheduled, counted);
  };
  add("one_write", job, [&] {
    ++scheduled;
    return coordinator.schedule<change_one>(counters[0]);
  });
  check(counters[0]);
  if (servers < 2) return;
  counters[0].assign(std::int64_t{0});
  scheduled = 0;
  add("two_writes", job, [&] {
    ++scheduled;
    return coordinator.schedule<change_two>(counters[0], counters[1]);
  });
  check(counters[0]);
  check(counters[1]);
}

/// What a server adds to a write so that it is made once: it remembers which execution has made it, until its
/// worker has heard so.
void CoordinatorMeasurement::measure_commits(bool recorded) {
  server::Store store;
  const server::VariableIndex variable = store.create("counter", {}, DType::kInt64);
  std::uint64_t number = 0;
  const Rate rate = rate_of([&](int n) {
    for (int i = 0; i < n; ++i) {
      store.begin();
      const server::Store::Change change = store.overwrite(variable);
      change.fresh_value.raw()[0] = change.old_value.raw()[0];
      if (recorded) {
        store.commit(server::Execution{1, ++number});
        store.forget(1, number - 1);
      } else {
        store.commit();
      }
    }
  });
  result_.rows.push_back({.name = recorded ? "recorded_commit" : "commit",
                          .closures_per_s = rate.per_s,
                          .chief_cpu_us = rate.cpu_us});
}

CoordinatorResult CoordinatorMeasurement::measure() {
  if (has_tasks()) {
    ServerJob job(size_of_tasks());
    measure_job(job);
  } else {
    for (const JobSize& size : {JobSize{1, 1}, JobSize{2, 1}, JobSize{2, 2}}) {
      ServerJob job(size);
      measure_job(job);
    }
  }
  measure_commits(false);
  measure_commits(true);
  return std::move(result_);
}

}  // namespace

CoordinatorResult measure(const CoordinatorOptions& options, const CommandContext& context) {
  return CoordinatorMeasurement(options, context.clock).measure();
}

}  // namespace cohort::bench
