// Send and receive between two members. A message starts with a packet that says what it
// is; few elements travel inside it, more follow as a second message, for which the
// receiver has by then made sure that they fit.
//
// Of receives with the same peer and tag only the oldest looks for a packet, so that
// packets and contents of different messages cannot be mixed up.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "operation.h"
#include "outbox.h"
#include "transfer.h"

namespace cohort::mpi {

class Message : public Operation {
 public:
  using Operation::Operation;
  /// Moves it on as far as it goes without waiting; true when something happened.
  [[nodiscard]] virtual bool advance() = 0;
  /// Takes back what nothing has arrived for.
  virtual void withdraw() {}
  [[nodiscard]] bool is_receive() const noexcept { return call().kind == CollectiveKind::kReceive; }
  [[nodiscard]] bool waits_for_arrival() const noexcept override { return false; }
};

[[nodiscard]] std::shared_ptr<Message> make_message(const Place& place, std::span<const MemberInfo> members,
                                                    const CollectiveCall& call, std::uint64_t sequence,
                                                    Deadline deadline);

/// The messages of one member that are under way.
class Messages {
 public:
  void start(std::shared_ptr<Message> message);
  [[nodiscard]] bool advance();
  [[nodiscard]] bool empty() const noexcept { return under_way_.empty(); }

  /// One whose deadline has passed, or null.
  [[nodiscard]] std::shared_ptr<Message> expired() const;

  /// Ends all with `error`; true when MPI may still use the memory of some, which is then kept for ever.
  bool fail_all(const Error& error);

 private:
  std::vector<std::shared_ptr<Message>> under_way_;
};

}  // namespace cohort::mpi
