// A Stream is a queue of work on one GPU: copies and kernels run in the order in which they were
// queued, some time after the call that queued them has returned. Different streams run at the
// same time unless an event orders them. Any thread may queue; the order between threads is the
// order of their calls.
//
// Each GPU has a compute stream for the life of the process. Everything that Cohort does with tensors of a
// GPU goes there, and a program's own kernels belong there too: then they need no synchronisation with
// Cohort. Collectives run beside the computation, on a stream of each communicator's, and are ordered with it
// by events.
#pragma once

#include <utility>

#include <cohort/cuda/event.h>
#include <cohort/device/device.h>

struct CUstream_st;

namespace cohort::cuda {

/// CUDA's `cudaStream_t`, without CUDA's headers.
using StreamHandle = CUstream_st*;

class Stream {
 public:
  enum class Priority { kNormal, kHigh };

  /// A stream of its own, which does not wait for CUDA's default stream.
  explicit Stream(Device device, Priority priority = Priority::kNormal);
  ~Stream();  ///< what it holds is still done

  Stream(Stream&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] StreamHandle handle() const noexcept { return handle_; }

  /// Work queued from now on starts after what `event` marks, which may be of another GPU.
  void wait(const Event& event) const;

  /// Whether everything queued so far has been done.
  [[nodiscard]] bool idle() const;

  /// Blocks the thread until it has. @throws Internal with CUDA's text when some of it failed; what the GPU's
  /// guards throw.
  void synchronize() const;

  /// Blocks the thread until it has, or CUDA gives up, without an error: for memory about to be released. No
  /// guard is asked, so that its error is left for the next reader of a result.
  void drain() const noexcept;

 private:
  Device device_;
  StreamHandle handle_ = nullptr;
};

/// The stream of Cohort's own work on a GPU. @throws Unavailable when there is no such GPU.
[[nodiscard]] const Stream& compute_stream(Device device);

/// Work queued on `later` from now on starts after what `earlier` holds now. No thread waits.
void order(const Stream& earlier, const Stream& later);

/// The same with streams of other libraries; `earlier` is one of `device`.
void order(Device device, StreamHandle earlier, StreamHandle later);

}  // namespace cohort::cuda
