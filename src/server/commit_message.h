// The body of kCommit and kPrepare: the writes of one execution to one server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/write.h"

namespace cohort::server {

/// Smaller values are copied into a message: that costs less than to keep them until it is sent.
inline constexpr std::size_t kWorthLending = std::size_t{256} << 10;

/// The incarnation by which a task's writes outside executions are known: they are numbered by themselves.
[[nodiscard]] constexpr std::uint64_t outside_executions(std::uint64_t incarnation) noexcept {
  return incarnation ^ 0x8000000000000001U;
}

struct CommitMessage {
  Execution execution = {};
  std::uint64_t forget = 0;  ///< nobody will ask for commits of this incarnation up to this number
  std::vector<Write> writes = {};
  std::vector<std::byte> result = {};  ///< a Decision; for the server that decides alone
};

[[nodiscard]] std::vector<std::byte> to_bytes(const CommitMessage& message,
                                              Carriage carriage = Carriage::kInMessage);

/// The body in two parts: of large values the largest one is at its end, and not copied.
struct CommitParts {
  std::vector<std::byte> front = {};
  std::optional<Tensor> end = {};
};
[[nodiscard]] CommitParts to_parts(const CommitMessage& message);

/// Values at the end are views of `bytes`.
[[nodiscard]] CommitMessage parse_commit(std::span<const std::byte> bytes, const Sender& sender);

/// What the server that decides remembers with the commit: which other servers take part, and the result of
/// the function.
struct Decision {
  std::vector<std::uint32_t> others = {};
  std::vector<std::byte> result = {};
};

[[nodiscard]] std::vector<std::byte> to_bytes(const Decision& decision);
[[nodiscard]] Decision parse_decision(std::span<const std::byte> bytes);

/// What kCommit and kPrepare answer: whether the writes were taken, or must be sent in the message.
enum class CommitAnswer : std::uint8_t { kTaken, kSendValues };

/// What kFinish answers: whether the writes are made, or were forgotten and must be sent again.
enum class FinishAnswer : std::uint8_t { kMade, kForgotten };

/// What kFence answers: what became of the executions of an incarnation.
struct FenceAnswer {
  std::vector<CommitRecord> committed = {};
  std::vector<std::uint64_t> prepared = {};  ///< numbers
};

[[nodiscard]] std::vector<std::byte> to_bytes(const FenceAnswer& answer);
[[nodiscard]] FenceAnswer parse_fence_answer(std::uint64_t incarnation, std::span<const std::byte> bytes);

}  // namespace cohort::server
