// Copying between the buffers of members: cheaper than memcpy for the short pieces that
// collectives move most often, as good for long ones, and past the caches where asked.
#pragma once

#include <cstddef>

namespace cohort {

/// Whether a copy goes past the caches: for results larger than the last private level, or read
/// by another core next. They are visible to other cores before the copy returns.
enum class CopyHint { kCached, kStream };

/// Copies `bytes` bytes. The buffers may be the same, but must not overlap otherwise.
using CopyKernel = void (*)(std::byte* to, const std::byte* from, std::size_t bytes, CopyHint hint);

/// The kernel for this processor, good for the life of the process.
[[nodiscard]] CopyKernel copy_kernel();

/// Looks the kernel up and calls it.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, CopyHint hint = CopyHint::kCached);

}  // namespace cohort
