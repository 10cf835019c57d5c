#include "link_judge.h"

#include <dirent.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace cohort {
namespace {

constexpr std::chrono::seconds kBetweenSearches{1};

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool reaches_another_host(int descriptor) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) && !is_loopback(peer);
}

}  // namespace

std::uint64_t SendQueues::bytes() {
  const auto now = std::chrono::steady_clock::now();
  if (connections_.empty() || now - found_at_ >= kBetweenSearches) {
    find_connections();
    found_at_ = now;
  }
  std::uint64_t bytes = 0;
  for (const int connection : connections_) {
    int queued = 0;
    if (::ioctl(connection, SIOCOUTQ, &queued) == 0 && queued > 0)
      bytes += static_cast<std::uint64_t>(queued);
  }
  return bytes;
}

void SendQueues::find_connections() {
  connections_.clear();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (folder == nullptr) return;
  while (const dirent* const entry = ::readdir(folder.get())) {
    char* end = nullptr;
    const long descriptor = std::strtol(entry->d_name, &end, 10);
    if (end != entry->d_name && *end == '\0' && reaches_another_host(static_cast<int>(descriptor)))
      connections_.push_back(static_cast<int>(descriptor));
  }
}

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
