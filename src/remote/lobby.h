// Where tasks that connect to an endpoint wait until it is known who they are. Takes what arrives at the
// listeners through their handshakes, without waiting, and drops who takes too long.
//
// Anyone can connect to a TCP port, so strangers have little to gain: each end of a handshake is short, few
// are let in at a time, and none stays for long.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cluster/fd.h"

#include "handshake.h"

namespace cohort::remote {

class Lobby {
 public:
  using Clock = std::chrono::steady_clock;

  /// Either listener may be none. `identity` outlives the lobby.
  /// @throws Unavailable when the system refuses.
  Lobby(const Identity& identity, watch::Fd network_listener, watch::Fd local_listener);

  /// Readable when `advance` has something to do.
  [[nodiscard]] int descriptor() const noexcept { return events_.get(); }

  /// When `advance` has something to do at the latest; max(): nobody is here.
  [[nodiscard]] Clock::time_point next_limit() const noexcept;

  /// Lets in who has connected, goes on with all handshakes, and drops those who took too long.
  void advance();

  /// Tasks of the job that have introduced themselves since the last call.
  [[nodiscard]] std::vector<Connected> take_arrived();

 private:
  struct Guest {
    Handshake handshake;
    Clock::time_point leaves_at;
  };
  void accept(const watch::Fd& listener, Reach reach);
  void remove_ended();
  void listen(bool on);
  void watch_for_input(int descriptor) const;

  const Identity* identity_;
  watch::Fd network_listener_;
  watch::Fd local_listener_;
  watch::Fd events_;
  bool listening_ = false;
  Clock::time_point closed_until_{};
  std::vector<std::unique_ptr<Guest>> guests_;  ///< the longest here comes first
  std::vector<Connected> arrived_;
};

}  // namespace cohort::remote
