// A connection to a task of this node: two rings in shared memory, a bell at each end, and a socket that
// shows the other's end.
#pragma once

#include "peer_base.h"
#include "shared_memory.h"

namespace cohort::remote {

class NodePeer final : public PeerBase {
 public:
  /// @throws Unavailable or DataLoss when the memory cannot be used.
  NodePeer(Connected connected, Handler& handler);

  [[nodiscard]] bool on_this_node() const noexcept override { return true; }
  [[nodiscard]] std::size_t backlog() const noexcept override { return outbox_.bytes(); }
  [[nodiscard]] bool is_open() const noexcept override;
  [[nodiscard]] bool read_memory(std::uint64_t address, std::span<std::byte> destination) override;

  int hand_over() override;
  [[nodiscard]] bool flush() override;
  [[nodiscard]] bool is_ready() override;
  void on_event(std::uint32_t events) override;
  void watch_by(int epoll) override;
  void close(Clock::time_point limit) noexcept override;

 protected:
  [[nodiscard]] bool heard_since_last() override;

 private:
  void send_frame(const FrameParts& frame) override;
  [[nodiscard]] std::size_t write(std::span<const std::byte> bytes);
  void release(std::size_t bytes) noexcept;

  watch::Fd socket_;
  watch::Fd process_;
  pid_t pid_;
  bool reads_memory_;
  MappedRange counts_;
  MappedRange buffers_[2];
  std::optional<Doorbell> bell_;  ///< nothing once the peer is lost
  RingWriter outgoing_;
  RingReader incoming_;
  Outbox outbox_;
  std::uint64_t beats_ = 0;
  int epoll_ = -1;
};

}  // namespace cohort::remote
