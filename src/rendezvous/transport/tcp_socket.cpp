#include "tcp_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/system_calls.h"

namespace cohort::rendezvous {
namespace {

using namespace std::chrono_literals;

/// Of messages that go in one call of the system.
constexpr std::size_t kMostMessagesAtOnce = 16;

/// Then others have their turn.
constexpr std::size_t kMostBytesInTurn = std::size_t{4} << 20;

/// How long the end of a connection may take, so that what was sent reaches the other end.
constexpr auto kLongestClose = 500ms;

}  // namespace

TcpSocket::TcpSocket(int member, Receiver& receiver) : member_(member), receiver_(receiver) {}

void TcpSocket::connect(watch::Fd socket) {
  socket_ = std::move(socket);
  staging_ = std::make_unique_for_overwrite<std::byte[]>(kStagingBytes);
  flush();
}

TcpSocket::~TcpSocket() {
  if (loss_ || !socket_) return;
  flush();
  watch::finish_sending(socket_, std::chrono::steady_clock::now() + kLongestClose);
}

void TcpSocket::send(const MessageHeader& header, std::span<const std::byte> data, std::uint32_t ticket) {
  outbox_.push_back({.header = header, .data = data, .ticket = ticket});
  // Behind others it waits for its turn.
  if (outbox_.size() == 1) flush();
}

void TcpSocket::send_copy(const MessageHeader& header, std::span<const std::byte> data) {
  auto copy = std::make_unique_for_overwrite<std::byte[]>(data.size());
  std::ranges::copy(data, copy.get());
  const std::span<const std::byte> copied{copy.get(), data.size()};
  outbox_.push_back({.header = header, .data = copied, .copy = std::move(copy)});
  if (outbox_.size() == 1) flush();
}

bool TcpSocket::flush() {
  bool any = false;
  while (socket_ && !outbox_.empty() && !loss_) {
    std::array<iovec, 2 * kMostMessagesAtOnce> parts;
    std::size_t count = 0;
    std::size_t bytes = 0;
    const auto add = [&](const void* data, std::size_t size) {
      if (size == 0) return;
      parts[count++] = {const_cast<void*>(data), size};
      bytes += size;
    };
    for (std::size_t i = 0; i < std::min(outbox_.size(), kMostMessagesAtOnce); ++i) {
      const Outgoing& message = outbox_[i];
      add(reinterpret_cast<const std::byte*>(&message.header + 1) - message.header_left, message.header_left);
      add(message.data.data(), message.data.size());
    }
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = count;
    const ssize_t written = uninterrupted(
        [&] { return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (written < 0) {
      // Messages that arrived before it broke are still to be read; reading finds the end.
      if (errno != EAGAIN && errno != EPIPE && errno != ECONNRESET) lose(std::strerror(errno));
      return any;
    }
    any = true;
    note_written(static_cast<std::size_t>(written));
    if (static_cast<std::size_t>(written) < bytes) return any;
  }
  return any;
}

void TcpSocket::note_written(std::size_t bytes) {
  while (!outbox_.empty()) {
    Outgoing& message = outbox_.front();
    const std::size_t of_header = std::min(bytes, message.header_left);
    message.header_left -= of_header;
    bytes -= of_header;
    const std::size_t of_data = std::min(bytes, message.data.size());
    message.data = message.data.subspan(of_data);
    bytes -= of_data;
    if (message.header_left > 0 || !message.data.empty()) return;
    if (message.ticket != kNoTicket) sent_.push_back(message.ticket);
    outbox_.pop_front();
  }
}

void TcpSocket::copy_unsent(std::uint32_t ticket) {
  for (Outgoing& message : outbox_) {
    if (message.ticket != ticket) continue;
    message.ticket = kNoTicket;
    message.copy = std::make_unique_for_overwrite<std::byte[]>(message.data.size());
    std::ranges::copy(message.data, message.copy.get());
    message.data = {message.copy.get(), message.data.size()};
  }
}

bool TcpSocket::read() {
  std::size_t total = 0;
  while (socket_ && !loss_ && total < kMostBytesInTurn) {
    if (begin_ == end_)
      begin_ = end_ = 0;
    else if (begin_ > 0) {  // the beginning of a header
      std::memmove(staging_.get(), staging_.get() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    const std::size_t direct = next_ == nullptr ? 0 : missing_;
    const std::array<iovec, 2> parts{{{next_, direct}, {staging_.get() + end_, kStagingBytes - end_}}};
    const std::size_t room = direct + kStagingBytes - end_;
    const ssize_t got = uninterrupted([&] { return ::readv(socket_.get(), parts.data(), parts.size()); });
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      lose(got == 0 ? "the other end has closed it" : std::strerror(errno));
      break;
    }
    const auto bytes = static_cast<std::size_t>(got);
    total += bytes;
    const std::size_t placed = std::min(bytes, direct);
    if (placed > 0) {
      next_ += placed;
      missing_ -= placed;
    }
    end_ += bytes - placed;
    take_staged();
    if (bytes < room) break;
  }
  return total > 0;
}

void TcpSocket::take_staged() {
  while (true) {
    if (in_message_) {
      const std::size_t staged = std::min(missing_, end_ - begin_);
      if (staged > 0 && next_ != nullptr) {
        std::memcpy(next_, staging_.get() + begin_, staged);
        next_ += staged;
      }
      begin_ += staged;
      missing_ -= staged;
      if (missing_ > 0) return;
      in_message_ = false;
      next_ = nullptr;
      receiver_.end(*this);
    }
    MessageHeader header;
    if (end_ - begin_ < sizeof header) return;
    std::memcpy(&header, staging_.get() + begin_, sizeof header);
    begin_ += sizeof header;
    in_message_ = true;
    missing_ = header.bytes;
    next_ = receiver_.begin(*this, header);
  }
}

void TcpSocket::lose(std::string why) {
  if (!loss_) loss_ = std::move(why);
}

}  // namespace cohort::rendezvous
