#include "nccl_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace nccl_stand_in {

struct Arena::Header {
  std::atomic<std::uint32_t> arrived;
  std::array<Introduction, kMostRanks> introductions;
  std::array<std::array<std::atomic<std::uint64_t>, kMostRanks>, kSplitsRemembered> answers;
  std::array<std::array<WindowOffer, kMostRanks>, kWindowsRemembered> offers;
  std::array<LaunchRecord, kMostRanks> launches;
  std::array<std::atomic<int>, kMostRanks> processes;
  std::array<std::atomic<bool>, kMostRanks> closed;
  std::atomic<bool> aborted;
};

namespace {

[[noreturn]] void give_up_for_errno(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

Arena::Arena(std::string name, int rank, int size, const Introduction& own)
    : name_(std::move(name)),
      rank_(rank),
      size_(size),
      bytes_(sizeof(Header) + static_cast<std::size_t>(size * size) * sizeof(Channel)) {
  const int file = ::shm_open(name_.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes_)) != 0)
    give_up_for_errno("shared memory of the stand-in");
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) give_up_for_errno("shared memory of the stand-in");
  ::close(file);
  header_ = static_cast<Header*>(memory);  // new memory is zero, as all of it begins
  header_->introductions[static_cast<std::size_t>(rank)] = own;
  header_->processes[static_cast<std::size_t>(rank)] = ::getpid();
  header_->arrived.fetch_add(1);
}

Arena::~Arena() {
  if (named_) ::shm_unlink(name_.c_str());
  ::munmap(header_, bytes_);
}

bool Arena::all_are_here() {
  if (header_->arrived.load() != static_cast<std::uint32_t>(size_)) return false;
  if (named_) ::shm_unlink(name_.c_str());
  named_ = false;
  return true;
}

bool Arena::shares_a_gpu() const {
  for (int rank = 0; rank < size_; ++rank) {
    for (int other = 0; other < rank; ++other) {
      const Introduction& a = header_->introductions[static_cast<std::size_t>(rank)];
      const Introduction& b = header_->introductions[static_cast<std::size_t>(other)];
      if (a.gpu == b.gpu && a.host == b.host) return true;
    }
  }
  return false;
}

const Introduction& Arena::introduction(int rank) const {
  return header_->introductions[static_cast<std::size_t>(rank)];
}

LaunchRecord& Arena::launches(int rank) const { return header_->launches[static_cast<std::size_t>(rank)]; }

int Arena::rank_in(const Arena& other, int rank) const {
  const Introduction& own = header_->introductions[static_cast<std::size_t>(rank)];
  for (int there = 0; there < other.size_; ++there) {
    const Introduction& its = other.header_->introductions[static_cast<std::size_t>(there)];
    if (its.gpu == own.gpu && its.host == own.host) return there;
  }
  return -1;
}

void Arena::abort() const { header_->aborted = true; }

bool Arena::is_aborted() const { return header_->aborted; }

void Arena::close() { header_->closed[static_cast<std::size_t>(rank_)] = true; }

bool Arena::others_have_closed(bool threads_count) const {
  if (header_->arrived.load() != static_cast<std::uint32_t>(size_)) return true;  // nothing is connected
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_); ++rank) {
    const int process = header_->processes[rank];
    if (header_->closed[rank] || (process == ::getpid() && !threads_count)) continue;
    const bool is_gone = ::kill(process, 0) != 0 && errno == ESRCH;
    if (!is_gone) return false;
  }
  return true;
}

Channel& Arena::channel(int from, int to) const {
  auto* const channels = reinterpret_cast<Channel*>(header_ + 1);
  return channels[from * size_ + to];
}

std::atomic<std::uint64_t>& Arena::answer(std::uint64_t split, int rank) const {
  return header_->answers[split % kSplitsRemembered][static_cast<std::size_t>(rank)];
}

WindowOffer& Arena::offer(std::uint64_t window, int rank) const {
  return header_->offers[window % kWindowsRemembered][static_cast<std::size_t>(rank)];
}

}  // namespace nccl_stand_in
