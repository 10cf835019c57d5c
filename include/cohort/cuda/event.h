// An Event marks a point in a stream: what was queued before it was recorded. Streams wait for it on the GPU,
// threads on the host. Recording it again moves the mark. Two events for timing give the time that the GPU
// took from one to the other.
#pragma once

#include <utility>

#include <cohort/device/device.h>

struct CUevent_st;

namespace cohort::cuda {

/// CUDA's `cudaEvent_t`, without CUDA's headers.
using EventHandle = CUevent_st*;

class Stream;

class Event {
 public:
  enum class Purpose {
    kOrder,   ///< order only, which is cheaper
    kTiming,  ///< order and timing
  };

  /// For streams of `device`.
  explicit Event(Device device, Purpose purpose = Purpose::kOrder);
  ~Event();

  Event(Event&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] EventHandle handle() const noexcept { return handle_; }

  /// Marks what `stream`, of the same device, holds now.
  void record(const Stream& stream) const;

  /// Whether everything before the mark has been done; true before the first record.
  [[nodiscard]] bool done() const;

  /// Blocks the thread until it has. @throws what the GPU's guards throw.
  void synchronize() const;

  /// The time on the GPU from `start` to this mark. Both must be kTiming, and done.
  [[nodiscard]] double microseconds_since(const Event& start) const;

 private:
  Device device_;
  EventHandle handle_ = nullptr;
};

}  // namespace cohort::cuda
