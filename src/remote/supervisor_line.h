// What a parameter server on one of several hosts and its supervisor tell each other: single words over a
// pair of sockets, of which each has one end. Supervisors know which hosts are lost, and so decide whether
// a server's variables go on from the server or from its standby, never from both.
//
//     server  kAlone     ->  supervisor     it has no standby, or has lost it: may it commit without?
//     server  <-  kGranted                  it may: from now on the standby does not take over
//     server  kCopied    ->                 the standby has all that was committed: from now on it may
//     standby <-  kTakeOver                 the server's host is lost
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cluster/fd.h"

namespace cohort::remote {

enum class SupervisorWord : std::uint8_t { kAlone = 1, kGranted, kCopied, kTakeOver };

/// One end. It does not own the descriptor, which outlives it, and never waits.
class SupervisorLine {
 public:
  explicit SupervisorLine(int descriptor) noexcept : descriptor_(descriptor) {}

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// To an end that is closed a word is lost.
  /// @throws Unavailable when the other end has read none of very many words.
  void send(SupervisorWord word) const;

  /// The next word, or nothing if there is none now.
  [[nodiscard]] std::optional<SupervisorWord> receive() const;

 private:
  int descriptor_;
};

/// Both ends of a new line, closed on exec. @throws Unavailable when the system refuses.
[[nodiscard]] std::pair<watch::Fd, watch::Fd> make_supervisor_line();

}  // namespace cohort::remote
