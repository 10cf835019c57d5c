// Finds the messages in a stream of frames, however its bytes are cut into pieces. A short message is shown
// where it lies in the stream. The body of a long one is put together in memory of the reader's own, or where
// the receiver wants it; transports may read directly into that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <cohort/remote/endpoint.h>

#include "frame.h"

namespace cohort::remote {

class FrameReader {
 public:
  /// Where the large part of a body goes; see Handler::destination.
  using Destination = std::function<std::span<std::byte>(
      std::uint16_t kind, std::uint64_t number, std::span<const std::byte> head, std::size_t large_bytes)>;

  explicit FrameReader(Destination destination, std::uint64_t longest_body = kLongestBody)
      : destination_(std::move(destination)), longest_body_(longest_body) {}

  struct Step {
    std::size_t bytes = 0;  ///< of the stream that are done with
    bool message = false;   ///< `message()` has come to its end
  };

  /// Looks at the next bytes of the stream. Neither bytes nor a message: to go on it needs more than these.
  /// @throws BrokenStream when they cannot be frames, or there is no memory for a body.
  [[nodiscard]] Step step(std::span<const std::byte> bytes);

  /// The message that `step` has found; valid until the next step, and as long as the bytes given to it.
  [[nodiscard]] const Message& message() const noexcept { return message_; }

  /// Where the next bytes of the stream belong: what is missing of a long body. Empty between such bodies.
  [[nodiscard]] std::span<std::byte> missing() const noexcept { return missing_; }

  /// Says that the first `bytes` of `missing()` were filled by other means than `step`.
  void filled(std::size_t bytes) noexcept { missing_ = missing_.subspan(bytes); }

  /// At the end of the stream.
  void drop_memory() noexcept {
    memory_.reset();
    memory_bytes_ = 0;
    missing_ = {};
  }

 private:
  void check(const FrameHeader& header) const;
  [[nodiscard]] Step begin_long(const FrameHeader& header, std::span<const std::byte> behind_header);
  [[nodiscard]] std::span<std::byte> own_memory(std::size_t bytes);
  [[nodiscard]] Step go_on(std::span<const std::byte> bytes);

  Destination destination_;
  std::uint64_t longest_body_;
  Message message_;
  bool in_long_body_ = false;
  std::span<std::byte> missing_;
  std::size_t padding_left_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t memory_bytes_ = 0;
};

}  // namespace cohort::remote
