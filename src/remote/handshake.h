// The beginning of a connection between two tasks, seen from one end: each proves that it knows the job's
// secret before it is told anything, and then they introduce themselves. On a node they also pass each other
// the descriptors by which they share memory.
//
//     connector                                listener
//     magic, version, nonce          ->
//                                    <-        magic, version, nonce, proof
//     proof, introduction            ->
//                                    <-        proof, introduction
//
// Never waits. What comes from strangers is short, and ends the handshake if it is not what it should be.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/cluster_roles.h>

#include "cluster/mutual_proof.h"
#include "cluster/sockets.h"
#include "shared_memory.h"

namespace cohort::remote {

/// A secret shorter than this could be guessed.
inline constexpr std::size_t kShortestSecret = 16;

/// What two tasks tell each other when they connect, once each knows that the other belongs to the job.
struct Introduction {
  ClusterTask task = {};
  ClusterTask wanted = {};  ///< the task that is to answer; unused in an answer
  std::string host = {};
  std::uint64_t incarnation = 0;
  std::int64_t pid = 0;
  std::chrono::milliseconds heartbeat{0};
  bool offers_descriptor = false;
  std::uint64_t nonce_address = 0;  ///< of `nonce` in the memory of the task's process
  std::uint64_t nonce = 0;

  friend bool operator==(const Introduction&, const Introduction&) = default;
};

[[nodiscard]] std::string to_text(const Introduction& introduction);

/// @throws InvalidArgument when the text is none.
[[nodiscard]] Introduction parse_introduction(std::string_view text);

/// What an endpoint is to others.
struct Identity {
  Introduction introduction = {};
  std::string secret = {};
  Doorbell bell = {};
  watch::Fd offered = {};
};

/// The rings of a connection between two processes of a node, made by the one that connects.
[[nodiscard]] SharedMemory make_rings();

using watch::Reach;
using watch::Side;

/// What a handshake ends in.
struct Connected {
  watch::Fd socket = {};
  Reach reach = Reach::kNetwork;
  Side side = Side::kConnector;
  Introduction peer = {};

  // On a node only.
  std::optional<SharedMemory> rings = {};
  std::optional<Doorbell> bell = {};
  watch::Fd offered = {};
  pid_t pid = 0;  ///< as this process sees it; 0: it cannot
};

class Handshake {
 public:
  enum class Stage {
    kConnecting,
    kOpening,      ///< the other end has not proved anything
    kProven,       ///< connector: the listener has, and waits for `introduce`
    kIntroducing,  ///< waits for the introduction
    kDone,
    kFailed,
  };

  /// `socket` does not block, and is connected or connecting. `identity` outlives the handshake.
  Handshake(watch::Fd socket, Reach reach, Side side, const Identity& identity, bool connecting);

  /// Goes on as far as it can.
  void advance();

  /// Connector at kProven: tells the listener who this is, and that it wants to speak with `wanted`.
  void introduce(const ClusterTask& wanted);

  [[nodiscard]] int descriptor() const noexcept { return connected_.socket.get(); }
  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  [[nodiscard]] bool ended() const noexcept { return stage_ == Stage::kDone || stage_ == Stage::kFailed; }

  /// At kFailed: why, and whether whatever is at the other end does not belong to the job.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] bool met_stranger() const noexcept { return stranger_; }

  /// At kDone.
  [[nodiscard]] Connected take() { return std::move(connected_); }

 private:
  void open();
  void read_opening();
  void read_introduction();
  void send_introduction(Introduction introduction);
  void take_descriptors(bool offers);

  /// Reads until `input_` has so many bytes; false: not yet, or failed.
  [[nodiscard]] bool read_to(std::size_t bytes);
  void send(std::string_view bytes, std::span<const int> descriptors);
  void fail(std::string why, bool stranger = false);

  const Identity* identity_;
  Side side_;
  Stage stage_;
  Connected connected_;
  watch::MutualProof proof_;
  std::string input_;
  watch::Attached attached_;  ///< to what has been read
  std::string failure_;
  bool stranger_ = false;
};

}  // namespace cohort::remote
