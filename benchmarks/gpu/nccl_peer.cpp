#include "peer.h"

#include <array>
#include <cstring>
#include <exception>
#include <vector>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>
#include <cohort/nccl/library.h>

#include "errors.h"
#include "nccl/calls.h"
#include "nccl/launch.h"

namespace cohort::bench {
namespace {

namespace calls = nccl::calls;

/// The arguments of a call. What is only moved goes as bytes.
struct NcclCall {
  ncclComm_t comm = nullptr;
  cuda::StreamHandle stream = nullptr;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  Role role;
  std::size_t element_bytes = 1;
  bool in_place = false;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::vector<std::size_t> counts = {};  ///< of an uneven division

  [[nodiscard]] std::size_t bytes() const { return role.elements * element_bytes; }
  [[nodiscard]] std::size_t block_bytes() const { return role.block() * element_bytes; }

  /// Block `member` of what begins at `data`.
  [[nodiscard]] std::byte* block(std::byte* data, int member) const {
    return data + static_cast<std::size_t>(member) * block_bytes();
  }
  void send(const std::byte* data, int member) const {
    calls::send(data, block_bytes(), ncclUint8, member, comm, stream);
  }
  void receive(std::byte* data, int member) const {
    calls::receive(data, block_bytes(), ncclUint8, member, comm, stream);
  }
  /// In place, the root's own block is where it belongs.
  [[nodiscard]] bool stays(int member) const { return in_place && role.is_root() && member == kRoot; }
};

void all_reduce(const NcclCall& c) {
  calls::all_reduce(c.input, c.output, c.role.elements, c.type, c.op, c.comm, c.stream);
}

void reduce(const NcclCall& c) {
  calls::reduce(c.input, c.output, c.role.elements, c.type, c.op, kRoot, c.comm, c.stream);
}

void broadcast(const NcclCall& c) {
  calls::broadcast(c.output, c.output, c.bytes(), ncclUint8, kRoot, c.comm, c.stream);
}

void all_gather(const NcclCall& c) {
  calls::all_gather(c.input, c.output, c.block_bytes(), ncclUint8, c.comm, c.stream);
}

void reduce_scatter(const NcclCall& c) {
  calls::reduce_scatter(c.input, c.output, c.role.block(), c.type, c.op, c.comm, c.stream);
}

// The oldest NCCL that Cohort takes has no functions for these: groups of others, as NCCL's own tests do it.

void all_gather_uneven(const NcclCall& c) {
  calls::group_start();
  std::byte* part = c.output;
  for (int member = 0; member < c.role.members; ++member) {
    const std::size_t bytes = c.counts[static_cast<std::size_t>(member)] * c.element_bytes;
    if (bytes > 0)
      calls::broadcast(member == c.role.member ? c.input : part, part, bytes, ncclUint8, member, c.comm,
                       c.stream);
    part += bytes;
  }
  calls::group_end();
}

void all_to_all(const NcclCall& c) {
  calls::group_start();
  for (int member = 0; member < c.role.members; ++member) {
    c.send(c.block(c.input, member), member);
    c.receive(c.block(c.output, member), member);
  }
  calls::group_end();
}

void gather(const NcclCall& c) {
  calls::group_start();
  if (!c.stays(c.role.member)) c.send(c.input, kRoot);
  for (int member = 0; c.role.is_root() && member < c.role.members; ++member) {
    if (!c.stays(member)) c.receive(c.block(c.output, member), member);
  }
  calls::group_end();
}

void scatter(const NcclCall& c) {
  calls::group_start();
  for (int member = 0; c.role.is_root() && member < c.role.members; ++member) {
    if (!c.stays(member)) c.send(c.block(c.input, member), member);
  }
  if (!c.stays(c.role.member)) c.receive(c.output, kRoot);
  calls::group_end();
}

using NcclFunction = void (*)(const NcclCall& call);

struct Entry {
  const Collective* collective;
  NcclFunction function;
};

constexpr std::array kCalls{
    Entry{&kAllReduce, all_reduce},
    Entry{&kReduce, reduce},
    Entry{&kBroadcast, broadcast},
    Entry{&kAllGather, all_gather},
    Entry{&kAllGatherUneven, all_gather_uneven},
    Entry{&kReduceScatter, reduce_scatter},
    Entry{&kAllToAll, all_to_all},
    Entry{&kGather, gather},
    Entry{&kScatter, scatter},
};

NcclFunction function_for(const Collective& collective) {
  for (const Entry& entry : kCalls) {
    if (entry.collective == &collective) return entry.function;
  }
  throw Internal("{} has no entry in the table of NCCL's calls", collective.name);
}

/// The id that member 0 makes, on all members.
ncclUniqueId shared_id(Communicator& communicator) {
  constexpr std::int64_t kBytes = sizeof(ncclUniqueId);
  const Tensor bytes = Tensor::uninitialized({kBytes}, DType::kUInt8);
  if (communicator.rank() == kRoot) {
    const ncclUniqueId own = calls::unique_id();
    std::memcpy(bytes.data(), &own, sizeof own);
  }
  communicator.broadcast(bytes, kRoot);
  ncclUniqueId id{};
  std::memcpy(&id, bytes.data(), sizeof id);
  return id;
}

class NcclPeer final : public PeerLibrary {
 public:
  NcclPeer(Communicator& communicator, Device device) : stream_(cuda::compute_stream(device)) {
    const cuda::CurrentDevice current(device);
    comm_ = calls::init(communicator.size(), shared_id(communicator), communicator.rank());
  }
  ~NcclPeer() override {
    if (std::uncaught_exceptions() > 0)
      calls::abort(comm_);
    else
      calls::destroy(comm_);
  }

  NcclPeer(const NcclPeer&) = delete;
  NcclPeer& operator=(const NcclPeer&) = delete;

  [[nodiscard]] std::string why_not(const PeerCall& call) const override {
    if (!call.collective->reduces || nccl::arithmetic_type(call.dtype)) return {};
    return fmt::format("NCCL has no arithmetic for {}", to_string(call.dtype));
  }

  [[nodiscard]] std::function<void()> prepare(const PeerCall& call) const override {
    NcclCall prepared{.comm = comm_,
                      .stream = stream_.handle(),
                      .role = call.role,
                      .element_bytes = size_of(call.dtype),
                      .in_place = call.in_place,
                      .input = call.input,
                      .output = call.output,
                      .counts = uneven_counts(call.role)};
    if (call.collective->reduces) {
      prepared.type = nccl::arithmetic_type(call.dtype).value();
      prepared.op = nccl::operator_of(call.op);
    }
    return [prepared, function = function_for(*call.collective)] { function(prepared); };
  }

 private:
  const cuda::Stream& stream_;
  ncclComm_t comm_ = nullptr;
};

/// What `attempt` throws; empty when it succeeds.
template <class Attempt>
std::string failure_of(Attempt&& attempt) {
  try {
    attempt();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void require_on_all(const std::string& failure, const Team& team) {
  if (team.sum(failure.empty() ? 0 : 1) == 0) return;
  throw AgreedError("--peer nccl: {}; --peer none measures Cohort alone",
                    failure.empty() ? "other members cannot use NCCL" : failure);
}

}  // namespace

std::unique_ptr<const PeerLibrary> make_nccl_peer(Communicator& communicator, const Team& team,
                                                  Device device) {
  // If NCCL were missing on member 0 alone, the others would wait for its id.
  require_on_all(failure_of([] { static_cast<void>(nccl::library()); }), team);
  std::unique_ptr<const PeerLibrary> peer;
  require_on_all(failure_of([&] { peer = std::make_unique<const NcclPeer>(communicator, device); }), team);
  return peer;
}

}  // namespace cohort::bench
