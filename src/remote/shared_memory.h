// Memory that two processes share: a file without a name whose size is fixed, so that neither end can take
// pages away from the other, and views of it.
#pragma once

#include <cstddef>
#include <utility>

#include "cluster/fd.h"

namespace cohort::remote {

/// A range of a file in the address space of this process.
class View {
 public:
  View() = default;
  View(View&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  View& operator=(View&& other) noexcept;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View();

  [[nodiscard]] std::byte* data() const noexcept { return begin_; }

 private:
  friend class SharedMemory;
  View(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}

  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

class SharedMemory {
 public:
  /// @throws Unavailable when the system has none.
  explicit SharedMemory(std::size_t bytes);

  /// That of another process.
  /// @throws DataLoss when it is not a file of `bytes` whose size is fixed.
  SharedMemory(watch::Fd file, std::size_t bytes);

  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

  /// Views go on without it.
  [[nodiscard]] watch::Fd take_file() && noexcept { return std::move(file_); }

  /// Both throw Unavailable when there is no room. `offset` and `bytes` are multiples of a page.
  [[nodiscard]] View view(std::size_t offset, std::size_t bytes) const;

  /// The range twice, one after the other: what goes beyond its end continues at its beginning.
  [[nodiscard]] View view_twice(std::size_t offset, std::size_t bytes) const;

 private:
  watch::Fd file_;
};

}  // namespace cohort::remote
