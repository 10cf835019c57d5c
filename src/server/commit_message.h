// The body of kCommit and kPrepare: the writes of one execution to one server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/write.h"

namespace cohort::server {

struct CommitMessage {
  Execution execution = {};
  std::uint64_t forget = 0;   ///< nobody will ask for commits of this incarnation up to this number
  std::uint32_t decider = 0;  ///< the server whose commit decides for all that take part
  std::vector<Write> writes = {};
  std::vector<std::byte> result = {};  ///< what the function returned; for the decider alone
};

[[nodiscard]] std::vector<std::byte> to_bytes(const CommitMessage& message);
[[nodiscard]] CommitMessage parse_commit(std::span<const std::byte> bytes);

/// What kFence answers: what became of the executions of an incarnation.
struct FenceAnswer {
  struct Prepared {
    std::uint64_t number = 0;
    std::uint32_t decider = 0;
  };
  std::vector<CommitRecord> committed = {};
  std::vector<Prepared> prepared = {};
};

[[nodiscard]] std::vector<std::byte> to_bytes(const FenceAnswer& answer);
[[nodiscard]] FenceAnswer parse_fence_answer(std::uint64_t incarnation, std::span<const std::byte> bytes);

}  // namespace cohort::server
