// The messages that a WorkerExchange sends and receives, none of which is waited for: what is long, or
// goes to a worker that is not there, is on its way until it has arrived.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calls.h"
#include "exchange_message.h"
#include "transport/pending_sends.h"

namespace cohort::mpi {

/// Whoever calls it has the right to call MPI.
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
