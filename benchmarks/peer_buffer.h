// Ordinary memory, as a program without Cohort would give to MPI: aligned, and advised to be
// backed by huge pages, so that the peer is not slowed down by what is easily avoided.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

namespace cohort::bench {

class PeerBuffer {
 public:
  /// Uninitialised. @throws Unavailable when memory is short.
  explicit PeerBuffer(std::size_t bytes);

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept { std::free(data); }
  };

  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace cohort::bench
