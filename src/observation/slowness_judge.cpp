#include "slowness_judge.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace cohort {
namespace {

/// A window is judged when it has so many calls and lasted so long, in nanoseconds.
constexpr std::uint64_t kCallsOfWindow = 30;
constexpr std::int64_t kTimeOfWindow = 200'000'000;

/// Less is what members differ by without a reason.
constexpr std::int64_t kLeastLateness = 100'000;
/// Of calls in which somebody was late because of this worker.
constexpr std::uint64_t kFewestLateCalls = 10;
/// Of all calls in which somebody was late, and of the time that it cost.
constexpr double kLeastShare = 0.7;
/// Calls in which somebody was late by less than 1/2^3 of what is usual for the worker do not count there:
/// what a machine delays now and then hides nobody who is late by far more.
constexpr std::size_t kSizesBelow = 3;

/// Of all calls, where members share cores: what other programs do makes some member late now and then.
constexpr double kLeastShareOnSharedCores = 0.25;

/// What others must lose by it, of all time: much; or some, if it comes in pieces of milliseconds.
constexpr double kMuchTime = 0.1;
constexpr double kSomeTime = 0.03;
constexpr double kLongLateness = 0.002;

/// Where members share cores, each is late by what another one computes before it, and by some of its turn.
constexpr std::int64_t kTurn = 1'000'000;

/// Calls that a node is ahead of another one in what has been heard.
constexpr std::size_t kMostCallsAhead = 512;

/// Somebody is named again when it has become this much slower.
constexpr double kMuchSlower = 2;

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::string_view to_string(LateFrom cause) {
  switch (cause) {
    case LateFrom::kComputing: return "computing, not input or communication";
    case LateFrom::kInput: return "reading input, not computing or communication";
    case LateFrom::kWaitingForCore: return "waiting for a core, which other threads or programs use";
    case LateFrom::kMovingData: return "moving data, not computing or input";
  }
  return "unknown";
}

}  // namespace

std::string to_string(const Straggler& straggler) {
  return fmt::format("was last in {:.0f} % of calls, by {:.1f} ms on average: {}",
                     100 * straggler.share_of_calls, 1000 * straggler.mean_lateness,
                     to_string(straggler.cause));
}

bool StragglerJudge::add(const ArrivalSource& source, const CallArrivals& arrivals) {
  std::optional<CallArrivals> call = arrivals;
  if (source.nodes > 1) {
    OfNodes& nodes = waiting_[source.communicator];
    std::deque<CallArrivals>& own = nodes[source.node];
    own.push_back(arrivals);
    if (own.size() > kMostCallsAhead) own.pop_front();
    if (static_cast<int>(nodes.size()) < source.nodes) return false;
    call = take_common(nodes);
    if (!call) return false;
  }
  count(window_, *call, source.shares_cores);
  count(all_, *call, source.shares_cores);
  if (window_.calls < kCallsOfWindow || window_.end - window_.begin < kTimeOfWindow) return false;
  std::optional<Straggler> found = judge(window_);
  const bool is_again = found && before_ && found->worker == before_->worker;
  present_ = is_again ? found : std::nullopt;
  before_ = found;
  window_ = {};
  return true;
}

/// The first call that all nodes have told of. Those before it are dropped.
std::optional<CallArrivals> StragglerJudge::take_common(OfNodes& nodes) {
  std::uint64_t number = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [node, calls] : nodes) {
      while (!calls.empty() && calls.front().number < number) calls.pop_front();
      if (calls.empty()) return std::nullopt;
      changed = changed || calls.front().number > number;
      number = calls.front().number;
    }
  }
  std::optional<CallArrivals> merged;
  for (auto& [node, calls] : nodes) {
    merged = merged ? merged->merged_with(calls.front()) : calls.front();
    calls.pop_front();
  }
  return merged;
}

void StragglerJudge::count(Tally& tally, const CallArrivals& call, bool shares_cores) {
  if (tally.calls++ == 0) tally.begin = call.last_at;
  tally.end = std::max(tally.end, call.last_at);
  tally.shares_cores = tally.shares_cores || shares_cores;
  const std::int64_t lateness = call.lateness();
  const std::int64_t least = shares_cores ? call.others_away.all + kTurn : kLeastLateness;
  const std::int64_t without_core = std::min(call.away.core, lateness);
  const std::int64_t by_itself = lateness - without_core;
  if (by_itself >= least) {
    tally.late[call.last].add(
        by_itself, std::clamp<std::int64_t>(call.away.input - call.others_away.input, 0, by_itself));
  } else if (lateness >= least) {
    tally.without_core[call.last].add(lateness, 0);
  }
}

std::optional<Straggler> StragglerJudge::judge(const Tally& tally) {
  if (const std::optional<Straggler> found = find_one(tally.late, tally)) return found;
  std::optional<Straggler> found = find_one(tally.without_core, tally);
  if (found) found->cause = LateFrom::kWaitingForCore;
  return found;
}

std::uint64_t StragglerJudge::Late::calls_from(std::size_t size) const noexcept {
  return std::accumulate(calls_by_size.begin() + static_cast<std::ptrdiff_t>(size), calls_by_size.end(),
                         std::uint64_t{0});
}

std::size_t StragglerJudge::Late::usual_size() const noexcept {
  std::size_t size = calls_by_size.size() - 1;
  while (size > 0 && 2 * calls_from(size) < calls) --size;
  return size;
}

std::optional<Straggler> StragglerJudge::find_one(const std::map<int, Late>& by_worker, const Tally& tally) {
  std::int64_t all_lateness = 0;
  const std::pair<const int, Late>* worst = nullptr;
  for (const auto& entry : by_worker) {
    all_lateness += entry.second.lateness;
    if (worst == nullptr || entry.second.lateness > worst->second.lateness) worst = &entry;
  }
  if (worst == nullptr) return std::nullopt;
  const std::size_t size = std::max(worst->second.usual_size(), kSizesBelow) - kSizesBelow;
  const std::uint64_t own_calls = worst->second.calls_from(size);
  if (own_calls < kFewestLateCalls) return std::nullopt;
  std::uint64_t all_calls = 0;
  for (const auto& [worker, late] : by_worker) all_calls += late.calls_from(size);
  const auto& [worker, late] = *worst;
  const auto calls = static_cast<double>(late.calls);
  const Straggler straggler{
      .worker = worker,
      .cause = 2 * late.by_input >= late.lateness ? LateFrom::kInput : LateFrom::kComputing,
      .share_of_calls = calls / static_cast<double>(tally.calls),
      .mean_lateness = seconds(late.lateness) / calls,
      .share_of_time = seconds(late.lateness) / std::max(seconds(tally.end - tally.begin), 1e-9)};
  const bool is_one = static_cast<double>(own_calls) >= kLeastShare * static_cast<double>(all_calls) &&
                      seconds(late.lateness) >= kLeastShare * seconds(all_lateness);
  const bool costs_time = straggler.share_of_time >= kMuchTime ||
                          (straggler.share_of_time >= kSomeTime && straggler.mean_lateness >= kLongLateness);
  const bool is_often = !tally.shares_cores || straggler.share_of_calls >= kLeastShareOnSharedCores;
  return is_one && is_often && costs_time ? std::optional(straggler) : std::nullopt;
}

SlownessJudge::SlownessJudge(SlownessJudgeOptions options) : options_(std::move(options)) {}

void SlownessJudge::add(const ArrivalSource& source, std::span<const CallArrivals> calls) {
  const std::lock_guard lock(mutex_);
  for (const CallArrivals& call : calls) {
    if (stragglers_.add(source, call)) links_.judge_looks(stragglers_.one_was_late());
  }
  say_who_is_late();
  say_whose_link_is_slow();
  const Verdict before = std::exchange(verdict_, verdict());
  if (verdict_ != before) options_.on_change(lines());
}

void SlownessJudge::add(int worker, const QueueLooks& looks) {
  const std::lock_guard lock(mutex_);
  links_.add(worker, looks);
}

void SlownessJudge::say_who_is_late() {
  const std::optional<Straggler>& present = stragglers_.present();
  if (!present) return;
  const bool is_news = !said_ || said_->worker != present->worker || said_->cause != present->cause ||
                       present->mean_lateness > kMuchSlower * said_->mean_lateness;
  if (!is_news) return;
  said_ = present;
  options_.say(present->cause, fmt::format("{} {}", name_of(present->worker), to_string(*present)));
}

void SlownessJudge::say_whose_link_is_slow() {
  const std::optional<SlowLink>& link = links_.present();
  if (!link || std::exchange(said_link_of_, link->worker) == link->worker) return;
  options_.say(LateFrom::kMovingData, fmt::format("{} {}", name_of(link->worker), to_string(*link)));
}

SlownessJudge::Verdict SlownessJudge::verdict() const {
  Verdict verdict;
  if (const auto& straggler = stragglers_.present()) {
    verdict.worker = straggler->worker;
    verdict.cause = straggler->cause;
  }
  if (const auto& link = links_.present()) verdict.link = link->worker;
  return verdict;
}

std::vector<std::string> SlownessJudge::lines() const {
  std::vector<std::string> lines;
  if (const auto& straggler = stragglers_.present())
    lines.push_back(fmt::format("{} {}", name_of(straggler->worker), to_string(*straggler)));
  if (const auto& link = links_.present())
    lines.push_back(fmt::format("{} {}", name_of(link->worker), to_string(*link)));
  return lines;
}

std::vector<std::string> SlownessJudge::slow_at_present() const {
  const std::lock_guard lock(mutex_);
  return lines();
}

void SlownessJudge::conclude() {
  const std::lock_guard lock(mutex_);
  const std::optional<Straggler> straggler = stragglers_.of_all_calls();
  const bool one_was_late = straggler && straggler->cause != LateFrom::kWaitingForCore;
  const std::optional<SlowLink> link = one_was_late ? std::nullopt : links_.of_all_looks();
  if (link)
    options_.say(LateFrom::kMovingData,
                 fmt::format("in the whole run, {} {}", name_of(link->worker), to_string(*link)));
  if (!straggler) return;
  options_.say(
      straggler->cause,
      fmt::format("in the whole run, {} {}; the others waited {:.0f} % of the time for it",
                  name_of(straggler->worker), to_string(*straggler), 100 * straggler->share_of_time));
}

std::string SlownessJudge::name_of(int worker) const {
  const auto index = static_cast<std::size_t>(worker);
  return index < options_.workers.size() ? describe(options_.workers[index])
                                         : fmt::format("worker {}", worker);
}

}  // namespace cohort
