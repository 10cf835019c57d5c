// The inside of an Endpoint: its connections, those that come to be, and when it looks where.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "lobby.h"
#include "peer_base.h"
#include "signs_of_life.h"

namespace cohort::remote {

class Endpoint::Impl {
 public:
  Impl(EndpointOptions options, Handler& handler);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return identity_.introduction.incarnation; }

  Peer& connect(const Address& address, Deadline deadline);
  int poll();
  bool wait(Deadline deadline);
  void wake() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  /// What one look at everything came to.
  struct Progress {
    int messages = 0;
    bool events = false;  ///< the handler was told something else, or a backlog has become less
  };
  Progress look();
  void announce_new(Progress& progress);
  void hand_over(Progress& progress);
  void report_lost(Progress& progress);
  void ask_system(int timeout_ms);
  void watch_signs(Clock::time_point now);
  void sleep(Deadline deadline);
  void let_in();
  PeerBase& add(Connected connected);
  void require_outside_handler(const char* call) const;

  EndpointOptions options_;
  Handler* handler_;
  pid_t process_;
  Identity identity_;
  Address address_;
  watch::Fd epoll_;
  std::unique_ptr<Lobby> lobby_;
  std::unique_ptr<SignsOfLife> signs_;            ///< outlives the peers
  std::vector<std::unique_ptr<PeerBase>> peers_;  ///< all that ever were
  std::vector<PeerBase*> live_;
  std::deque<PeerBase*> new_;  ///< not announced to the handler
  bool any_over_network_ = false;
  bool in_handler_ = false;
  unsigned looks_ = 0;  ///< since the system was asked
  Clock::time_point asked_at_{};
  Clock::time_point watched_at_ = Clock::now();
  int waits_asleep_ = 0;  ///< how many of the next waits go to sleep at once
  std::atomic<bool> woken_{false};
};

}  // namespace cohort::remote
