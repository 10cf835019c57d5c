#include "links.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::rendezvous {
namespace {

using namespace std::chrono_literals;

/// An attempt to connect keeps other threads from the connections for so long.
constexpr auto kLongestAttempt = 200ms;

/// Who gives up an attempt that this end has accepted already tries again, as soon as it gets a core.
constexpr auto kUntilNextAttempt = 2s;

remote::EndpointOptions endpoint_options(int rank, std::string secret) {
  remote::EndpointOptions options;
  options.task = {"worker", rank};
  options.secret = std::move(secret);
  return options;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

Links::Links(int rank, std::string secret)
    : secret_(std::move(secret)), endpoint_(endpoint_options(rank, secret_), *this) {}

void Links::connect(const remote::Address& address, Deadline deadline, const std::function<void()>& between) {
  const int rank = address.task.id;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (!workers_[rank].peers.empty()) return;
    }
    const Deadline attempt = Deadline::after(kLongestAttempt);
    try {
      const remote::SharedEndpoint::Turn turn(endpoint_);
      remote::Peer& peer =
          endpoint_.endpoint().connect(address, attempt.at() < deadline.at() ? attempt : deadline);
      const std::lock_guard lock(mutex_);
      Worker& worker = workers_[rank];
      if (std::ranges::find(worker.peers, &peer) == worker.peers.end()) worker.peers.push_back(&peer);
      return;
    } catch (const Unavailable& error) {
      if (deadline.expired()) throw DeadlineExceeded(ErrorOrigin{{}, rank, address.host}, error.what());
    }
    if (between) between();
  }
}

void Links::send(int rank, std::string_view group, const Letter& letter) {
  const remote::SharedEndpoint::Turn turn(endpoint_);
  remote::Peer* peer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const Worker& worker = workers_[rank];
    if (!worker.peers.empty()) peer = worker.peers.front();
  }
  if (peer == nullptr) return;
  const auto group_bytes = static_cast<std::uint32_t>(group.size());
  const std::array parts{std::as_bytes(std::span(&group_bytes, 1)), bytes_of(group), bytes_of(letter.text)};
  peer->send(static_cast<std::uint16_t>(letter.kind), letter.round, parts);
}

std::optional<Letter> Links::take(const std::string& group) {
  const std::lock_guard lock(mutex_);
  const auto found = letters_.find(group);
  if (found == letters_.end()) return std::nullopt;
  Letter letter = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) letters_.erase(found);
  return letter;
}

void Links::wait(const std::string& group, Deadline deadline) {
  std::uint64_t losses = 0;
  {
    const std::lock_guard lock(mutex_);
    losses = losses_;
  }
  endpoint_.wait_until(
      [&] {
        const std::lock_guard lock(mutex_);
        return losses_ != losses || letters_.contains(group);
      },
      deadline);
}

std::optional<std::string> Links::loss(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(rank);
  if (found == workers_.end()) return std::nullopt;
  const Worker& worker = found->second;
  if (!worker.peers.empty() || worker.loss.empty() || !worker.comes_back.expired()) return std::nullopt;
  return worker.loss;
}

std::string Links::name(int rank) const {
  const std::vector<std::string> names = namesakes(rank);
  return names.empty() ? fmt::format("worker {}", rank) : names.front();
}

std::vector<std::string> Links::namesakes(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(rank);
  return found == workers_.end() ? std::vector<std::string>() : found->second.names;
}

void Links::on_connected(remote::Peer& peer) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_[peer.task().id];
  if (std::ranges::find(worker.peers, &peer) == worker.peers.end()) worker.peers.push_back(&peer);
  if (std::ranges::find(worker.names, peer.name()) == worker.names.end()) worker.names.push_back(peer.name());
}

void Links::on_message(remote::Peer& peer, const remote::Message& message) {
  std::uint32_t group_bytes = 0;
  const std::string_view body(reinterpret_cast<const char*>(message.body.data()), message.body.size());
  if (body.size() < sizeof group_bytes) return;
  std::memcpy(&group_bytes, body.data(), sizeof group_bytes);
  if (body.size() - sizeof group_bytes < group_bytes) return;
  const std::string_view group = body.substr(sizeof group_bytes, group_bytes);
  Letter letter{static_cast<Letter::Kind>(message.kind), message.number,
                std::string(body.substr(sizeof group_bytes + group_bytes)), peer.task().id};
  const std::lock_guard lock(mutex_);
  letters_[std::string(group)].push_back(std::move(letter));
}

void Links::on_lost(remote::Peer& peer, const Error& error) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_[peer.task().id];
  std::erase(worker.peers, &peer);
  worker.loss = error.what();
  worker.comes_back = Deadline::after(kUntilNextAttempt);
  ++losses_;
}

}  // namespace cohort::rendezvous
