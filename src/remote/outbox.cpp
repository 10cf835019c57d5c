#include "outbox.h"

#include <algorithm>
#include <utility>

namespace cohort::remote {

void Outbox::keep(const FrameParts& frame, std::size_t sent) {
  std::size_t to_copy = 0;
  frame.for_each_to_copy([&](std::span<const std::byte> piece) { to_copy += piece.size(); });
  const auto without_sent = [&](std::span<const std::byte> piece) {
    const std::size_t skipped = std::min(sent, piece.size());
    sent -= skipped;
    return piece.subspan(skipped);
  };
  const std::size_t copied = to_copy - std::min(sent, to_copy);
  std::shared_ptr<std::byte[]> copy;
  if (copied > 0) copy = std::make_shared_for_overwrite<std::byte[]>(copied);
  std::byte* end = copy.get();
  frame.for_each_to_copy([&](std::span<const std::byte> piece) {
    const std::span<const std::byte> rest = without_sent(piece);
    end = std::copy(rest.begin(), rest.end(), end);
  });
  keep({copy.get(), copied}, copy);
  keep(without_sent(frame.lent()), frame.owner());
  keep(without_sent(frame.padding()), nullptr);
}

void Outbox::keep(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  pieces_.push_back({bytes, std::move(owner)});
  bytes_ += bytes.size();
}

std::vector<std::span<const std::byte>> Outbox::next(std::size_t most) const {
  std::vector<std::span<const std::byte>> next(std::min(most, pieces_.size()));
  std::transform(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(next.size()), next.begin(),
                 [](const Piece& piece) { return piece.left; });
  return next;
}

std::vector<std::shared_ptr<const void>> Outbox::sent(std::size_t bytes) {
  std::vector<std::shared_ptr<const void>> done;
  bytes_ -= bytes;
  while (bytes > 0) {
    Piece& front = pieces_.front();
    const std::size_t taken = std::min(bytes, front.left.size());
    front.left = front.left.subspan(taken);
    bytes -= taken;
    if (!front.left.empty()) break;
    done.push_back(std::move(front.owner));
    pieces_.pop_front();
  }
  return done;
}

}  // namespace cohort::remote
