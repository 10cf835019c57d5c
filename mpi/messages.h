// Messages that nobody waits for, beside those of collectives: what is long, or goes to a worker that is not
// there, is on its way until it has arrived. The control messages of transports, and what workers tell each
// other in a WorkerExchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>

#include "calls.h"
#include "cluster/agreement.h"

namespace cohort::mpi {

/// Small messages on their way: keeps each one's bytes until MPI has taken them.
class PendingSends {
 public:
  /// The two parts form one message.
  void send(MPI_Comm comm, int to, int tag, std::span<const std::byte> first,
            std::span<const std::byte> second = {});

  /// Lets go of what has been taken; true when something has.
  bool advance();

  [[nodiscard]] bool empty() const noexcept { return pending_.empty(); }

  /// Keeps what is pending for ever, for MPI may still read it.
  void leak();

 private:
  struct Message {
    MPI_Request request;
    std::vector<std::byte> bytes;
  };
  std::vector<Message> pending_;
  std::vector<std::byte> spare_;
};

/// Keeps something alive for the rest of the process: memory that MPI may still read or write
/// after a collective failed.
void keep_for_ever(std::shared_ptr<const void> thing);

/// A message of a WorkerExchange.
struct ExchangeMessage {
  enum class Kind : std::int32_t {
    kAnnouncement,  ///< to the parent: the sender and all below it have come
    kConsent,       ///< to the children: all have come
    kQuestion,      ///< the sender waits for long: where is the receiver?
    kAnswer,        ///< to it: the sender is in its `round`
    kLeft,          ///< to the first worker: the sender has failed
    kFailure,       ///< from the first worker: all fail; from the parent: it has failed
  };

  struct Header {
    std::int64_t round = 0;
    std::int64_t asked_in = 0;  ///< of kAnswer: the round of the question
    Kind kind = Kind::kAnnouncement;
    ErrorCode code{};           ///< of an error,
    std::int32_t culprit = -1;  ///< and the worker that caused it
    std::int32_t unused = 0;    ///< so that no byte is left undefined
  };

  Header header;
  std::string text{};  ///< of an error; of the others, contributions one after the other
  int from = 0;

  /// By an error.
  [[nodiscard]] bool ends_exchange() const noexcept {
    return header.kind == Kind::kLeft || header.kind == Kind::kFailure;
  }
  [[nodiscard]] static ExchangeMessage parse(std::string bytes, int from);
};

/// The messages that a WorkerExchange sends and receives. Whoever calls it has the right to call MPI.
class ExchangeMailbox {
 public:
  /// `comm` outlives it, and nobody else sends messages over it.
  explicit ExchangeMailbox(MPI_Comm comm) : comm_(comm) {}
  /// What is on its way is kept for ever, for MPI may still read or write it.
  ~ExchangeMailbox();

  ExchangeMailbox(const ExchangeMailbox&) = delete;
  ExchangeMailbox& operator=(const ExchangeMailbox&) = delete;

  /// Such that MPI can count its bytes, and those of the header.
  static constexpr std::size_t kLongestText = std::size_t{1} << 30U;

  void send(const ExchangeMessage& message, int to) { send(message.header, message.text, to); }
  void send(const ExchangeMessage::Header& header, std::string_view text, int to);

  /// Lets go of what has been sent. To be called now and then.
  void advance();
  /// The workers that have not taken what was sent to them, as of the latest `advance`.
  [[nodiscard]] std::vector<int> unsent_to() const;

  /// What has arrived.
  [[nodiscard]] std::optional<ExchangeMessage> receive();

 private:
  struct Transfer {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    int from = 0;
  };

  [[nodiscard]] std::optional<ExchangeMessage> take_arrived();

  MPI_Comm comm_;
  std::map<int, PendingSends> sends_;  ///< by receiver
  std::list<Transfer> arriving_;
};

}  // namespace cohort::mpi
