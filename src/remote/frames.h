// How messages lie in a stream of bytes, be it a ring in shared memory or a TCP connection: in frames of a
// header, the body, and zeros up to a multiple of the alignment, so that every body begins at one. What keeps
// the frames that cannot be sent at once, and what finds the messages among the bytes that arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <cohort/remote/endpoint.h>

namespace cohort::remote {

enum class FrameType : std::uint16_t {
  kMessage = 1,
  kSignOfLife = 2,  ///< has no body, and is not handed over
};

struct FrameHeader {
  FrameType type = FrameType::kMessage;
  std::uint16_t kind = 0;
  std::uint32_t unused = 0;
  std::uint64_t number = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t large_bytes = 0;  ///< the last ones of the body, if the receiver may say where they go
};
static_assert(sizeof(FrameHeader) == 32);

inline constexpr std::size_t kFrameAlignment = 16;
static_assert(sizeof(FrameHeader) % kFrameAlignment == 0);

/// Another task's bytes are not what they should be, or too many: its connection cannot go on.
class BrokenStream : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// Zeros behind a body.
[[nodiscard]] constexpr std::size_t padding_after(std::uint64_t body_bytes) noexcept {
  return static_cast<std::size_t>(-body_bytes % kFrameAlignment);
}

/// From this size on the receiver is asked where the large part of a body goes.
inline constexpr std::size_t kLargeBytes = std::size_t{256} << 10;

/// Frames up to this size are handed over where they lie; the bodies of longer ones are put together in
/// memory of their own. Rings and buffers have room for several.
inline constexpr std::size_t kWholeFrameBytes = std::size_t{64} << 10;

/// More than any machine has: a header that says more is damaged.
inline constexpr std::uint64_t kLongestBody = std::uint64_t{1} << 44;

/// A frame that is to be sent: its header, the parts of its body, and the zeros behind. The last part may be
/// lent by an owner, so that it need not be copied; the others belong to the caller.
class FrameParts {
 public:
  using Bytes = std::span<const std::byte>;

  FrameParts(const FrameHeader& header, std::span<const Bytes> parts, Bytes lent = {},
             std::shared_ptr<const void> owner = {}) noexcept
      : header_(header), parts_(parts), lent_(lent), owner_(std::move(owner)) {}

  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof header_ + body_bytes() + padding().size();
  }
  [[nodiscard]] Bytes header() const noexcept { return std::as_bytes(std::span(&header_, 1)); }
  [[nodiscard]] Bytes lent() const noexcept { return lent_; }
  [[nodiscard]] const std::shared_ptr<const void>& owner() const noexcept { return owner_; }
  [[nodiscard]] Bytes padding() const noexcept {
    return std::as_bytes(std::span(kZeros)).first(padding_after(header_.body_bytes));
  }

  /// Calls `take` with each piece before the lent one.
  template <class Take>
  void for_each_to_copy(Take take) const {
    take(header());
    for (const Bytes part : parts_) take(part);
  }

  /// Calls `take` with each piece.
  template <class Take>
  void for_each(Take take) const {
    for_each_to_copy(take);
    take(lent_);
    take(padding());
  }

 private:
  [[nodiscard]] std::size_t body_bytes() const noexcept {
    return static_cast<std::size_t>(header_.body_bytes);
  }

  static constexpr std::array<std::byte, kFrameAlignment> kZeros{};
  FrameHeader header_;
  std::span<const Bytes> parts_;
  Bytes lent_;
  std::shared_ptr<const void> owner_;
};

/// The frames that a transport could not send at once, in their order. Bodies are copies, or lent by an owner
/// that the outbox keeps until they are sent. Its user serialises calls.
class Outbox {
 public:
  [[nodiscard]] bool empty() const noexcept { return pieces_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Keeps the frame without its first `sent` bytes, which are sent.
  void keep(const FrameParts& frame, std::size_t sent);

  /// The next bytes to be sent, in up to `most` pieces.
  [[nodiscard]] std::vector<std::span<const std::byte>> next(std::size_t most) const;
  [[nodiscard]] std::span<const std::byte> next() const noexcept { return pieces_.front().left; }

  /// Takes off the first `bytes`, which were sent. Returns the owners that are no longer needed.
  std::vector<std::shared_ptr<const void>> sent(std::size_t bytes);

 private:
  void keep(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  struct Piece {
    std::span<const std::byte> left;
    std::shared_ptr<const void> owner;
  };
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;
};

/// Finds the messages in a stream of frames, however its bytes are cut into pieces. A short message is shown
/// where it lies in the stream. The body of a long one is put together in memory of the reader's own, or
/// where the receiver wants it; transports may read directly into that.
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
