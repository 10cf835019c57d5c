#include "store_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

#include "device/memory_limits.h"
#include "server/store/store_layout.h"

namespace cohort::server {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;

std::uint64_t size_of_file(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0)
    throw Unavailable("the memory of a server's variables cannot be copied: {}", std::strerror(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

template <class... Args>
DataLoss damaged(fmt::format_string<Args...> format, Args&&... args) {
  return DataLoss("the copy of a server's variables is damaged: {}",
                  fmt::format(format, std::forward<Args>(args)...));
}

Unavailable short_of_memory(std::uint64_t bytes, std::string_view why) {
  return Unavailable(
      "memory is short for the second copy of a server's variables, which takes {} bytes: {}; give its host "
      "more memory, use more servers, or start the job with --copies 1",
      bytes, why);
}

}  // namespace

StoreCopySource::StoreCopySource(const Store& store)
    : file_(store.descriptor()),
      plan_{.identity = store.identity(), .file_bytes = size_of_file(file_), .variables = store.size()} {}

std::optional<StoreChunk> StoreCopySource::next() {
  const off_t data = ::lseek(file_, static_cast<off_t>(position_), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return std::nullopt;
  const off_t hole = data < 0 ? data : ::lseek(file_, data, SEEK_HOLE);
  if (hole < 0)
    throw Unavailable("the memory of a server's variables cannot be copied: {}", std::strerror(errno));
  const auto begin = static_cast<std::uint64_t>(data);
  const std::uint64_t end =
      std::min({static_cast<std::uint64_t>(hole), begin + kChunkBytes, plan_.file_bytes});
  if (begin >= end) return std::nullopt;
  StoreChunk chunk{.position = begin, .bytes = std::vector<std::byte>(end - begin)};
  for (std::uint64_t at = begin; at < end;) {
    const ssize_t read = ::pread(file_, chunk.bytes.data() + (at - begin), end - at, static_cast<off_t>(at));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0)
      throw Unavailable("the memory of a server's variables cannot be copied: {}", std::strerror(errno));
    at += static_cast<std::uint64_t>(read);
  }
  position_ = end;
  bytes_ += end - begin;
  return chunk;
}

StoreCopyTarget::StoreCopyTarget(int file, const StoreCopyPlan& plan) : file_(file), plan_(plan) {
  if (plan.file_bytes < kBlocksBegin || plan.variables > kMostVariables)
    throw damaged("{} bytes with {} variables are none of a server", plan.file_bytes, plan.variables);
  if (::ftruncate(file_, 0) != 0 || ::ftruncate(file_, static_cast<off_t>(plan.file_bytes)) != 0)
    throw short_of_memory(plan.file_bytes, std::strerror(errno));
  const std::uint64_t in_blocks = plan.file_bytes - kBlocksBegin;
  if (const std::size_t available = available_memory(); in_blocks > available)
    throw short_of_memory(plan.file_bytes, fmt::format("{} are left on this machine", available));
  // The store takes what lies in its file for its own: a first touch must not end the process.
  back_with_pages(kChangesBegin, plan.variables * sizeof(RecordedChange));
  back_with_pages(kBlocksBegin, in_blocks);
}

void StoreCopyTarget::back_with_pages(std::uint64_t begin, std::uint64_t bytes) const {
  for (std::uint64_t at = begin; at < begin + bytes; at += kChunkBytes) {
    const std::uint64_t part = std::min(kChunkBytes, begin + bytes - at);
    while (::fallocate(file_, 0, static_cast<off_t>(at), static_cast<off_t>(part)) != 0) {
      if (errno != EINTR) throw short_of_memory(plan_.file_bytes, std::strerror(errno));
    }
  }
}

void StoreCopyTarget::write(std::uint64_t position, std::span<const std::byte> bytes) {
  if (position < position_ || position > plan_.file_bytes || bytes.size() > plan_.file_bytes - position) {
    throw damaged("{} bytes at {} do not follow those before {} in a file of {}", bytes.size(), position,
                  position_, plan_.file_bytes);
  }
  position_ = position + bytes.size();
  bytes_ += bytes.size();
  if (position == 0) {
    const std::size_t in_page = std::min(bytes.size(), kPage);
    header_page_.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(in_page));
    bytes = bytes.subspan(in_page);
    position = in_page;
  }
  put(position, bytes);
}

void StoreCopyTarget::put(std::uint64_t position, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(position));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw short_of_memory(plan_.file_bytes, std::strerror(errno));
    position += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void StoreCopyTarget::finish(std::uint64_t bytes) {
  if (bytes != bytes_) throw damaged("{} bytes of {} have come", bytes_, bytes);
  if (header_page_.size() != kPage) throw damaged("it has no beginning");
  std::uint64_t magic = 0;
  std::uint64_t identity = 0;
  std::memcpy(&magic, header_page_.data() + offsetof(StoreHeader, magic), sizeof magic);
  std::memcpy(&identity, header_page_.data() + offsetof(StoreHeader, identity), sizeof identity);
  if (magic != kStoreMagic || identity != plan_.identity) throw damaged("its beginning is that of no store");
  put(0, header_page_);
}

}  // namespace cohort::server
