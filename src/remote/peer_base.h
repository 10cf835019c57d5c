// What an endpoint and its connections want of each other, however the bytes travel, and how tasks show that
// they live. The owner of the endpoint serialises all calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "frames.h"
#include "handshake.h"
#include "shared_memory.h"

namespace cohort::remote {

/// A connection whose other end does not see this task's doorbell.
class HearsSigns {
 public:
  virtual ~HearsSigns() = default;

  /// Called by the thread of SignsOfLife.
  virtual void give_sign() noexcept = 0;
};

/// The thread by which a task shows others that it lives, whatever its own threads are busy with. A process
/// that is stopped gives no sign.
class SignsOfLife {
 public:
  /// `bell` outlives this.
  SignsOfLife(Doorbell& bell, std::chrono::milliseconds interval);

  /// Both may be called by any thread. After `remove`, `listener` is not called any more.
  void add(HearsSigns& listener);
  void remove(HearsSigns& listener);

 private:
  void give_signs();

  Doorbell* bell_;
  std::mutex mutex_;
  std::vector<HearsSigns*> listeners_;
  std::jthread thread_;
};

class PeerBase : public Peer {
 public:
  using Clock = std::chrono::steady_clock;

  PeerBase(Connected& connected, Handler& handler);

  [[nodiscard]] const ClusterTask& task() const noexcept override { return introduction_.task; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept override { return introduction_.incarnation; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] bool lost() const noexcept override { return lost_; }
  [[nodiscard]] int offered_descriptor() const noexcept override { return offered_.get(); }

  using Peer::send;
  void send(std::uint16_t kind, std::uint64_t number,
            std::span<const std::span<const std::byte>> parts) override;
  void send_shared(std::uint16_t kind, std::uint64_t number, std::span<const std::byte> head,
                   std::span<const std::byte> large, std::shared_ptr<const void> owner) override;

  /// Hands over what has arrived; what the handler throws comes out. Returns the number of messages.
  virtual int hand_over() = 0;

  /// Sends what is kept, as far as it fits. Whether the backlog has become less since the last call.
  [[nodiscard]] virtual bool flush() = 0;

  /// Whether there is something to do, looked at once more by a thread that has said that it sleeps.
  [[nodiscard]] virtual bool is_ready() = 0;

  /// Something has happened to one of the descriptors of `watch_by`.
  virtual void on_event(std::uint32_t events) = 0;

  /// Adds its descriptors to an epoll, with this object as their data.
  virtual void watch_by(int epoll) = 0;

  /// Ends the connection, also for processes that were forked since. Waits no longer than until `limit` for
  /// what was sent to reach the other node.
  virtual void close(Clock::time_point limit) noexcept = 0;

  /// Looks for signs of life, `since_last` after it did so before. A peer that gave none for `silence` will
  /// be lost. Time in which nobody looked counts only as far as the peer's own interval.
  void watch(Clock::duration since_last, Clock::duration silence);

  /// Why the peer will be lost once everything that arrived before has been handed over.
  [[nodiscard]] const std::optional<std::string>& ending() const noexcept { return ending_; }
  void set_lost() noexcept { lost_ = true; }

  bool announced = false;  ///< to the handler

 protected:
  /// Sends the frame, or keeps what does not fit.
  virtual void send_frame(const FrameParts& frame) = 0;

  /// How the end of a connection looks from its other end, which may also have taken this task for lost.
  static constexpr const char* kEnded = "has ended or closed the connection";

  /// Keeps the rest of a frame in `outbox`. Without memory for it the connection ends, since what follows
  /// would be taken for the rest.
  void keep(Outbox& outbox, const FrameParts& frame, std::size_t sent);

  /// The first reason counts.
  void end(std::string why);
  [[nodiscard]] virtual bool heard_since_last() = 0;
  [[nodiscard]] Handler& handler() const noexcept { return *handler_; }
  [[nodiscard]] FrameReader& reader() noexcept { return reader_; }
  [[nodiscard]] const Introduction& introduction() const noexcept { return introduction_; }

 private:
  Introduction introduction_;
  std::string name_;
  watch::Fd offered_;
  Handler* handler_;
  FrameReader reader_;
  std::optional<std::string> ending_;
  bool lost_ = false;
  Clock::duration silent_for_{0};
};

}  // namespace cohort::remote
