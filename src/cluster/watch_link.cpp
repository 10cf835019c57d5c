#include "watch_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "local_peer.h"

namespace cohort::watch {
namespace {

// Precedes the text of a frame; all workers run on machines of one byte order.
struct Header {
  std::uint32_t text_bytes;
  std::uint32_t kind;
  std::int32_t subject;
  std::int32_t signal;
};

constexpr std::size_t kLongestText = 4096;

}  // namespace

Link::Link(Fd socket, Reach reach) : socket_(std::move(socket)), reach_(reach) {
  if (reach == Reach::kNetwork) {
    const int on = 1;
    ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
}

void Link::close() noexcept {
  open_ = false;
  inbox_.clear();
  outbox_.clear();
}

void Link::send(const Frame& frame) {
  if (!open_) return;
  const std::size_t text_bytes = std::min(frame.text.size(), kLongestText);
  const Header header{static_cast<std::uint32_t>(text_bytes), static_cast<std::uint32_t>(frame.kind),
                      frame.subject, frame.signal};
  outbox_.append(reinterpret_cast<const char*>(&header), sizeof header);
  outbox_.append(frame.text, 0, text_bytes);
  flush();
}

void Link::flush() {
  while (open_ && !outbox_.empty()) {
    const ssize_t sent = ::send(fd(), outbox_.data(), outbox_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      outbox_.erase(0, static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno == EINTR) {
      continue;
    } else {
      // A broken link is noticed when it is read, after the frames that arrived before it broke.
      if (errno != EAGAIN) outbox_.clear();
      return;
    }
  }
}

void Link::receive() {
  char buffer[4096];
  // A stranger who sends without end gets no more of this thread and its memory.
  constexpr int kMostAtOnce = 256;
  for (int i = 0; open_ && i < kMostAtOnce; ++i) {
    const ssize_t got = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      inbox_.append(buffer, static_cast<std::size_t>(got));
      last_heard = Clock::now();
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0 || errno != EAGAIN) open_ = false;
      return;
    }
  }
}

std::optional<Frame> Link::next_frame() {
  Header header{};
  if (inbox_.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, inbox_.data(), sizeof header);
  if (header.text_bytes > kLongestText || header.kind > static_cast<std::uint32_t>(kLastFrameKind)) {
    close();
    return std::nullopt;
  }
  if (inbox_.size() < sizeof header + header.text_bytes) return std::nullopt;
  Frame frame{static_cast<FrameKind>(header.kind), header.subject, header.signal,
              inbox_.substr(sizeof header, header.text_bytes)};
  inbox_.erase(0, sizeof header + header.text_bytes);
  return frame;
}

bool Link::identify() {
  const std::optional<pid_t> peer = peer_of_this_user(fd());
  if (!peer) return false;
  // 0 where the process is in a PID namespace that this one cannot see; then only the socket shows its end.
  if (*peer > 0) process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, *peer, 0)));
  return true;
}

bool Link::peer_is_dead() const {
  pollfd polled{process_.get(), POLLIN, 0};
  return process_ && ::poll(&polled, 1, 0) == 1;
}

}  // namespace cohort::watch
