// What members of a communicator tell each other beside their collectives: that it has
// failed, and, when a deadline has passed, who still answers. Notices are read only by
// those who wait, a few times per second or after a while, so they cost nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <cohort/base/error.h>

#include "calls.h"
#include "outbox.h"

namespace cohort::mpi {

enum class NoticeKind : std::uint32_t {
  kFailed,   ///< to all: from `sequence` on, calls end in `error`
  kLate,     ///< to member 0: the sender's deadline of call `sequence` has passed
  kAsk,      ///< from member 0: who is here?
  kPresent,  ///< to member 0: the sender is
};

struct Notice {
  NoticeKind kind = NoticeKind::kPresent;
  std::uint64_t sequence = 0;
  std::optional<Error> error;
  int from = -1;  ///< filled in by the receiver
};

class Notices {
 public:
  Notices(MPI_Comm comm, int rank, int size, Outbox& outbox)
      : comm_(comm), rank_(rank), size_(size), outbox_(outbox) {}

  void send(const Notice& notice, int to);
  void send_to_all(const Notice& notice);
  [[nodiscard]] std::optional<Notice> receive();

 private:
  MPI_Comm comm_;
  int rank_;
  int size_;
  Outbox& outbox_;
};

}  // namespace cohort::mpi
