#include "node_peer.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

#include "device/node_memory.h"

namespace cohort::remote {
namespace {

/// What is written or read at once, so that both ends of a long stream work at the same time.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

RingCounts& counts_of(const MappedRange& view, std::size_t ring) {
  return reinterpret_cast<RingCounts*>(view.data())[ring];
}

MappedRange buffer_of(const SharedMemory& rings, std::size_t ring) {
  return rings.view_twice(kRingCountsBytes + ring * kRingBytes, kRingBytes);
}

}  // namespace

NodePeer::NodePeer(Connected connected, Handler& handler)
    : PeerBase(connected, handler),
      socket_(std::move(connected.socket)),
      // Shows the end of the process itself, even if a forked child keeps the socket open.
      process_(connected.pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, connected.pid, 0)) : -1),
      pid_(connected.pid),
      reads_memory_(process_ && memory_can_be_read(pid_, introduction().nonce_address, introduction().nonce)),
      counts_(connected.rings->view(0, kRingCountsBytes)),
      buffers_{buffer_of(*connected.rings, 0), buffer_of(*connected.rings, 1)},
      bell_(std::move(connected.bell)),
      outgoing_(counts_of(counts_, connected.side == Side::kConnector ? 0 : 1),
                buffers_[connected.side == Side::kConnector ? 0 : 1].data()),
      incoming_(counts_of(counts_, connected.side == Side::kConnector ? 1 : 0),
                buffers_[connected.side == Side::kConnector ? 1 : 0].data()) {}

void NodePeer::send_frame(const FrameParts& frame) {
  try {
    if (!outbox_.empty()) static_cast<void>(flush());
    std::size_t sent = 0;
    if (outbox_.empty()) {
      const std::size_t bytes = frame.bytes();
      if (bytes <= kWholeFrameBytes && outgoing_.room(bytes) >= bytes) {
        frame.for_each([&](std::span<const std::byte> piece) { outgoing_.write(piece); });
        outgoing_.publish();
        bell_->ring();
        return;
      }
      bool room = true;
      frame.for_each([&](std::span<const std::byte> piece) {
        if (!room) return;
        const std::size_t written = write(piece);
        sent += written;
        room = written == piece.size();
      });
    }
    keep(outbox_, frame, sent);
  } catch (const BrokenStream& e) {
    end(e.what());
  }
}

std::size_t NodePeer::write(std::span<const std::byte> bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const std::size_t wanted = std::min(bytes.size() - written, kPieceBytes);
    const std::size_t room = std::min(outgoing_.room(wanted), wanted);
    if (room == 0) break;
    outgoing_.write(bytes.subspan(written, room));
    outgoing_.publish();
    bell_->ring();
    written += room;
  }
  return written;
}

bool NodePeer::flush() {
  bool less = false;
  try {
    while (!outbox_.empty()) {
      const std::size_t written = write(outbox_.next());
      if (written == 0) break;
      outbox_.sent(written);
      less = true;
    }
  } catch (const BrokenStream& e) {
    end(e.what());
  }
  return less;
}

int NodePeer::hand_over() {
  int messages = 0;
  if (!incoming_.has_news()) return messages;
  std::span<const std::byte> readable;
  std::size_t done = 0;
  bool seen_all = false;
  // Also when the handler throws: the message that it has seen is not shown again, and what follows is.
  struct AtEnd {
    NodePeer& peer;
    const std::size_t& done;
    const bool& seen_all;
    ~AtEnd() {
      if (done > 0) peer.release(done);
      if (!seen_all) peer.incoming_.look_again();
    }
  } at_end{*this, done, seen_all};
  try {
    readable = incoming_.readable();
  } catch (const BrokenStream& e) {
    end(e.what());
    return messages;
  }
  while (true) {
    FrameReader::Step step;
    try {
      const std::size_t window = reader().missing().empty() ? readable.size() : kPieceBytes;
      step = reader().step(readable.first(std::min(readable.size(), window)));
    } catch (const BrokenStream& e) {
      end(e.what());
      return messages;
    }
    readable = readable.subspan(step.bytes);
    done += step.bytes;
    if (step.message) {
      ++messages;
      handler().on_message(*this, reader().message());
    } else if (step.bytes == 0) {
      seen_all = true;
      return messages;
    }
    if (done >= kPieceBytes) release(std::exchange(done, 0));
  }
}

void NodePeer::release(std::size_t bytes) noexcept {
  if (incoming_.release(bytes)) bell_->ring();
}

bool NodePeer::is_ready() {
  if (ending() || incoming_.has_news()) return true;
  if (outbox_.empty()) return false;
  try {
    return outgoing_.wait_for_room();
  } catch (const BrokenStream& e) {
    end(e.what());
    return true;
  }
}

/// Nothing is sent over the socket after the introductions, and a process becomes readable by its end.
bool NodePeer::is_open() const noexcept {
  std::array<pollfd, 2> polled{{{socket_.get(), POLLIN | POLLRDHUP, 0}, {process_.get(), POLLIN, 0}}};
  return !lost() && ::poll(polled.data(), polled.size(), 0) == 0;
}

bool NodePeer::read_memory(std::uint64_t address, std::span<std::byte> destination) {
  if (!reads_memory_ || lost() || !read_process_memory(pid_, address, destination)) return false;
  // Asked afterwards: its number is its own for as long as it lives, and then another process's.
  return is_open();
}

void NodePeer::watch_by(int epoll) {
  epoll_ = epoll;
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.ptr = this}};
  for (const watch::Fd* descriptor : {&socket_, &process_}) {
    if (*descriptor && ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor->get(), &event) != 0)
      throw Unavailable("cannot watch {}: {}", name(), std::strerror(errno));
  }
}

void NodePeer::on_event(std::uint32_t /*events*/) {
  end(kEnded);  // see is_open
}

bool NodePeer::heard_since_last() {
  const std::uint64_t beats = bell_->beats();
  return std::exchange(beats_, beats) != beats;
}

void NodePeer::close(Clock::time_point /*limit*/) noexcept {
  for (watch::Fd* descriptor : {&socket_, &process_}) {
    if (*descriptor && epoll_ >= 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor->get(), nullptr);
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
  process_.reset();
  outbox_ = {};
  reader().drop_memory();
  bell_.reset();
  counts_ = {};
  for (MappedRange& buffer : buffers_) buffer = {};
}

}  // namespace cohort::remote
