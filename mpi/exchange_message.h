// The messages of a WorkerExchange, and what workers contribute to its rounds, as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>

namespace cohort::mpi {

/// What the workers do together. One that ends while others go on is found out by it.
enum class RoundKind : std::int32_t { kExchange, kMakeCommunicator, kSplit, kEnd };

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

/// What one worker says in a round.
struct Contribution {
  RoundKind round_kind = RoundKind::kExchange;
  std::string_view blob;
};

/// Contributions of several workers are theirs one after the other, by rank.
[[nodiscard]] std::string to_bytes(const Contribution& contribution);
[[nodiscard]] std::vector<Contribution> parse_contributions(std::string_view bytes);

}  // namespace cohort::mpi
