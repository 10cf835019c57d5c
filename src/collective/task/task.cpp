#include <cohort/collective/task.h>

#include <array>
#include <new>

namespace cohort {
namespace {

constexpr std::size_t kUnit = 256;
constexpr std::size_t kSizes = 4;  ///< up to 1 KiB; larger frames are as rare as they are slow
constexpr std::size_t kOfEachSize = 4;

/// A collective makes a few frames, of the same sizes as the one before, so each thread keeps what it
/// freed last.
class FrameCache {
 public:
  FrameCache() = default;
  ~FrameCache() {
    for (Size& size : sizes_) {
      while (size.count > 0) ::operator delete(size.frames[--size.count]);
    }
  }
  FrameCache(const FrameCache&) = delete;
  FrameCache& operator=(const FrameCache&) = delete;

  void* take(std::size_t index) noexcept {
    Size& size = sizes_[index];
    return size.count > 0 ? size.frames[--size.count] : nullptr;
  }

  bool keep(void* frame, std::size_t index) noexcept {
    Size& size = sizes_[index];
    if (size.count == kOfEachSize) return false;
    size.frames[size.count++] = frame;
    return true;
  }

 private:
  struct Size {
    std::array<void*, kOfEachSize> frames{};
    std::size_t count = 0;
  };
  std::array<Size, kSizes> sizes_;
};

thread_local FrameCache frame_cache;

constexpr std::size_t size_index(std::size_t bytes) { return (bytes - 1) / kUnit; }

}  // namespace

// NOLINTNEXTLINE(misc-new-delete-overloads): the sized form below is the matching one
void* detail::TaskFrame::operator new(std::size_t bytes) {
  const std::size_t index = size_index(bytes);
  if (index >= kSizes) return ::operator new(bytes);
  if (void* frame = frame_cache.take(index)) return frame;
  return ::operator new((index + 1) * kUnit);
}

void detail::TaskFrame::operator delete(void* frame, std::size_t bytes) noexcept {
  const std::size_t index = size_index(bytes);
  if (index < kSizes && frame_cache.keep(frame, index)) return;
  ::operator delete(frame);
}

}  // namespace cohort
