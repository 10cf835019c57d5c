// Small messages on their way: keeps each one's bytes until MPI has taken them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "../calls.h"

namespace cohort::mpi {

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

}  // namespace cohort::mpi
