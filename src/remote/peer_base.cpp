#include "peer_base.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/quiet_thread.h"
#include "supervised_task.h"

namespace cohort::remote {

PeerBase::PeerBase(Connected& connected, Handler& handler)
    : introduction_(std::move(connected.peer)),
      name_(fmt::format("{} (host {}, pid {})", name_of(introduction_.task), introduction_.host,
                        introduction_.pid)),
      offered_(std::move(connected.offered)),
      handler_(&handler),
      reader_([this](std::uint16_t kind, std::uint64_t number, std::span<const std::byte> head,
                     std::size_t large_bytes) {
        return handler_->destination(*this, kind, number, head, large_bytes);
      }) {}

void PeerBase::send(std::uint16_t kind, std::uint64_t number,
                    std::span<const std::span<const std::byte>> parts) {
  if (lost_ || ending_) return;
  std::size_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  send_frame(FrameParts({.kind = kind, .number = number, .body_bytes = bytes}, parts));
}

void PeerBase::send_shared(std::uint16_t kind, std::uint64_t number, std::span<const std::byte> head,
                           std::span<const std::byte> large, std::shared_ptr<const void> owner) {
  if (lost_ || ending_) return;
  send_frame(FrameParts(
      {.kind = kind, .number = number, .body_bytes = head.size() + large.size(), .large_bytes = large.size()},
      {&head, 1}, large, std::move(owner)));
}

void PeerBase::keep(Outbox& outbox, const FrameParts& frame, std::size_t sent) {
  try {
    outbox.keep(frame, sent);
  } catch (const std::bad_alloc&) {
    end("is lost to this task, which has no memory to keep what it sends");
    throw;
  }
}

void PeerBase::end(std::string why) {
  if (!ending_) ending_ = std::move(why);
}

void PeerBase::watch(Clock::duration since_last, Clock::duration silence) {
  if (heard_since_last()) {
    silent_for_ = {};
    return;
  }
  silent_for_ += std::min<Clock::duration>(since_last, introduction_.heartbeat);
  // A peer whose own interval is longer than this one's patience is not lost for that.
  if (silent_for_ < std::max<Clock::duration>(silence, 2 * introduction_.heartbeat)) return;
  end(fmt::format("gave no sign of life for {:.1f} s: it is stopped, or its host is out of reach",
                  std::chrono::duration<double>(silent_for_).count()));
}

SignsOfLife::SignsOfLife(Doorbell& bell, std::chrono::milliseconds interval)
    : bell_(&bell), thread_(start_quiet_thread([this, interval](const std::stop_token& stop) {
        bell_->beat();
        // Whoever has just connected needs no sign yet.
        while (sleep_unless_stopped(interval, stop)) give_signs();
      })) {}

void SignsOfLife::add(HearsSigns& listener) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(&listener);
}

void SignsOfLife::remove(HearsSigns& listener) {
  const std::lock_guard lock(mutex_);
  std::erase(listeners_, &listener);
}

void SignsOfLife::give_signs() {
  bell_->beat();
  const std::lock_guard lock(mutex_);
  for (HearsSigns* listener : listeners_) listener->give_sign();
}

}  // namespace cohort::remote
