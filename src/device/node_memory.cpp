#include "node_memory.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "node_heap.h"

namespace cohort {

const std::uint64_t& memory_nonce() {
  static const std::uint64_t nonce = [] {
    std::uint64_t value = 0;
    if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) value = 0;
    return value;
  }();
  return nonce;
}

bool memory_can_be_read(pid_t pid, std::uint64_t address, std::uint64_t nonce) {
  std::uint64_t value = 0;
  return read_process_memory(pid, address, std::as_writable_bytes(std::span(&value, 1))) && value == nonce;
}

bool read_process_memory(pid_t pid, std::uint64_t address, std::span<std::byte> destination) {
  // It may copy less than asked for; then it goes on where it stopped.
  while (!destination.empty()) {
    const iovec here{destination.data(), destination.size()};
    const iovec there{reinterpret_cast<void*>(address), destination.size()};
    const ssize_t copied = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (copied == 0) errno = EFAULT;
    if (copied <= 0) return false;
    address += static_cast<std::uint64_t>(copied);
    destination = destination.subspan(static_cast<std::size_t>(copied));
  }
  return true;
}

void permit_neighbours_to_read() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (file >> scope && scope == 1) static_cast<void>(::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0));
}

namespace {

/// What a worker tells its neighbours, sent as raw bytes, since the same program runs on both sides.
struct Introduction {
  std::int64_t pid = ::getpid();
  std::uint64_t heap_bytes = 0;
  const std::uint64_t* nonce_address = &memory_nonce();
  std::uint64_t nonce = memory_nonce();
  cpu_set_t cores{};
};

struct Verdict {
  bool shares = false;
  bool copies = false;
};

template <class T>
std::string to_blob(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T from_blob(const std::string& blob) {
  COHORT_CHECK(blob.size() == sizeof(T));
  T value;
  std::memcpy(static_cast<void*>(&value), blob.data(), sizeof value);
  return value;
}

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

MappedRange map_heap(int descriptor, std::size_t bytes) {
  MappedRange heap(descriptor, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE);
  if (!heap) return heap;
  static_cast<void>(madvise(heap.data(), bytes, MADV_DONTDUMP));
  static_cast<void>(madvise(heap.data(), bytes, MADV_DONTFORK));
  return heap;
}

/// process_vm_readv and _writev may copy less than asked for; then the copy goes on where they stopped.
template <class Transfer>
void copy_all(Transfer transfer, int worker, std::byte* local, std::byte* remote, std::size_t bytes) {
  while (bytes > 0) {
    const iovec here{local, bytes};
    const iovec there{remote, bytes};
    const ssize_t copied = transfer(here, there);
    if (copied <= 0) {
      throw Unavailable("worker {}'s memory cannot be reached: {}", worker,
                        copied == 0 ? "nothing was copied" : std::strerror(errno));
    }
    local += copied;
    remote += copied;
    bytes -= static_cast<std::size_t>(copied);
  }
}

}  // namespace

std::shared_ptr<const NodeMemory> NodeMemory::of_this_process_alone() {
  static const std::shared_ptr<const NodeMemory> alone = [] {
    std::shared_ptr<NodeMemory> memory(new NodeMemory(0, 1));
    const cpu_set_t cores = own_cores();
    memory->cores_ = CPU_COUNT(&cores);
    memory->shared_ = memory->single_copy_ = true;
    if (const NodeHeap* heap = NodeHeap::of_this_process()) memory->neighbours_.front().heap = heap->base();
    return memory;
  }();
  return alone;
}

std::shared_ptr<const NodeMemory> NodeMemory::connect(int rank, std::span<const WorkerInfo> workers,
                                                      const BlobExchange& exchange) {
  std::shared_ptr<NodeMemory> memory(new NodeMemory(rank, workers.size()));
  NodeHeap* heap = NodeHeap::of_this_process();
  Introduction own;
  own.cores = own_cores();
  own.heap_bytes = heap == nullptr ? 0 : heap->bytes();
  const std::vector<std::string> blobs = exchange(to_blob(own));

  std::vector<int> peers;
  for (const WorkerInfo& worker : workers) {
    if (worker.node != workers[static_cast<std::size_t>(rank)].node || worker.rank == rank) continue;
    peers.push_back(worker.rank);
    const auto peer = from_blob<Introduction>(blobs[static_cast<std::size_t>(worker.rank)]);
    Neighbour& neighbour = memory->neighbours_[static_cast<std::size_t>(worker.rank)];
    neighbour.pid = peer.pid;
    neighbour.heap_bytes = peer.heap_bytes;
    neighbour.cores = peer.cores;
  }
  memory->neighbours_[static_cast<std::size_t>(rank)].cores = own.cores;
  memory->count_cores(peers);
  if (heap != nullptr) memory->neighbours_[static_cast<std::size_t>(rank)].heap = heap->base();

  const std::vector<int> silent =
      exchange_descriptors({.rank = rank, .peers = peers, .exchange = exchange},
                           heap == nullptr ? -1 : heap->descriptor(), [&](int peer, int descriptor) {
                             Neighbour& neighbour = memory->neighbours_[static_cast<std::size_t>(peer)];
                             neighbour.mapping = map_heap(descriptor, neighbour.heap_bytes);
                             neighbour.heap = neighbour.mapping.data();
                           });

  const auto is_mapped = [&](int peer) {
    return memory->neighbours_[static_cast<std::size_t>(peer)].heap != nullptr;
  };
  const bool shares = heap != nullptr && silent.empty() && std::all_of(peers.begin(), peers.end(), is_mapped);
  // One verdict for the whole node, so that all its workers choose alike.
  const auto agree = [&](Verdict verdict) {
    const std::vector<std::string> verdicts = exchange(to_blob(verdict));
    for (const int peer : peers) {
      const auto other = from_blob<Verdict>(verdicts[static_cast<std::size_t>(peer)]);
      verdict.shares = verdict.shares && other.shares;
      verdict.copies = verdict.copies && other.copies;
    }
    // All workers of all nodes must take the same branch, since the exchange is collective.
    const bool all_copy = std::all_of(verdicts.begin(), verdicts.end(), [](const std::string& blob) {
      return from_blob<Verdict>(blob).copies;
    });
    return std::pair(verdict, all_copy);
  };
  auto [verdict, all_copy] = agree({shares, memory->read_nonces(peers, blobs)});
  if (!all_copy) {
    permit_neighbours_to_read();
    static_cast<void>(exchange(""));  // wait until all have permitted it
    verdict = agree({shares, memory->read_nonces(peers, blobs)}).first;
  }
  memory->shared_ = verdict.shares;
  memory->single_copy_ = verdict.copies;
  const bool is_first = std::ranges::none_of(peers, [&](int peer) { return peer < rank; });
  if (memory->shared_ && is_first) heap->warn_of_page_tables(static_cast<int>(peers.size()) + 1);
  if (!peers.empty() && !memory->shared_) {
    logging::warning(
        "the workers of this node cannot map each other's memory; each is a node of its own in collectives");
  }
  return memory;
}

std::shared_ptr<const NodeMemory> NodeMemory::of_group(const std::shared_ptr<const NodeMemory>& all,
                                                       std::span<const int> ranks, int own) {
  std::shared_ptr<NodeMemory> memory(new NodeMemory(own, ranks.size()));
  memory->owner_ = all;
  memory->shared_ = all->shared_;
  memory->single_copy_ = all->single_copy_;
  std::vector<int> neighbours;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Neighbour& known = all->neighbours_[static_cast<std::size_t>(ranks[i])];
    Neighbour& neighbour = memory->neighbours_[i];
    neighbour.heap = known.heap;
    neighbour.heap_bytes = known.heap_bytes;
    neighbour.pid = known.pid;
    neighbour.cores = known.cores;
    if (static_cast<int>(i) != own && known.pid != 0) neighbours.push_back(static_cast<int>(i));
  }
  memory->count_cores(neighbours);
  return memory;
}

/// Of this process and its neighbours.
void NodeMemory::count_cores(std::span<const int> neighbours) {
  const cpu_set_t own = neighbours_[static_cast<std::size_t>(rank_)].cores;
  cpu_set_t all = own;
  core_sharers_ = {};
  for (const int worker : neighbours) {
    const cpu_set_t& cores = neighbours_[static_cast<std::size_t>(worker)].cores;
    CPU_OR(&all, &all, &cores);
    if (!CPU_EQUAL(&own, &cores)) continue;
    ++core_sharers_.count;
    if (worker < rank_) ++core_sharers_.own_index;
  }
  cores_ = CPU_COUNT(&all);
}

bool NodeMemory::read_nonces(std::span<const int> peers, std::span<const std::string> blobs) const {
  return std::all_of(peers.begin(), peers.end(), [&](int peer) {
    const auto introduction = from_blob<Introduction>(blobs[static_cast<std::size_t>(peer)]);
    return memory_can_be_read(static_cast<pid_t>(introduction.pid),
                              reinterpret_cast<std::uint64_t>(introduction.nonce_address),
                              introduction.nonce);
  });
}

void NodeMemory::copy_from(int worker, const std::byte* remote, std::byte* local, std::size_t bytes) const {
  const auto pid = static_cast<pid_t>(neighbours_[static_cast<std::size_t>(worker)].pid);
  copy_all(
      [&](const iovec& here, const iovec& there) { return process_vm_readv(pid, &here, 1, &there, 1, 0); },
      worker, local, const_cast<std::byte*>(remote), bytes);
}

void NodeMemory::copy_to(int worker, std::byte* remote, const std::byte* local, std::size_t bytes) const {
  const auto pid = static_cast<pid_t>(neighbours_[static_cast<std::size_t>(worker)].pid);
  copy_all(
      [&](const iovec& here, const iovec& there) { return process_vm_writev(pid, &here, 1, &there, 1, 0); },
      worker, const_cast<std::byte*>(local), remote, bytes);
}

}  // namespace cohort
