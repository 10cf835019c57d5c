#include "frames.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

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

namespace {

/// Memory for long bodies is kept for the next one up to this size.
constexpr std::size_t kMostKeptBytes = std::size_t{4} << 20;

}  // namespace

FrameReader::Step FrameReader::step(std::span<const std::byte> bytes) {
  if (in_long_body_) return go_on(bytes);
  FrameHeader header;
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  check(header);
  if (header.type == FrameType::kSignOfLife) return {sizeof header, false};

  const std::size_t frame_bytes = sizeof header + header.body_bytes + padding_after(header.body_bytes);
  if (frame_bytes > kWholeFrameBytes) return begin_long(header, bytes.subspan(sizeof header));
  if (bytes.size() < frame_bytes) return {};
  message_ = {header.kind, header.number, bytes.subspan(sizeof header, header.body_bytes)};
  return {frame_bytes, true};
}

void FrameReader::check(const FrameHeader& header) const {
  const bool message = header.type == FrameType::kMessage;
  const bool sign_of_life = header.type == FrameType::kSignOfLife && header.body_bytes == 0;
  if ((!message && !sign_of_life) || header.unused != 0 || header.body_bytes > longest_body_ ||
      header.large_bytes > header.body_bytes) {
    throw BrokenStream("its messages are damaged: none begins like this");
  }
}

FrameReader::Step FrameReader::begin_long(const FrameHeader& header,
                                          std::span<const std::byte> behind_header) {
  const auto body_bytes = static_cast<std::size_t>(header.body_bytes);
  const auto large_bytes = static_cast<std::size_t>(header.large_bytes);
  const std::size_t head_bytes = body_bytes - large_bytes;
  std::span<std::byte> destination;
  // A head that the stream could never show as a whole is not worth asking about.
  const bool asks = large_bytes >= kLargeBytes && head_bytes <= kWholeFrameBytes / 2;
  if (asks) {
    if (behind_header.size() < head_bytes) return {};
    destination = destination_(header.kind, header.number, behind_header.first(head_bytes), large_bytes);
    if (!destination.empty() && destination.size() != large_bytes) {
      throw InvalidArgument(
          "message {} of kind {} brings {} bytes, and the handler has given {} to put them; a destination "
          "has as many bytes as it is asked for",
          header.number, header.kind, large_bytes, destination.size());
    }
  }
  if (!destination.empty()) {
    const std::span<std::byte> head = own_memory(head_bytes);
    std::ranges::copy(behind_header.first(head_bytes), head.begin());
    message_ = {header.kind, header.number, head};
    missing_ = destination;
  } else {
    const std::span<std::byte> body = own_memory(body_bytes);
    message_ = {header.kind, header.number, body};
    missing_ = body;
  }
  padding_left_ = padding_after(body_bytes);
  in_long_body_ = true;
  return {sizeof header + (destination.empty() ? 0 : head_bytes), false};
}

std::span<std::byte> FrameReader::own_memory(std::size_t bytes) {
  if (memory_bytes_ < bytes || memory_bytes_ > kMostKeptBytes) {
    memory_.reset();
    memory_bytes_ = 0;
    try {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    } catch (const std::bad_alloc&) {
      throw BrokenStream(fmt::format("its message of {} bytes finds no memory", bytes));
    }
    memory_bytes_ = bytes;
  }
  return {memory_.get(), bytes};
}

FrameReader::Step FrameReader::go_on(std::span<const std::byte> bytes) {
  const std::size_t copied = std::min(bytes.size(), missing_.size());
  std::copy_n(bytes.begin(), copied, missing_.begin());
  missing_ = missing_.subspan(copied);
  if (!missing_.empty()) return {copied, false};
  const std::size_t skipped = std::min(bytes.size() - copied, padding_left_);
  padding_left_ -= skipped;
  in_long_body_ = padding_left_ > 0;
  return {copied + skipped, !in_long_body_};
}

}  // namespace cohort::remote
