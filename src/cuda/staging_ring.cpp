#include "staging_ring.h"

#include <algorithm>
#include <cstring>

#include <cohort/cuda/current_device.h>

#include "calls.h"

namespace cohort::cuda {
namespace {

constexpr std::size_t kBlocks = 8;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

/// Calls `visit(piece)` for pieces of `copy` that fit in a block: several rows, or a part of one.
template <class Visitor>
void for_each_piece(const BlockCopy& copy, const Visitor& visit) {
  const std::size_t width = std::min(copy.width, kBlockBytes);
  const bool one_by_one =
      copy.width > kBlockBytes || std::max(copy.to_pitch, copy.from_pitch) > calls::kMostPitch;
  const std::size_t rows = one_by_one ? 1 : std::max<std::size_t>(kBlockBytes / copy.width, 1);
  for (std::size_t row = 0; row < copy.count; row += rows) {
    for (std::size_t begin = 0; begin < copy.width; begin += width) {
      BlockCopy piece = copy;
      piece.to += row * copy.to_pitch + begin;
      piece.from += row * copy.from_pitch + begin;
      piece.width = std::min(width, copy.width - begin);
      piece.count = std::min(rows, copy.count - row);
      visit(piece);
    }
  }
}

/// Of the GPU's side of a piece, which is `pitch` unless it is one row.
std::size_t pitch_on_gpu(const BlockCopy& piece, std::size_t pitch) {
  return piece.count == 1 ? piece.width : pitch;
}

void copy_on_host(std::byte* to, std::size_t to_pitch, const std::byte* from, std::size_t from_pitch,
                  std::size_t width, std::size_t count) {
  for (std::size_t row = 0; row < count; ++row)
    std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
}

}  // namespace

StagingRing::Block::Block(Device device)
    : memory(static_cast<std::byte*>(calls::host_alloc(kBlockBytes))), done(device) {}

StagingRing::StagingRing(const Stream& stream) : stream_(stream) {
  blocks_.reserve(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) blocks_.emplace_back(stream.device());
}

StagingRing::~StagingRing() {
  for (const Block& block : blocks_) calls::free_host(block.memory);
}

std::byte* StagingRing::take(std::size_t bytes) {
  if (used_ + bytes > kBlockBytes) {
    const std::size_t next = (current_ + 1) % kBlocks;
    blocks_[next].done.synchronize();
    current_ = next;
    used_ = 0;
  }
  std::byte* const room = blocks_[current_].memory + used_;
  used_ += bytes;
  return room;
}

void StagingRing::upload(const BlockCopy& copy) {
  const CurrentDevice current(stream_.device());
  const std::lock_guard lock(mutex_);
  for_each_piece(copy, [this](const BlockCopy& piece) {
    std::byte* const room = take(piece.width * piece.count);
    copy_on_host(room, piece.width, piece.from, piece.from_pitch, piece.width, piece.count);
    calls::memcpy_2d_async(piece.to, pitch_on_gpu(piece, piece.to_pitch), room, piece.width, piece.width,
                           piece.count, stream_.handle());
    blocks_[current_].done.record(stream_);
  });
}

void StagingRing::download(const BlockCopy& copy) {
  const CurrentDevice current(stream_.device());
  const std::lock_guard lock(mutex_);
  // The GPU copies the next piece while the host copies the one before.
  BlockCopy pending;
  std::size_t pending_block = 0;
  const std::byte* pending_room = nullptr;
  const auto finish = [&] {
    if (pending_room == nullptr) return;
    blocks_[pending_block].done.synchronize();
    copy_on_host(pending.to, pending.to_pitch, pending_room, pending.width, pending.width, pending.count);
  };
  for_each_piece(copy, [&](const BlockCopy& piece) {
    std::byte* const room = take(piece.width * piece.count);
    calls::memcpy_2d_async(room, piece.width, piece.from, pitch_on_gpu(piece, piece.from_pitch), piece.width,
                           piece.count, stream_.handle());
    blocks_[current_].done.record(stream_);
    finish();
    pending = piece;
    pending_block = current_;
    pending_room = room;
  });
  finish();
}

}  // namespace cohort::cuda
