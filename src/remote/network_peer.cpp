#include "network_peer.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::remote {
namespace {

constexpr std::size_t kBufferBytes = 4 * kWholeFrameBytes;
constexpr std::size_t kMostPieces = 32;

/// What one peer may bring before it is the next one's turn.
constexpr std::size_t kMostBytesInTurn = std::size_t{8} << 20;

}  // namespace

NetworkPeer::NetworkPeer(Connected connected, Handler& handler, SignsOfLife& signs)
    : PeerBase(connected, handler),
      socket_(std::move(connected.socket)),
      signs_(&signs),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)) {
  signs_->add(*this);
}

NetworkPeer::~NetworkPeer() { signs_->remove(*this); }

void NetworkPeer::send_frame(const FrameParts& frame) {
  if (lost() || ending()) return;
  {
    const std::lock_guard lock(sending_);
    std::size_t sent = 0;
    if (outbox_.empty()) {
      std::array<std::span<const std::byte>, kMostPieces> pieces;
      std::size_t count = 0;
      frame.for_each([&](std::span<const std::byte> piece) {
        if (count < kMostPieces) pieces[count++] = piece;
      });
      sent = send_now(std::span(pieces).first(count));
      if (sent == frame.bytes()) return;
    }
    keep(outbox_, frame, sent);
  }
  wait_for_room(true);
}

std::size_t NetworkPeer::send_now(std::span<const std::span<const std::byte>> pieces) noexcept {
  std::array<iovec, kMostPieces> parts;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    parts[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = pieces.size();
  while (true) {
    const ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    // A broken connection is noticed by reading, after what arrived before it broke.
    if (errno != EINTR) return 0;
  }
}

std::vector<std::shared_ptr<const void>> NetworkPeer::send_kept() {
  std::vector<std::shared_ptr<const void>> finished;
  while (!outbox_.empty()) {
    const std::size_t sent = send_now(outbox_.next(kMostPieces));
    if (sent == 0) break;
    std::ranges::move(outbox_.sent(sent), std::back_inserter(finished));
  }
  return finished;
}

void NetworkPeer::give_sign() noexcept {
  const std::lock_guard lock(sending_);
  if (!socket_) return;
  try {
    if (outbox_.empty()) {
      const FrameParts sign({.type = FrameType::kSignOfLife}, {});
      const std::array pieces{sign.header()};
      const std::size_t sent = send_now(pieces);
      // Nothing fits: what is on its way is sign enough.
      if (sent > 0) outbox_.keep(sign, sent);
    } else {
      std::ranges::move(send_kept(), std::back_inserter(finished_));
    }
  } catch (const std::bad_alloc&) {
    // The owner sends what is kept, and meets the shortage where it can say so.
  }
}

std::size_t NetworkPeer::backlog() const noexcept {
  const std::lock_guard lock(sending_);
  return outbox_.bytes();
}

int NetworkPeer::hand_over() {
  int messages = 0;
  if (!may_have_bytes_ && !interrupted_) return messages;
  interrupted_ = true;
  const std::size_t turn_ends = received_ + kMostBytesInTurn;
  while (!ending()) {
    FrameReader::Step step;
    try {
      step = reader().step({buffer_.get() + begin_, end_ - begin_});
    } catch (const BrokenStream& e) {
      end(e.what());
      break;
    }
    begin_ += step.bytes;
    if (step.message) {
      ++messages;
      handler().on_message(*this, reader().message());
    } else if (step.bytes == 0 && (!may_have_bytes_ || received_ >= turn_ends || !read())) {
      break;
    }
  }
  interrupted_ = false;
  return messages;
}

bool NetworkPeer::read() {
  const std::span<std::byte> missing = reader().missing();
  if (begin_ == end_) {
    begin_ = end_ = (received_ + missing.size()) % kFrameAlignment;
  } else if (kBufferBytes - end_ < kWholeFrameBytes) {
    // The beginning of a frame, whose end may need the room.
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  std::array<iovec, 2> parts{{{missing.data(), missing.size()}, {buffer_.get() + end_, kBufferBytes - end_}}};
  const ssize_t got = ::readv(socket_.get(), parts.data(), parts.size());
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) {
    may_have_bytes_ = false;
    // Reset: it ended before it had read everything.
    if (got == 0 || errno == ECONNRESET)
      end(kEnded);
    else if (errno != EAGAIN)
      end(fmt::format("is out of reach: {}", std::strerror(errno)));
    return false;
  }
  heard_ = true;
  const auto bytes = static_cast<std::size_t>(got);
  if (bytes < missing.size() + kBufferBytes - end_) may_have_bytes_ = false;
  received_ += bytes;
  const std::size_t placed = std::min(bytes, missing.size());
  reader().filled(placed);
  end_ += bytes - placed;
  return true;
}

void NetworkPeer::watch_by(int epoll) {
  epoll_ = epoll;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, socket_.get(), &event) != 0)
    throw Unavailable("cannot watch {}: {}", name(), std::strerror(errno));
}

void NetworkPeer::wait_for_room(bool on) {
  if (on == waits_for_room_) return;
  waits_for_room_ = on;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  if (on) event.events |= EPOLLOUT;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &event);
}

void NetworkPeer::on_event(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) may_have_bytes_ = true;
  if ((events & EPOLLOUT) == 0) return;
  had_room_ = true;
  std::vector<std::shared_ptr<const void>> finished;
  bool all_sent = false;
  {
    const std::lock_guard lock(sending_);
    finished = std::exchange(finished_, {});
    std::ranges::move(send_kept(), std::back_inserter(finished));
    all_sent = outbox_.empty();
  }
  if (all_sent) wait_for_room(false);
}

bool NetworkPeer::heard_since_last() { return std::exchange(heard_, false) || may_have_bytes_; }

void NetworkPeer::close(Clock::time_point limit) noexcept {
  signs_->remove(*this);
  const std::lock_guard lock(sending_);
  if (epoll_ >= 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr);
  if (!ending()) watch::finish_sending(socket_, limit);
  ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
  outbox_ = {};
  finished_.clear();
  reader().drop_memory();
  buffer_.reset();
}

}  // namespace cohort::remote
