// The links between the processes of a PeerWatch: what they tell each other in frames, how these travel, and
// how a process finds and connects to the one that listens.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mutual_proof.h"
#include "sockets.h"

namespace cohort::watch {

using Clock = std::chrono::steady_clock;

enum class FrameKind : std::uint8_t {
  kHello,        ///< from the connecting end: its nonce
  kWelcome,      ///< the listener's nonce, and its proof that it belongs to the job
  kConfirm,      ///< the connecting end's rank, and its proof; from here on the end of the link is a death
  kConfirmed,    ///< the listener's answer
  kBeat,         ///< a sign of life
  kBye,          ///< towards the chief: everyone below has left; from the chief: all have left
  kGone,         ///< a worker has died or is out of reach
  kFailed,       ///< a worker ends because of an error
  kInterrupted,  ///< a worker got a signal that ends it
  kNote,         ///< what a worker tells the `subject`
  kNoteToAll,    ///< what a worker tells all others
};

inline constexpr auto kLastFrameKind = FrameKind::kNoteToAll;

struct Frame {
  FrameKind kind = FrameKind::kBeat;
  std::int32_t subject = -1;  ///< the worker that the frame is about
  std::int32_t signal = 0;    ///< of kInterrupted
  std::string text;
};

/// Carries frames over a stream socket that never blocks: what cannot be sent at once waits in an outbox.
class Link {
 public:
  Link(Fd socket, Reach reach);

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] Reach reach() const noexcept { return reach_; }

  /// False once the other end has closed or broken the protocol, and everything that arrived has been read.
  [[nodiscard]] bool open() const noexcept { return open_; }

  /// Nothing more is read or sent.
  void close() noexcept;

  void send(const Frame& frame);
  void flush();
  [[nodiscard]] bool has_unsent() const noexcept { return !outbox_.empty(); }

  /// Reads what is there, up to 1 MiB, without waiting.
  void receive();

  /// The next complete frame of what was read.
  [[nodiscard]] std::optional<Frame> next_frame();

  /// On a local socket: finds the process at the other end, so that its death is seen even if a forked child
  /// keeps the socket open. False when it is not this user's process.
  [[nodiscard]] bool identify();

  /// Whether the process at the other end is known to have ended.
  [[nodiscard]] bool peer_is_dead() const;
  [[nodiscard]] int process_fd() const noexcept { return process_.get(); }

  // What the loop knows about the other end.
  int rank = -1;                     ///< once it has proven that it belongs to the job
  std::optional<MutualProof> proof;  ///< from its hello on
  bool confirmed = false;            ///< its end is a death
  bool left = false;                 ///< it said bye
  bool ended = false;                ///< closed or dead, to be dropped
  bool is_ready = true;              ///< it may have something to read, or room for what is unsent
  Clock::time_point last_heard = Clock::now();

 private:
  Fd socket_;
  Fd process_;
  Reach reach_;
  bool open_ = true;
  std::string inbox_;
  std::string outbox_;
};

/// Where a hub listens, as it is exchanged, and the secret by which both ends prove that they belong to this
/// job: the name of a local socket can be read by everyone, and an IP address may belong to another machine
/// in another network.
struct Address {
  std::string local_name;            ///< of an abstract local socket; empty: none
  std::vector<std::string> network;  ///< of all interfaces; empty: no TCP
  std::string secret;
};

/// What goes with the proof of a link: who connects.
[[nodiscard]] std::string proven_text(int rank);

[[nodiscard]] std::string to_blob(const Address& address);
[[nodiscard]] Address parse_address(std::string_view blob);

/// A link to the hub at `address`, which has accepted it; null when it cannot be made in time.
/// Over the network all addresses are tried at once.
[[nodiscard]] std::unique_ptr<Link> connect_local(const Address& address, int own_rank,
                                                  std::chrono::milliseconds limit);
[[nodiscard]] std::unique_ptr<Link> connect_network(const Address& address, int own_rank,
                                                    std::chrono::milliseconds limit);

}  // namespace cohort::watch
