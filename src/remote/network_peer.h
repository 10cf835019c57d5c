// A connection to a task of another node over TCP. What cannot be sent at once is kept, and sent when the
// system has room: by the owner's calls, or by the thread that gives signs of life, which may not cut into a
// message that has been sent in part.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "frames.h"
#include "peer_base.h"

namespace cohort::remote {

class NetworkPeer final : public PeerBase, private HearsSigns {
 public:
  /// `signs` outlives the connection.
  NetworkPeer(Connected connected, Handler& handler, SignsOfLife& signs);
  ~NetworkPeer() override;

  [[nodiscard]] bool on_this_node() const noexcept override { return false; }
  [[nodiscard]] std::size_t backlog() const noexcept override;
  [[nodiscard]] bool is_open() const noexcept override { return !lost() && !ending(); }
  [[nodiscard]] bool read_memory(std::uint64_t, std::span<std::byte>) override { return false; }

  int hand_over() override;
  /// It sends when the system says that there is room.
  [[nodiscard]] bool flush() override { return std::exchange(had_room_, false); }
  [[nodiscard]] bool is_ready() override { return ending() || may_have_bytes_ || interrupted_; }
  void on_event(std::uint32_t events) override;
  void watch_by(int epoll) override;
  void close(Clock::time_point limit) noexcept override;

 protected:
  [[nodiscard]] bool heard_since_last() override;

 private:
  void send_frame(const FrameParts& frame) override;
  void give_sign() noexcept override;
  [[nodiscard]] std::size_t send_now(std::span<const std::span<const std::byte>> pieces) noexcept;
  [[nodiscard]] std::vector<std::shared_ptr<const void>> send_kept();
  void wait_for_room(bool on);
  [[nodiscard]] bool read();

  watch::Fd socket_;
  SignsOfLife* signs_;
  int epoll_ = -1;
  bool waits_for_room_ = false;
  bool had_room_ = false;

  mutable std::mutex sending_;
  Outbox outbox_;                                      ///< guarded by sending_
  std::vector<std::shared_ptr<const void>> finished_;  ///< likewise: owners for this object's owner to drop

  // What was received and not taken by the reader, at addresses that are as far from a multiple of the
  // frames' alignment as the bytes are in the stream.
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t received_ = 0;
  bool may_have_bytes_ = false;
  bool interrupted_ = false;  ///< by what the handler threw, with bytes left in the buffer
  bool heard_ = false;
};

}  // namespace cohort::remote
