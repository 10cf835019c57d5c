#include "store_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/device/dtype.h>

#include "device/memory_limits.h"
#include "device/node_heap.h"

#ifndef MADV_COLLAPSE  // Linux 6.1
#define MADV_COLLAPSE 25
#endif

namespace cohort::server {
namespace {

/// A signal lets the kernel begin anew with what it is asked for, so much would never end among many signals.
constexpr std::uint64_t kPagesAtATime = std::uint64_t{4} << 20;

constexpr std::uint64_t kLargestReserve = std::uint64_t{1} << 45;

/// What a memory file begins with, read without mapping it.
struct Beginning {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t byte_order;
  std::uint64_t identity;
  std::uint64_t reserved_bytes;
};

std::optional<Beginning> read_beginning(int file) {
  Beginning beginning{};
  const ssize_t bytes = ::pread(file, &beginning, sizeof beginning, 0);
  if (bytes != sizeof beginning) return std::nullopt;
  return beginning;
}

/// The first server of the file ended before it had written all of it.
bool is_unfinished(const Beginning& beginning) {
  return beginning.magic == 0 && (beginning.version == 0 || beginning.version == kStoreVersion) &&
         (beginning.byte_order == 0 || beginning.byte_order == kByteOrder);
}

}  // namespace

watch::Fd make_store_file() {
  watch::Fd file(make_memory_file("cohort-store"));
  if (!file) throw Unavailable("no memory file for the variables of a server: {}", std::strerror(errno));
  return file;
}

StoreMapping::StoreMapping(int descriptor, Access access) : file_(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) {
  if (!file_)
    throw Unavailable("no memory file for the variables of a server: descriptor {}: {}", descriptor,
                      std::strerror(errno));
  const std::optional<Beginning> beginning = read_beginning(file_.get());
  const bool is_new = file_bytes() == 0 || (beginning && is_unfinished(*beginning));
  if (access == Access::kWrite && is_new) {
    reserve_new();
  } else {
    map_existing(access);
  }
}

std::uint64_t StoreMapping::file_bytes() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0)
    throw Unavailable("no memory file for the variables of a server: {}", std::strerror(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

bool StoreMapping::map(std::uint64_t bytes, Access access) {
  const int protection = access == Access::kWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  mapping_ = MappedRange::aligned(file_.get(), bytes, kHugePage, protection);
  return static_cast<bool>(mapping_);
}

void StoreMapping::reserve_new() {
  shrink(0);
  // Less address space may be free than the limits say; then half as much is tried.
  std::uint64_t bytes = std::min<std::uint64_t>(reservable_memory(), kLargestReserve) / kPage * kPage;
  while (bytes > kBlocksBegin && !map(bytes, Access::kWrite)) bytes = bytes / 2 / kPage * kPage;
  if (!mapping_) {
    throw Unavailable(
        "no address range for the variables of a server: {} MiB may be reserved, and it takes {}",
        reservable_memory() >> 20, (kBlocksBegin >> 20) + 1);
  }
  back_with_pages(0, sizeof(StoreHeader), "the beginning of a server's memory");
  StoreHeader& fresh = header();
  fresh.version = kStoreVersion;
  fresh.byte_order = kByteOrder;
  std::random_device random;
  fresh.identity = std::uint64_t{random()} << 32 | random() | 1;  // never 0
  fresh.reserved_bytes = bytes;
  if (::ftruncate(file_.get(), static_cast<off_t>(kBlocksBegin)) != 0)
    throw Unavailable("no memory file for the variables of a server: {}", std::strerror(errno));
  fresh.magic.store(kStoreMagic, std::memory_order_release);
}

void StoreMapping::map_existing(Access access) {
  const std::optional<Beginning> beginning = read_beginning(file_.get());
  if (!beginning || beginning->magic != kStoreMagic)
    throw DataLoss("the memory file of {} bytes is not one of a server's variables", file_bytes());
  if (beginning->byte_order != kByteOrder)
    throw DataLoss("the memory file of a server's variables was written with another byte order");
  if (beginning->version != kStoreVersion) {
    throw DataLoss(
        "the memory file of a server's variables has version {}, this program reads version {}; start the "
        "job "
        "anew, with one version of Cohort",
        beginning->version, kStoreVersion);
  }
  const std::uint64_t bytes = file_bytes();
  const std::uint64_t reserved = beginning->reserved_bytes;
  if (bytes < kBlocksBegin || reserved < bytes || reserved > kLargestReserve || reserved % kPage != 0) {
    throw DataLoss("the memory file of a server's variables is damaged: {} bytes, of {} reserved", bytes,
                   reserved);
  }
  if (!map(reserved, access)) {
    throw Unavailable("cannot map {} MiB of a server's variables: {}; is the address space limited?",
                      reserved >> 20, std::strerror(errno));
  }
}

void StoreMapping::back_with_pages(std::uint64_t begin, std::uint64_t bytes, std::string_view purpose) const {
  if (bytes == 0) return;
  const std::uint64_t room = begin < reserved_bytes() ? reserved_bytes() - begin : 0;
  if (bytes > room) {
    throw Unavailable(
        "a server's memory is short: {} takes {} bytes, and {} are left of the {} that its file can have; "
        "use more servers, or partition it",
        purpose, bytes, room, reserved_bytes());
  }
  const std::size_t available = available_memory();
  if (bytes > available) {
    throw Unavailable(
        "a server's memory is short: {} takes {} bytes, and {} are left on this machine; use more servers, "
        "or "
        "partition it",
        purpose, bytes, available);
  }
  const std::uint64_t before = file_bytes();
  for (std::uint64_t at = begin; at < begin + bytes; at += kPagesAtATime) {
    const std::uint64_t part = std::min(kPagesAtATime, begin + bytes - at);
    int result = 0;
    do {
      result = ::fallocate(file_.get(), 0, static_cast<off_t>(at), static_cast<off_t>(part));
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
      const std::string reason = std::strerror(errno);
      if (file_bytes() > before) shrink(before);
      throw Unavailable("a server's memory is short: {} takes {} bytes: {}", purpose, bytes, reason);
    }
  }
  use_huge_pages(begin, bytes);
}

/// Random rows of a large table would wait for page tables, too. A kernel that cannot leaves things as they
/// are.
void StoreMapping::use_huge_pages(std::uint64_t begin, std::uint64_t bytes) const {
  const std::uint64_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uint64_t end = (begin + bytes) / kHugePage * kHugePage;
  if (first < end && config().huge_pages())
    static_cast<void>(::madvise(base() + first, end - first, MADV_COLLAPSE));
}

void StoreMapping::shrink(std::uint64_t size) const {
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
    throw Unavailable("cannot give back memory of a server's variables: {}", std::strerror(errno));
}

Shape checked_shape(const VariableEntry& entry, std::uint64_t variable, std::uint64_t file_bytes) {
  const auto damaged = [&](std::string_view what) {
    return DataLoss("the memory of a server's variables is damaged: variable {} has {}", variable, what);
  };
  if (entry.dtype >= kAllDTypes.size()) throw damaged("no dtype");
  if (entry.rank > Shape::kLargestRank) throw damaged("too many axes");
  const auto shape = [&] {
    try {
      return Shape(std::span(entry.extents).first(entry.rank));
    } catch (const InvalidArgument&) {
      throw damaged("no shape");
    }
  }();
  const std::uint64_t element = size_of(static_cast<DType>(entry.dtype));
  const std::uint64_t rows = entry.rank == 0 ? 0 : static_cast<std::uint64_t>(entry.extents[0]);
  if (shape.elements() > file_bytes / element || entry.bytes != shape.elements() * element ||
      entry.row_bytes != (rows == 0 ? 0 : entry.bytes / rows)) {
    throw damaged("another size than its shape");
  }
  const auto has_copies_at = [&](std::uint64_t first) {
    return first % kBlockAlignment == 0 &&
           StoreMapping::in_blocks(first, 2 * copy_stride(entry.bytes), file_bytes);
  };
  const std::uint32_t slots = entry.slots.load(std::memory_order_acquire);
  if (slots > kMostSlots) throw damaged("too many slots");
  if (!has_copies_at(entry.value) || !std::ranges::all_of(std::span(entry.slot).first(slots), has_copies_at))
    throw damaged("values outside of the file");
  if (!StoreMapping::in_blocks(entry.name, entry.name_bytes, file_bytes)) throw damaged("no name");
  return shape;
}

}  // namespace cohort::server
