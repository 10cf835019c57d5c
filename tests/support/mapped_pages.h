// Anonymous pages of a test's own, as mmap gives them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>

namespace cohort::testing {

inline std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

class MappedPages {
 public:
  explicit MappedPages(std::size_t pages, int flags = MAP_PRIVATE) : bytes_(pages * page_bytes()) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no pages");
    data_ = static_cast<std::byte*>(memory);
  }
  ~MappedPages() { ::munmap(data_, bytes_); }
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, bytes_}; }
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace cohort::testing
