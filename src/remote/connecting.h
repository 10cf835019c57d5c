// How a connection comes to be, at both ends: the attempts of the task that connects, and the lobby of the
// one that listens.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "cluster/sockets.h"
#include "handshake.h"

namespace cohort::remote {

/// The attempts of one end to connect to a task. On the node that is one; elsewhere all addresses of the task
/// are tried at once, for some of them may lead nowhere, or to another machine of another network. The first
/// whose listener proves that it knows the secret is told who connects, and the others are dropped. What
/// fails is tried again, for the task may be starting.
class Attempts {
 public:
  using Clock = std::chrono::steady_clock;

  /// `identity` outlives the attempts.
  /// @throws InvalidArgument when `address` has no address that could be tried.
  Attempts(const Identity& identity, const Address& address, bool over_network_only);

  /// Starts what is due, and goes on with all handshakes. Something: the task is there.
  /// @throws InvalidArgument when all addresses lead to what is not this task of the job.
  [[nodiscard]] std::optional<Connected> advance();

  /// Adds what to wait for before the next `advance`, which is due at `next_try` in any case.
  void add_to(std::vector<pollfd>& polled) const;
  [[nodiscard]] Clock::time_point next_try() const noexcept {
    return chosen_ ? Clock::time_point::max() : next_try_;
  }

  /// How each address was tried, and what came of it.
  [[nodiscard]] std::string report() const;

 private:
  struct Attempt {
    std::string text;
    watch::SocketAddress address;
    Reach reach = Reach::kNetwork;
    std::optional<Handshake> handshake = {};
    Clock::time_point begun = {};
    std::string last_failure = {};
    bool met_stranger = false;
  };
  void start_round();
  /// Whether somebody listens there, as far as that is known.
  [[nodiscard]] bool start(Attempt& attempt);
  void choose(Attempt& attempt);
  void fail(Attempt& attempt, std::string why, bool met_stranger);
  void refuse_strangers() const;

  const Identity* identity_;
  const Address* address_;
  std::vector<Attempt> attempts_;  ///< that on the node comes first
  Clock::time_point next_try_ = Clock::now();
  std::chrono::milliseconds pause_{10};
  bool chosen_ = false;  ///< one of them has been told who connects; the others wait
};

/// Where tasks that connect to an endpoint wait until it is known who they are. Takes what arrives at the
/// listeners through their handshakes, without waiting, and drops who takes too long.
///
/// Anyone can connect to a TCP port, so strangers have little to gain: each end of a handshake is short, few
/// are let in at a time, and none stays for long.
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
