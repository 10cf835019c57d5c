// libcohort-mpi-memory.so: malloc and its kin for a program whose large blocks are to be moved into the
// memory that the ranks of a node share. A block of 256 KiB and more is a mapping of its own, so that its
// pages have no bytes of another block, and its end is seen. Smaller ones are the C library's, or those of
// whatever allocator comes next.
//
// Comes behind libcohort-mpi.so in LD_PRELOAD; launchers and shells get it, too, so it needs no C++ library.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "memory_interface.h"

namespace cohort::preload {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{256} << 10;
/// Freed blocks are kept for the next ones, as fresh pages cost more than most collectives: so much of them.
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

std::size_t page_bytes() {
  static std::size_t bytes = 0;
  if (bytes == 0) bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

bool is_large(std::size_t bytes) { return bytes >= kLargeBytes && bytes <= SIZE_MAX / 2; }

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

void* map(std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

/// Restores errno, which free() must not change.
class SavedErrno {
 public:
  SavedErrno() = default;
  ~SavedErrno() { errno = value_; }
  SavedErrno(const SavedErrno&) = delete;
  SavedErrno& operator=(const SavedErrno&) = delete;

 private:
  int value_ = errno;
};

/// Blocks by address. Not for two threads at once.
class BlockTable {
 public:
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const CohortMemoryBlock& operator[](std::size_t index) const { return blocks_[index]; }

  /// The first block that does not begin before `begin`, or count().
  [[nodiscard]] std::size_t lower_bound(const void* begin) const {
    std::size_t first = 0;
    for (std::size_t length = count_; length > 0;) {
      const std::size_t half = length / 2;
      if (address_of(blocks_[first + half].begin) < address_of(begin)) {
        first += half + 1;
        length -= half + 1;
      } else {
        length = half;
      }
    }
    return first;
  }

  /// The block that begins there; count() where there is none.
  [[nodiscard]] std::size_t find(const void* begin) const {
    const std::size_t index = lower_bound(begin);
    return index < count_ && blocks_[index].begin == begin ? index : count_;
  }

  /// The block in which the address lies; count() where there is none.
  [[nodiscard]] std::size_t find_containing(const void* address) const {
    const std::size_t index = lower_bound(address);
    if (index < count_ && blocks_[index].begin == address) return index;
    if (index == 0) return count_;
    const CohortMemoryBlock& before = blocks_[index - 1];
    return address_of(address) - address_of(before.begin) < before.bytes ? index - 1 : count_;
  }

  /// False where there is no memory for it.
  [[nodiscard]] bool add(const CohortMemoryBlock& block) {
    if (count_ == room_ && !grow()) return false;
    const std::size_t index = lower_bound(block.begin);
    std::memmove(blocks_ + index + 1, blocks_ + index, (count_ - index) * sizeof(CohortMemoryBlock));
    blocks_[index] = block;
    ++count_;
    return true;
  }

  CohortMemoryBlock take(std::size_t index) {
    const CohortMemoryBlock block = blocks_[index];
    --count_;
    std::memmove(blocks_ + index, blocks_ + index + 1, (count_ - index) * sizeof(CohortMemoryBlock));
    return block;
  }

 private:
  bool grow() {
    const std::size_t room = room_ == 0 ? page_bytes() / sizeof(CohortMemoryBlock) : 2 * room_;
    void* const more = map(whole_pages(room * sizeof(CohortMemoryBlock)));
    if (more == nullptr) return false;
    if (room_ > 0) {
      std::memcpy(more, blocks_, count_ * sizeof(CohortMemoryBlock));
      ::munmap(blocks_, whole_pages(room_ * sizeof(CohortMemoryBlock)));
    }
    blocks_ = static_cast<CohortMemoryBlock*>(more);
    room_ = room;
    return true;
  }

  CohortMemoryBlock* blocks_ = nullptr;
  std::size_t count_ = 0;
  std::size_t room_ = 0;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
BlockTable used;                             ///< that the program has; guarded by `mutex`, as are these
BlockTable kept;                             ///< that it has freed
std::size_t kept_bytes = 0;                  ///< of all of them
const CohortMemoryEvents* events = nullptr;  ///< set once

/// Which thread is in fork(), with the mutex: a handler that was there before may allocate memory, too.
pthread_t forking{};
bool this_thread_forks() {
  return ::pthread_equal(__atomic_load_n(&forking, __ATOMIC_RELAXED), ::pthread_self()) != 0;
}

class Lock {
 public:
  Lock() {
    if (!this_thread_forks()) ::pthread_mutex_lock(&mutex);
  }
  ~Lock() {
    if (!this_thread_forks()) ::pthread_mutex_unlock(&mutex);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

const CohortMemoryEvents* told_of_fork = nullptr;  ///< for the thread that forks

void begin_fork() {
  const CohortMemoryEvents* const told = __atomic_load_n(&events, __ATOMIC_ACQUIRE);
  if (told != nullptr) told->before_fork();
  ::pthread_mutex_lock(&mutex);
  told_of_fork = told;
  __atomic_store_n(&forking, ::pthread_self(), __ATOMIC_RELAXED);
}

const CohortMemoryEvents* finish_fork() {
  const CohortMemoryEvents* const told = told_of_fork;
  __atomic_store_n(&forking, pthread_t{}, __ATOMIC_RELAXED);
  ::pthread_mutex_unlock(&mutex);
  return told;
}

/// A child begins with the table as it was. The linker sees to it that this is called before all other
/// libraries' constructors: then the locks are taken after those of all other handlers, under which other
/// threads may allocate memory.
[[gnu::constructor]] void survive_fork() {
  ::pthread_atfork(
      begin_fork,
      [] {
        if (const CohortMemoryEvents* const told = finish_fork(); told != nullptr)
          told->after_fork_in_parent();
      },
      [] {
        if (const CohortMemoryEvents* const told = finish_fork(); told != nullptr)
          told->after_fork_in_child();
      });
}

/// Whether the block's pages are private ones then.
bool tell_end(void* begin, bool is_unmapped) {
  const CohortMemoryEvents* const told = __atomic_load_n(&events, __ATOMIC_ACQUIRE);
  return told == nullptr || told->block_ends(begin, is_unmapped ? 1 : 0) != 0;
}

void unmap(const CohortMemoryBlock& block) {
  static_cast<void>(tell_end(block.begin, true));
  ::munmap(block.begin, block.bytes);
}

/// The smallest kept block that is not much too large; its `begin` is null where there is none.
CohortMemoryBlock take_kept(std::size_t bytes) {
  const Lock lock;
  std::size_t best = kept.count();
  for (std::size_t i = 0; i < kept.count(); ++i) {
    const std::size_t has = kept[i].bytes;
    if (has >= bytes && has / 2 <= bytes && (best == kept.count() || has < kept[best].bytes)) best = i;
  }
  if (best == kept.count()) return {};
  kept_bytes -= kept[best].bytes;
  return kept.take(best);
}

/// A block of whole pages, with `was_used` where it may not be zero throughout. `alignment` is a power of
/// two.
void* allocate(std::size_t bytes, std::size_t alignment, bool& was_used) {
  CohortMemoryBlock block{};
  if (alignment <= page_bytes()) block = take_kept(whole_pages(bytes));
  was_used = block.begin != nullptr;
  if (!was_used) {
    const std::size_t beyond = alignment > page_bytes() ? alignment : 0;
    block = {.begin = map(whole_pages(bytes) + beyond), .bytes = whole_pages(bytes), .asked_bytes = bytes};
    if (block.begin != nullptr && beyond > 0) {
      char* const mapped = static_cast<char*>(block.begin);
      const std::size_t before = (alignment - address_of(mapped) % alignment) % alignment;
      if (before > 0) ::munmap(mapped, before);
      if (before < beyond) ::munmap(mapped + before + block.bytes, beyond - before);
      block.begin = mapped + before;
    }
  }
  if (block.begin != nullptr) {
    block.asked_bytes = bytes;
    const Lock lock;
    if (used.add(block)) return block.begin;
  }
  if (block.begin != nullptr) unmap(block);
  errno = ENOMEM;
  return nullptr;
}

/// Takes a block from the program; `begin` is null where it is none of these.
CohortMemoryBlock take(void* begin) {
  if (address_of(begin) % page_bytes() != 0) return {};
  const Lock lock;
  const std::size_t index = used.find(begin);
  return index == used.count() ? CohortMemoryBlock{} : used.take(index);
}

/// For the next one that needs it; others make room for it, unless it is too large by itself.
void keep(const CohortMemoryBlock& block) {
  const SavedErrno saved;
  while (true) {
    CohortMemoryBlock out{};
    {
      const Lock lock;
      if (block.bytes <= kMostKeptBytes && kept_bytes + block.bytes <= kMostKeptBytes && kept.add(block)) {
        kept_bytes += block.bytes;
        return;
      }
      if (block.bytes <= kMostKeptBytes && kept.count() > 0) {
        out = kept.take(0);
        kept_bytes -= out.bytes;
      }
    }
    if (out.begin == nullptr) break;
    unmap(out);
  }
  unmap(block);
}

/// The same name of the library that comes next, for smaller blocks.
template <class Function>
Function find_next(const char* name) {
  void* const next = ::dlsym(RTLD_NEXT, name);
  if (next == nullptr) std::abort();
  return reinterpret_cast<Function>(next);
}

/// What the dynamic loader itself asks for while it looks for a name. Nobody frees it.
alignas(64) char early_memory[4096];
std::size_t early_bytes = 0;
bool is_early(const void* data) { return address_of(data) - address_of(early_memory) < sizeof early_memory; }
void* allocate_early(std::size_t bytes) {
  const std::size_t begin = early_bytes;
  early_bytes += (bytes + 63) / 64 * 64;
  return early_bytes <= sizeof early_memory ? early_memory + begin : nullptr;
}

struct NextFunctions {
  void* (*malloc)(std::size_t);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void (*free)(void*);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  void* (*valloc)(std::size_t);
  void* (*pvalloc)(std::size_t);
  std::size_t (*malloc_usable_size)(void*);
};
NextFunctions next_functions;
enum class Finding { kNotYet, kNow, kDone } finding = Finding::kNotYet;

/// Null while they are being looked for. The program's first call, in one thread, finds them.
const NextFunctions* next() {
  if (finding == Finding::kDone) [[likely]]
    return &next_functions;
  if (finding == Finding::kNow) return nullptr;
  finding = Finding::kNow;
#define COHORT_FIND(NAME) next_functions.NAME = find_next<decltype(next_functions.NAME)>(#NAME)
  COHORT_FIND(malloc);
  COHORT_FIND(calloc);
  COHORT_FIND(realloc);
  COHORT_FIND(free);
  COHORT_FIND(posix_memalign);
  COHORT_FIND(aligned_alloc);
  COHORT_FIND(memalign);
  COHORT_FIND(valloc);
  COHORT_FIND(pvalloc);
  COHORT_FIND(malloc_usable_size);
#undef COHORT_FIND
  finding = Finding::kDone;
  return &next_functions;
}

void* allocate(std::size_t bytes, std::size_t alignment = 1) {
  bool was_used = false;
  return allocate(bytes, alignment, was_used);
}

bool is_power_of_two(std::size_t number) { return number > 0 && (number & (number - 1)) == 0; }

/// A block of another size with the content of `block`, which is gone then; null, and `block` is the
/// program's as before, where there is no memory.
void* resize(const CohortMemoryBlock& block, std::size_t bytes) {
  if (whole_pages(bytes) == block.bytes) {
    const Lock lock;  // the table has room: the block was taken from it
    static_cast<void>(used.add({block.begin, block.bytes, bytes}));
    return block.begin;
  }
  if (tell_end(block.begin, false)) {
    void* const moved = ::mremap(block.begin, block.bytes, whole_pages(bytes), MREMAP_MAYMOVE);
    if (moved != MAP_FAILED) {
      const Lock lock;
      static_cast<void>(used.add({moved, whole_pages(bytes), bytes}));
      return moved;
    }
  }
  // Pages that are shared cannot become more, nor those of which the program has advised on a part.
  void* const resized = allocate(bytes);
  if (resized == nullptr) {
    const Lock lock;
    static_cast<void>(used.add(block));
    return nullptr;
  }
  std::memcpy(resized, block.begin, block.bytes < bytes ? block.bytes : bytes);
  unmap(block);
  return resized;
}

}  // namespace
}  // namespace cohort::preload

int cohort_memory_block_of(const void* address, CohortMemoryBlock* block) {
  using namespace cohort::preload;
  const Lock lock;
  const std::size_t index = used.find_containing(address);
  if (index == used.count()) return 0;
  *block = used[index];
  return 1;
}

void cohort_memory_tell(const CohortMemoryEvents* events) {
  __atomic_store_n(&cohort::preload::events, events, __ATOMIC_RELEASE);
}

// The functions of malloc(3) and posix_memalign(3).
using namespace cohort::preload;  // NOLINT(google-build-using-namespace): for what follows alone
#define COHORT_EXPORTED extern "C" __attribute__((visibility("default")))
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library has names with underscores

COHORT_EXPORTED void* malloc(std::size_t bytes) noexcept {
  if (is_large(bytes)) [[unlikely]]
    return allocate(bytes);
  const NextFunctions* const other = next();
  return other == nullptr ? allocate_early(bytes) : other->malloc(bytes);
}

COHORT_EXPORTED void* calloc(std::size_t count, std::size_t each) noexcept {
  std::size_t bytes = 0;
  if (!__builtin_mul_overflow(count, each, &bytes) && is_large(bytes)) {
    bool was_used = false;
    void* const data = allocate(bytes, 1, was_used);
    return data != nullptr && was_used ? std::memset(data, 0, bytes) : data;
  }
  const NextFunctions* const other = next();
  return other == nullptr ? allocate_early(bytes) : other->calloc(count, each);
}

COHORT_EXPORTED void free(void* data) noexcept {
  if (data == nullptr || is_early(data)) return;
  const CohortMemoryBlock block = take(data);
  if (block.begin != nullptr)
    keep(block);
  else if (const NextFunctions* const other = next(); other != nullptr)
    other->free(data);
}

COHORT_EXPORTED void* realloc(void* data, std::size_t bytes) noexcept {
  if (data == nullptr) return malloc(bytes);
  const CohortMemoryBlock block = take(data);
  const NextFunctions* const other = next();
  if (block.begin != nullptr && is_large(bytes)) return resize(block, bytes);
  if (block.begin == nullptr && !is_large(bytes) && !is_early(data) && other != nullptr)
    return other->realloc(data, bytes);
  // From one kind of memory to the other.
  const bool ends = block.begin != nullptr && bytes == 0;
  void* const fresh = ends ? nullptr : malloc(bytes);
  if (fresh != nullptr) {
    std::size_t had = block.bytes;
    if (is_early(data)) had = sizeof early_memory - (address_of(data) - address_of(early_memory));
    if (block.begin == nullptr && !is_early(data) && other != nullptr) had = other->malloc_usable_size(data);
    std::memcpy(fresh, data, had < bytes ? had : bytes);
  }
  if (block.begin == nullptr) {
    if (fresh != nullptr) free(data);
  } else if (fresh != nullptr || ends) {
    keep(block);
  } else {
    const Lock lock;
    static_cast<void>(used.add(block));  // it stays the program's
  }
  return fresh;
}

COHORT_EXPORTED int posix_memalign(void** data, std::size_t alignment, std::size_t bytes) noexcept {
  if (is_large(bytes) && is_power_of_two(alignment) && alignment % sizeof(void*) == 0) {
    const SavedErrno saved;
    void* const allocated = allocate(bytes, alignment);
    if (allocated == nullptr) return ENOMEM;
    *data = allocated;
    return 0;
  }
  return next()->posix_memalign(data, alignment, bytes);
}

COHORT_EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  if (is_large(bytes) && is_power_of_two(alignment)) return allocate(bytes, alignment);
  return next()->aligned_alloc(alignment, bytes);
}

COHORT_EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  if (is_large(bytes) && is_power_of_two(alignment)) return allocate(bytes, alignment);
  return next()->memalign(alignment, bytes);
}

COHORT_EXPORTED void* valloc(std::size_t bytes) noexcept {
  return is_large(bytes) ? allocate(bytes) : next()->valloc(bytes);
}

COHORT_EXPORTED void* pvalloc(std::size_t bytes) noexcept {
  return is_large(bytes) ? allocate(bytes) : next()->pvalloc(bytes);
}

COHORT_EXPORTED std::size_t malloc_usable_size(void* data) noexcept {
  CohortMemoryBlock block{};
  if (cohort_memory_block_of(data, &block) != 0) return block.asked_bytes;
  return data == nullptr ? 0 : next()->malloc_usable_size(data);
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
