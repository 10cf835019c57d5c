#include "nccl_comm.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "nccl_stand_in.h"

// Of the stand-in for CUDA, which is loaded first; see stand_in.h.
extern "C" bool gpu_stand_in_give_to_graph(cudaStream_t stream, void* data, void (*destroy)(void*));
extern "C" void gpu_stand_in_touch(int device, const void* data);
extern "C" void* gpu_stand_in_enter_graph(cudaStream_t stream);
extern "C" void gpu_stand_in_leave_graph(void* entered);

namespace nccl_stand_in {
namespace {

constexpr std::chrono::milliseconds kNap{1};
constexpr int kQuestionsPerLaunch = 3;

struct Faults {
  std::mutex mutex;
  std::map<int, int> by_rank;
};

Faults& faults() {
  static Faults& instance = *new Faults;
  return instance;
}

/// The communicators of this process, and how many launches each of its GPUs has had.
struct Known {
  std::mutex mutex;
  std::vector<std::weak_ptr<State>> states;
  std::map<int, std::uint64_t> launches;
};

Known& known() {
  static Known& instance = *new Known;
  return instance;
}

std::atomic<int> communicators{0};
std::atomic<bool> waits_for_threads{false};

/// Whether rank `peer` of `own`, which has made this launch as well, had as many launches of `other` before
/// it.
bool has_same_order(const Arena& own, const Arena& other, int peer, std::uint64_t launch) {
  const int there = own.rank_in(other, peer);
  const LaunchRecord& its = own.launches(peer);
  if (own.is_aborted() || other.is_aborted()) return true;
  if (peer == own.rank() || there < 0 || !its.remembers(launch)) return true;
  const LaunchRecord& its_other = other.launches(there);
  std::uint64_t before = its_other.made;
  while (before > 0 && its_other.remembers(before - 1) && its_other.number(before - 1) > its.number(launch))
    --before;
  if (before > 0 && !its_other.remembers(before - 1)) return true;
  return before == other.launches(other.rank()).made;
}

Introduction introduce() {
  Introduction own{};
  int device = 0;
  static_cast<void>(cudaGetDevice(&device));
  own.process = ::getpid();
  own.device = device;
  static_cast<void>(cudaDeviceGetPCIBusId(own.gpu.data(), static_cast<int>(own.gpu.size()), device));
  if (const char* const host = std::getenv("NCCL_HOSTID"))
    std::snprintf(own.host.data(), own.host.size(), "%s", host);
  return own;
}

bool is_lost(int rank) {
  const char* const lost = std::getenv("NCCL_STAND_IN_LOST");
  return lost != nullptr && lost == std::to_string(rank);
}

/// Within a process a rank's kernel writes to where its peers' results belong (NCCL_DIRECT_WRITE; up to NCCL
/// 2.22.3 whatever memory that is), if its GPU reaches theirs.
void let_peers_touch(const Arena& arena, const Exchange& exchange) {
  const Introduction& own = arena.introduction(arena.rank());
  for (int rank = 0; rank < arena.size(); ++rank) {
    const Introduction& peer = arena.introduction(rank);
    int reaches = 0;
    if (peer.process != own.process || peer.device == own.device ||
        cudaDeviceCanAccessPeer(&reaches, peer.device, own.device) != cudaSuccess || reaches == 0)
      continue;
    for (const void* const result : exchange.results) gpu_stand_in_touch(peer.device, result);
    for (const Exchange::Piece& piece : exchange.receives) {
      cudaPointerAttributes attributes{};
      if (piece.peer == rank && piece.bytes > 0 &&
          cudaPointerGetAttributes(&attributes, piece.data) == cudaSuccess &&
          attributes.type == cudaMemoryTypeDevice)
        gpu_stand_in_touch(peer.device, piece.data);
    }
  }
}

/// What runs on a stream, and once more in each launch of a graph.
struct Kernel {
  std::shared_ptr<State> state;
  Exchange exchange;

  void run(int fault) const {
    if (fault == static_cast<int>(NcclFault::kAsyncError)) {
      const std::lock_guard lock(state->mutex);
      state->last_error = "a fault was injected";
      state->failure = ncclRemoteError;
    }
    while (fault != 0 && !state->aborted) std::this_thread::sleep_for(kNap);
    {
      const std::lock_guard lock(state->mutex);
      if (state->aborted) return;  // the memory may be another's already
      let_peers_touch(*state->arena, exchange);
    }
    static_cast<void>(exchange.execute(*state->arena, state->aborted));
  }
};

/// Takes the fault of the next launch that runs, if there is one.
int take_launch_fault(const State& state) {
  return take_fault(state.arena->rank(),
                    {static_cast<int>(NcclFault::kNeverTakesPart), static_cast<int>(NcclFault::kAsyncError)});
}

}  // namespace

void give_up(const char* why) {
  std::fprintf(stderr, "NCCL stand-in: %s\n", why);
  std::abort();
}

int take_fault(int rank, std::initializer_list<int> kinds) {
  const std::lock_guard lock(faults().mutex);
  const auto found = faults().by_rank.find(rank);
  if (found == faults().by_rank.end() || std::ranges::count(kinds, found->second) == 0) return 0;
  const int fault = found->second;
  faults().by_rank.erase(found);
  return fault;
}

}  // namespace nccl_stand_in

using namespace nccl_stand_in;

#pragma GCC visibility push(default)
extern "C" void nccl_stand_in_inject(int rank, int fault) {
  const std::lock_guard lock(faults().mutex);
  faults().by_rank[rank] = fault;
}

extern "C" int nccl_stand_in_communicators() { return communicators; }

extern "C" int nccl_stand_in_launches(int rank) {
  const std::lock_guard lock(known().mutex);
  int launches = 0;
  for (const auto& state : known().states) {
    const std::shared_ptr<State> own = state.lock();
    if (own != nullptr && own->arena != nullptr && own->arena->rank() == rank) launches += own->running;
  }
  return launches;
}

extern "C" void nccl_stand_in_wait_for_threads(bool wanted) { waits_for_threads = wanted; }
#pragma GCC visibility pop

ncclComm::ncclComm(bool is_blocking) : blocking(is_blocking) { ++communicators; }

ncclComm::~ncclComm() {
  if (thread_.joinable()) thread_.join();
  --communicators;
  forget_registrations(this);
}

void ncclComm::meet(const std::string& name, int rank, int size, std::function<void()> in_the_end) {
  const int fault = take_fault(
      rank, {static_cast<int>(NcclFault::kInitNeverEnds), static_cast<int>(NcclFault::kInitFails)});
  meeting_ = true;
  const Introduction own = introduce();
  thread_ = std::thread([=, this, in_the_end = std::move(in_the_end)] {
    if (fault == static_cast<int>(NcclFault::kInitFails)) {
      refuse(ncclSystemError, "a fault was injected into the meeting");
    } else {
      while (fault != 0 && !state->aborted) std::this_thread::sleep_for(kNap);
      state->arena = std::make_unique<Arena>(name, rank, size, own);
      while (!state->aborted && !state->arena->all_are_here()) std::this_thread::sleep_for(kNap);
      if (!state->aborted && state->arena->shares_a_gpu()) refuse(ncclInvalidUsage, "Duplicate GPU detected");
    }
    if (!state->aborted) {
      const std::lock_guard lock(known().mutex);
      std::erase_if(known().states, [](const auto& other) { return other.expired(); });
      known().states.push_back(state);
    }
    if (!state->aborted) in_the_end();
    meeting_ = false;
  });
}

ncclResult_t ncclComm::wait_for_meeting() {
  thread_.join();
  return state->failure;
}

void ncclComm::split(int color, int key, ncclComm_t* made) {
  if (thread_.joinable()) thread_.join();
  meeting_ = true;
  const std::uint64_t number = splits_++;
  const int fault = take_fault(state->arena->rank(), {static_cast<int>(NcclFault::kSplitNeverEnds)});
  int device = 0;
  static_cast<void>(cudaGetDevice(&device));
  thread_ = std::thread([=, this] {
    static_cast<void>(cudaSetDevice(device));
    const Arena& arena = *state->arena;
    // Zero means no answer yet, and no color is the largest value.
    const auto word = [](int its_color, int its_key) {
      return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(its_color)) << 32 |
              static_cast<std::uint32_t>(its_key)) +
             1;
    };
    arena.answer(number, arena.rank()) = word(color, key);
    std::vector<std::pair<std::uint64_t, int>> members;  // by key, then by rank
    for (int rank = 0; rank < arena.size(); ++rank) {
      while (arena.answer(number, rank) == 0) {
        if (state->aborted) return;
        std::this_thread::sleep_for(kNap);
      }
      const std::uint64_t answer = arena.answer(number, rank) - 1;
      if (answer >> 32 == static_cast<std::uint32_t>(color)) members.emplace_back(answer, rank);
    }
    std::ranges::sort(members);
    if (color == NCCL_SPLIT_NOCOLOR) {
      *made = nullptr;
    } else {
      const auto own = std::ranges::find(members, arena.rank(), &std::pair<std::uint64_t, int>::second);
      *made = new ncclComm(blocking);
      (*made)->meet(arena.name() + "." + std::to_string(number) + "." + std::to_string(color),
                    static_cast<int>(own - members.begin()), static_cast<int>(members.size()));
    }
    while (fault != 0 && !state->aborted) std::this_thread::sleep_for(kNap);
    meeting_ = false;
  });
}

void ncclComm::register_window(std::uint64_t bytes, std::uint64_t others, std::function<void()> in_the_end) {
  if (thread_.joinable()) thread_.join();
  meeting_ = true;
  const std::uint64_t number = ++windows_;
  const int fault = take_fault(state->arena->rank(), {static_cast<int>(NcclFault::kWindowFails)});
  thread_ = std::thread([=, this, in_the_end = std::move(in_the_end)] {
    const Arena& arena = *state->arena;
    if (fault != 0) {
      refuse(ncclSystemError, "a fault was injected into the window");
    } else {
      WindowOffer& own = arena.offer(number, arena.rank());
      own.bytes = bytes;
      own.others = others;
      own.number = number;
      for (int rank = 0; rank < arena.size(); ++rank) {
        const WindowOffer& offer = arena.offer(number, rank);
        while (offer.number != number) {
          if (state->aborted) return;
          std::this_thread::sleep_for(kNap);
        }
        if (offer.bytes != bytes) refuse(ncclInvalidUsage, "the windows of the ranks differ in size");
        if (offer.others != others) refuse(ncclInvalidUsage, "the ranks have different windows already");
      }
      if (state->failure == ncclSuccess) in_the_end();
    }
    meeting_ = false;
  });
}

void ncclComm::launch(Exchange exchange, cudaStream_t stream) {
  launches_.push_back({std::move(exchange), stream});
  asked_ = 0;
  if (!blocking) {
    if (void* const entered = gpu_stand_in_enter_graph(stream))
      launches_.back().graph = std::shared_ptr<void>(entered, gpu_stand_in_leave_graph);
    return;
  }
  for (Launch& launch : launches_) put_on_stream(std::move(launch));
  launches_.clear();
}

/// Collectives of two communicators that begin in different orders on two GPUs may wait for each other.
void ncclComm::note_order(cudaStream_t stream) {
  int device = 0;
  static_cast<void>(cudaStreamGetDevice(stream, &device));
  const Arena& own = *state->arena;
  const std::lock_guard lock(known().mutex);
  LaunchRecord& record = own.launches(own.rank());
  const std::uint64_t launch = record.made;
  record.add(++known().launches[device]);
  for (const auto& entry : known().states) {
    const std::shared_ptr<State> other = entry.lock();
    if (other == nullptr || other == state || own.rank_in(*other->arena, own.rank()) != other->arena->rank())
      continue;
    for (int peer = 0; peer < own.size(); ++peer) {
      if (!has_same_order(own, *other->arena, peer, launch))
        give_up("the launches of two communicators come in different orders on two GPUs");
    }
  }
}

void ncclComm::put_on_stream(Launch launch) {
  launch.graph = nullptr;
  auto kernel = std::make_unique<Kernel>(Kernel{state, std::move(launch.exchange)});
  // One that a graph has runs in each launch of it, and the communicator goes after the graph.
  if (gpu_stand_in_give_to_graph(launch.stream, kernel.get(), [](void* data) {
        const std::unique_ptr<Kernel> own(static_cast<Kernel*>(data));
        --own->state->graphs;
      })) {
    ++state->graphs;
    static_cast<void>(cudaLaunchHostFunc(
        launch.stream,
        [](void* data) {
          const auto& own = *static_cast<Kernel*>(data);
          own.run(take_launch_fault(*own.state));
        },
        kernel.release()));
    return;
  }
  note_order(launch.stream);
  ++state->running;
  struct Started {
    std::unique_ptr<Kernel> kernel;
    int fault;
  };
  const int fault = blocking && is_lost(state->arena->rank()) ? static_cast<int>(NcclFault::kNeverTakesPart)
                                                              : take_launch_fault(*state);
  auto started = std::make_unique<Started>(Started{std::move(kernel), fault});
  static_cast<void>(cudaLaunchHostFunc(
      launch.stream,
      [](void* data) {
        const std::unique_ptr<Started> own(static_cast<Started*>(data));
        own->kernel->run(own->fault);
        --own->kernel->state->running;
      },
      started.release()));
}

void ncclComm::close() {
  if (meeting_ || state->arena == nullptr) return;
  state->arena->close();
  while (!state->arena->others_have_closed(waits_for_threads)) std::this_thread::sleep_for(kNap);
}

void ncclComm::abort() {
  state->aborted = true;
  { const std::lock_guard kernels_have_seen_it(state->mutex); }
  const std::lock_guard lock(calls_);
  if (thread_.joinable()) thread_.join();
  if (state->arena != nullptr) state->arena->abort();
  close();
  while (state->graphs > 0) std::this_thread::sleep_for(kNap);
}

bool ncclComm::is_busy() { return meeting_ || !launches_.empty(); }

ncclResult_t ncclComm::progress() {
  const std::lock_guard lock(calls_);
  if (meeting_) return ncclInProgress;
  if (state->failure != ncclSuccess) return state->failure;
  if (!launches_.empty()) {
    if (++asked_ < kQuestionsPerLaunch) return ncclInProgress;
    for (Launch& launch : launches_) put_on_stream(std::move(launch));
    launches_.clear();
  }
  return finalizing_ && (state->running > 0 || state->graphs > 0) ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclComm::refuse(ncclResult_t result, const std::string& why) {
  const std::lock_guard lock(state->mutex);
  state->last_error = why;
  if (meeting_) state->failure = result;
  return result;
}
