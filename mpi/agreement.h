// The control phase: before any data moves, member 0 has seen from every member what it
// calls. It then sends its consent to all; small payloads ride along both ways.
//
// Calls are settled one after the other, in the order of their sequence numbers; messages
// between two members keep their order, so nothing but the order tells them apart.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <cohort/collective/collective_call.h>

#include "calls.h"
#include "outbox.h"

namespace cohort::mpi {

class Agreement {
 public:
  Agreement(MPI_Comm comm, int rank, int size, Outbox& outbox);

  /// Members other than 0, when the call starts; others may still be in front of it.
  void submit(const CallSignature& signature, std::span<const std::byte> contribution);

  /// Members other than 0, for the call in front: member 0's consent with the result, once it is here.
  [[nodiscard]] std::optional<std::span<const std::byte>> consent();

  /// Member 0, for the call in front: true once all have submitted.
  [[nodiscard]] bool gathered(const CallSignature& own, std::span<const std::byte> own_contribution);
  [[nodiscard]] std::span<const CallSignature> signatures() const { return signatures_; }
  [[nodiscard]] std::span<const std::span<const std::byte>> contributions() const { return contributions_; }
  /// Member 0: those who have not submitted; nobody before there was time to look.
  [[nodiscard]] std::vector<int> missing() const;
  /// Member 0: room for the result of a small call.
  [[nodiscard]] std::span<std::byte> room_for_result() { return slot(0); }
  /// Member 0: tells all; the next call moves to the front.
  void give_consent(std::span<const std::byte> result);

  /// Gives the call in front up.
  void withdraw();

 private:
  static constexpr std::size_t kSlotBytes = 4096;
  [[nodiscard]] std::span<std::byte> slot(std::size_t sender) {
    return std::span(slots_).subspan(sender * kSlotBytes, kSlotBytes);
  }

  MPI_Comm comm_;
  int rank_;
  std::size_t size_;
  Outbox& outbox_;
  std::vector<std::byte> slots_;
  RequestSet receives_;  ///< by sender
  std::size_t arrived_ = 0;
  bool receiving_ = false;
  std::chrono::steady_clock::time_point receiving_since_;
  std::vector<CallSignature> signatures_;
  std::vector<std::span<const std::byte>> contributions_;
};

}  // namespace cohort::mpi
