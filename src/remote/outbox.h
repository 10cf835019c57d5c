// The frames that a transport could not send at once, in their order. Bodies are copies, or lent by an owner
// that the outbox keeps until they are sent. Its user serialises calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "frame.h"

namespace cohort::remote {

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

}  // namespace cohort::remote
