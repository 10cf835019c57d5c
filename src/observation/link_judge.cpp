#include "link_judge.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace cohort {
namespace {

/// Fewer looks of a node say nothing.
constexpr std::uint32_t kFewestLooks = 20;

/// A slow link has a full queue in so many looks, and so much more in it than any other node's. Over virtual
/// hosts with links of one rate it was 1.5 times as much at most, with one link of a tenth 2.2 times.
constexpr double kLeastShareFull = 0.8;
constexpr double kTimesOthers = 1.8;

bool has_enough(const std::pair<const int, QueueLooks>& node) { return node.second.looks >= kFewestLooks; }

}  // namespace

std::string to_string(const SlowLink& link) {
  return fmt::format(
      "has a slow link: {:.0f} KiB on average wait there to be sent in long calls, {:.0f} KiB on the next "
      "host: "
      "moving data, not computing or input",
      link.mean_bytes / 1024, link.other_bytes / 1024);
}

void LinkJudge::add(int worker, const QueueLooks& looks) { kept_[worker].add(looks); }

void LinkJudge::judge_looks(bool one_was_late) {
  const Nodes looked = std::exchange(kept_, {});
  if (one_was_late) return;
  for (const auto& [worker, looks] : looked) {
    window_[worker].add(looks);
    all_[worker].add(looks);
  }
  if (window_.size() < all_.size() || !std::ranges::all_of(window_, has_enough)) return;
  std::optional<SlowLink> found = judge(window_);
  const bool is_again = found && before_ && found->worker == before_->worker;
  present_ = is_again ? found : std::nullopt;
  before_ = found;
  window_.clear();
}

std::optional<SlowLink> LinkJudge::judge(const Nodes& nodes) {
  if (nodes.size() < 2 || !std::ranges::all_of(nodes, has_enough)) return std::nullopt;
  const auto bytes_of = [](const auto& node) { return node.second.mean_bytes(); };
  const auto fullest = std::ranges::max_element(nodes, {}, bytes_of);
  SlowLink link{.worker = fullest->first, .mean_bytes = bytes_of(*fullest)};
  for (const auto& node : nodes) {
    if (node.first != link.worker) link.other_bytes = std::max(link.other_bytes, bytes_of(node));
  }
  const bool is_slow =
      fullest->second.share_full() >= kLeastShareFull && link.mean_bytes >= kTimesOthers * link.other_bytes;
  return is_slow ? std::optional(link) : std::nullopt;
}

}  // namespace cohort
