#include <cohort/device/memory_registration.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <istream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "node_heap.h"

namespace cohort {
namespace {

/// One memory mapping of this process.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string permissions = {};  ///< for example `rw-p`
  std::uint64_t offset = 0;      ///< in the file
  std::uint64_t inode = 0;       ///< of the file; 0 for anonymous memory
  std::string name = {};         ///< the file, or for example `[stack]`

  [[nodiscard]] bool is_writable() const { return permissions.starts_with("rw"); }
  [[nodiscard]] bool is_executable() const { return permissions.at(2) == 'x'; }
  [[nodiscard]] bool is_shared() const { return permissions.at(3) == 's'; }
};

/// The mappings with a part between `begin` and `end`, by address. `maps` is as /proc/self/maps.
std::vector<Mapping> mappings_between(std::istream& maps, std::uintptr_t begin, std::uintptr_t end) {
  std::vector<Mapping> found;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    Mapping mapping;
    char dash = 0;
    std::string device;
    fields >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.permissions >> mapping.offset >>
        device >> std::dec >> mapping.inode;
    if (!fields || mapping.permissions.size() != 4) continue;
    if (mapping.end <= begin || mapping.begin >= end) continue;
    std::getline(fields >> std::ws, mapping.name);
    found.push_back(std::move(mapping));
  }
  return found;
}

std::uintptr_t address_of(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data); }

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::string describe(std::span<const std::byte> pages) {
  return fmt::format("{} bytes at {}", pages.size(), static_cast<const void*>(pages.data()));
}

void require_pages(std::span<const std::byte> pages) {
  if (pages.data() == nullptr || pages.empty())
    throw InvalidArgument("register_memory: there are no pages in {}", describe(pages));
  const std::size_t page = page_bytes();
  if (address_of(pages.data()) % page != 0 || pages.size() % page != 0) {
    throw InvalidArgument("register_memory: {} are not whole pages; begin and size must be multiples of {}",
                          describe(pages), page);
  }
  if (address_of(pages.data()) + pages.size() < pages.size())
    throw InvalidArgument("register_memory: {} reach beyond the end of the address space", describe(pages));
}

std::vector<Mapping> mappings_of(std::span<const std::byte> pages) {
  std::ifstream maps("/proc/self/maps");
  const std::uintptr_t begin = address_of(pages.data());
  return mappings_between(maps, begin, begin + pages.size());
}

void require_writable(std::span<const std::byte> pages, const std::vector<Mapping>& mappings) {
  std::uintptr_t mapped_up_to = address_of(pages.data());
  for (const Mapping& mapping : mappings) {
    if (mapping.begin > mapped_up_to) break;
    if (!mapping.is_writable()) {
      throw InvalidArgument("register_memory: of {}, those from {:#x} on may not be both read and written",
                            describe(pages), mapped_up_to);
    }
    mapped_up_to = mapping.end;
  }
  if (mapped_up_to < address_of(pages.data()) + pages.size()) {
    throw InvalidArgument("register_memory: of {}, those from {:#x} on are not mapped", describe(pages),
                          mapped_up_to);
  }
}

/// Why other pages cannot take the place of these; empty when they can.
std::string obstacle_in(const std::vector<Mapping>& mappings) {
  for (const Mapping& mapping : mappings) {
    if (mapping.name.starts_with("[stack")) return "it is the stack";
    if (mapping.name.starts_with("/anon_hugepage")) return "it is mapped with huge pages of a fixed size";
    if (mapping.is_shared()) return "it is a shared mapping";
    if (mapping.inode != 0) return fmt::format("the file {} is mapped there", mapping.name);
    if (mapping.is_executable()) return "it may be executed";
  }
  return {};
}

/// A block of the heap with room for whole pages.
struct Block {
  std::shared_ptr<const void> owner;
  std::byte* pages = nullptr;
};

Block allocate_pages(NodeHeap& heap, std::size_t bytes) {
  constexpr std::size_t kAlignedByItself = std::size_t{2} << 20;  // as the heap promises
  const std::size_t page = page_bytes();
  std::size_t room = bytes < kAlignedByItself ? bytes + page : bytes;
  const std::size_t taken = room;
  std::byte* const block = heap.allocate(taken);
  if (block == nullptr) return {};
  void* aligned = block;
  COHORT_CHECK(std::align(page, bytes, aligned, room) != nullptr);
  return {{block, [&heap, taken](std::byte* data) { heap.release(data, taken); }},
          static_cast<std::byte*>(aligned)};
}

/// Replaces the range's pages by pages of the heap. Returns why that is not possible; empty when done.
std::string move_into_heap(std::span<std::byte> pages) {
  NodeHeap* const heap = NodeHeap::of_this_process();
  if (heap == nullptr) return "this process has no node heap";
  Block block = allocate_pages(*heap, pages.size());
  if (block.owner == nullptr) return fmt::format("the node heap has no room for {} bytes", pages.size());
  std::memcpy(block.pages, pages.data(), pages.size());
  const auto offset = static_cast<off_t>(block.pages - heap->base());
  // Replaces the old pages in one step, so that concurrent readers see the same content.
  if (::mmap(pages.data(), pages.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             heap->descriptor(), offset) == MAP_FAILED) {
    return fmt::format("its pages cannot be exchanged: {}", std::strerror(errno));
  }
  RegisteredRanges::of_this_process().set_block(pages.data(), std::move(block.owner), block.pages);
  return {};
}

/// Whether the range still has pages of the heap, and nothing else was mapped there since.
bool is_still_in_heap(std::span<const std::byte> pages) {
  struct stat file {};
  if (::fstat(NodeHeap::of_this_process()->descriptor(), &file) != 0) return false;
  const std::vector<Mapping> mappings = mappings_of(pages);
  std::uintptr_t mapped_up_to = address_of(pages.data());
  for (const Mapping& mapping : mappings) {
    if (mapping.begin > mapped_up_to || mapping.inode != file.st_ino) return false;
    mapped_up_to = mapping.end;
  }
  return mapped_up_to >= address_of(pages.data()) + pages.size();
}

/// Gives the range private pages with its content. Returns why that is not possible; empty when done.
std::string move_out_of_heap(std::span<std::byte> pages) {
  if (!is_still_in_heap(pages)) return "something else is mapped there";
  void* const fresh =
      ::mmap(nullptr, pages.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return std::strerror(errno);
  std::memcpy(fresh, pages.data(), pages.size());
  // By the system itself: UCX puts a function of its own in place of the C library's, which loses the new
  // address.
  if (::syscall(SYS_mremap, fresh, pages.size(), pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) !=
      -1)
    return {};
  const int error = errno;
  ::munmap(fresh, pages.size());
  return std::strerror(error);
}

}  // namespace

MemoryRegistration::MemoryRegistration(std::span<std::byte> pages) : pages_(pages) {
  require_pages(pages);
  if (const NodeHeap* heap = NodeHeap::of_this_process(); heap != nullptr) {
    const std::uintptr_t heap_begin = address_of(heap->base());
    if (address_of(pages.data()) < heap_begin + heap->bytes() &&
        heap_begin < address_of(pages.data()) + pages.size())
      throw InvalidArgument("register_memory: {} belong to the node heap already", describe(pages));
  }
  RegisteredRanges& ranges = RegisteredRanges::of_this_process();
  ranges.add(pages);
  try {
    const std::vector<Mapping> mappings = mappings_of(pages);
    require_writable(pages, mappings);
    why_private_ = obstacle_in(mappings);
    if (why_private_.empty()) why_private_ = move_into_heap(pages);
  } catch (...) {
    static_cast<void>(ranges.remove(pages.data()));
    throw;
  }
}

MemoryRegistration::MemoryRegistration(MemoryRegistration&& other) noexcept
    : pages_(std::exchange(other.pages_, {})), why_private_(std::move(other.why_private_)) {}

MemoryRegistration& MemoryRegistration::operator=(MemoryRegistration&& other) noexcept {
  if (this == &other) return *this;
  end();
  pages_ = std::exchange(other.pages_, {});
  why_private_ = std::move(other.why_private_);
  return *this;
}

MemoryRegistration::~MemoryRegistration() { end(); }

void MemoryRegistration::end_before_unmapping() noexcept {
  if (pages_.empty()) return;
  // A call that is in flight or has failed owns the block, too.
  static_cast<void>(RegisteredRanges::of_this_process().remove(pages_.data()));
  pages_ = {};
}

void MemoryRegistration::end() noexcept {
  if (pages_.empty()) return;
  RegisteredRanges& ranges = RegisteredRanges::of_this_process();
  std::shared_ptr<const void> block = ranges.remove(pages_.data());
  if (block == nullptr) return;
  try {
    const std::string obstacle =
        block.use_count() > 1 ? "a call on it is in flight, or has failed" : move_out_of_heap(pages_);
    if (obstacle.empty()) return;
    ranges.keep(std::move(block));
    logging::warning("{} stay in the node heap after their registration: {}", describe(pages_), obstacle);
  } catch (const std::exception&) {
    if (block != nullptr) ranges.keep(std::move(block));  // there was not even memory for a message
  }
}

MemoryRegistration register_memory(std::span<std::byte> pages) { return MemoryRegistration(pages); }

}  // namespace cohort
