#include "slowness_judge.h"

#include <utility>

#include <fmt/format.h>

namespace cohort {
namespace {

/// Somebody is named again when it has become this much slower.
constexpr double kMuchSlower = 2;

}  // namespace

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
