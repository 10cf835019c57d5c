#include "launch.h"

#include <cohort/base/error.h>

#include "calls.h"

namespace cohort::nccl {

std::optional<ncclDataType_t> arithmetic_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInt8: return ncclInt8;
    case DType::kInt32: return ncclInt32;
    case DType::kInt64: return ncclInt64;
    case DType::kBool:
    case DType::kUInt8: return ncclUint8;
    case DType::kUInt32: return ncclUint32;
    case DType::kUInt64: return ncclUint64;
    case DType::kFloat16: return ncclFloat16;
    case DType::kBFloat16: return ncclBfloat16;
    case DType::kFloat32: return ncclFloat32;
    case DType::kFloat64: return ncclFloat64;
    case DType::kInt16:
    case DType::kUInt16: break;
  }
  return std::nullopt;
}

ncclRedOp_t operator_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return ncclSum;
    case ReduceOp::kMean: return ncclAvg;
    case ReduceOp::kMin: return ncclMin;
    case ReduceOp::kMax: return ncclMax;
    case ReduceOp::kProd: return ncclProd;
  }
  throw Internal("operator {} is not one of Cohort's", static_cast<int>(op));
}

namespace {

/// One member's call, and the NCCL calls that it is made of.
class Launch {
 public:
  Launch(const CollectiveCall& call, int rank, int size, ncclComm_t comm, cudaStream_t stream)
      : call_(call), rank_(rank), size_(size), comm_(comm), stream_(stream) {}

  void reduction() const {
    const ncclDataType_t type = arithmetic_type(call_.dtype).value();
    const ncclRedOp_t op = operator_of(call_.op);
    if (call_.kind == CollectiveKind::kAllReduce)
      calls::all_reduce(call_.input, call_.output, call_.elements, type, op, comm_, stream_);
    else if (call_.kind == CollectiveKind::kReduce)
      calls::reduce(call_.input, call_.output, call_.elements, type, op, call_.root, comm_, stream_);
    else
      calls::reduce_scatter(call_.input, call_.output, call_.elements, type, op, comm_, stream_);
  }

  void broadcast() const { broadcast(call_.input, call_.output, block_bytes(), call_.root); }

  void all_gather() const {
    if (call_.counts.empty())
      return calls::all_gather(call_.input, call_.output, block_bytes(), ncclUint8, comm_, stream_);
    std::byte* block = call_.output;
    for (int member = 0; member < size_; ++member) {
      const std::size_t bytes = call_.counts[static_cast<std::size_t>(member)] * size_of(call_.dtype);
      if (bytes > 0) broadcast(member == rank_ ? call_.input : block, block, bytes, member);
      block += bytes;
    }
  }

  void all_to_all() const {
    for (int member = 0; member < size_; ++member) {
      send(input_block(member), member);
      receive(output_block(member), member);
    }
  }

  void gather() const {
    send(call_.input, call_.root);
    for (int member = 0; rank_ == call_.root && member < size_; ++member)
      receive(output_block(member), member);
  }

  void scatter() const {
    for (int member = 0; rank_ == call_.root && member < size_; ++member) send(input_block(member), member);
    receive(call_.output, call_.root);
  }

 private:
  [[nodiscard]] std::size_t block_bytes() const { return call_.elements * size_of(call_.dtype); }
  [[nodiscard]] const std::byte* input_block(int member) const {
    return call_.input + static_cast<std::size_t>(member) * block_bytes();
  }
  [[nodiscard]] std::byte* output_block(int member) const {
    return call_.output + static_cast<std::size_t>(member) * block_bytes();
  }
  void broadcast(const std::byte* from, std::byte* to, std::size_t bytes, int root) const {
    calls::broadcast(from, to, bytes, ncclUint8, root, comm_, stream_);
  }
  void send(const std::byte* from, int member) const {
    calls::send(from, block_bytes(), ncclUint8, member, comm_, stream_);
  }
  void receive(std::byte* to, int member) const {
    calls::receive(to, block_bytes(), ncclUint8, member, comm_, stream_);
  }

  const CollectiveCall& call_;
  int rank_;
  int size_;
  ncclComm_t comm_;
  cudaStream_t stream_;
};

}  // namespace

bool can_carry(const CollectiveCall& call) noexcept {
  if (is_message(call.kind)) return false;
  return !reduces(call.kind) || arithmetic_type(call.dtype).has_value();
}

void launch(const CollectiveCall& call, int rank, int size, ncclComm_t comm, cudaStream_t stream) {
  const Launch launch(call, rank, size, comm, stream);
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kReduceScatter: return launch.reduction();
    case CollectiveKind::kBroadcast: return launch.broadcast();
    case CollectiveKind::kAllGather: return launch.all_gather();
    case CollectiveKind::kAllToAll: return launch.all_to_all();
    case CollectiveKind::kGather: return launch.gather();
    case CollectiveKind::kScatter: return launch.scatter();
    case CollectiveKind::kSplit:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  throw Internal("{} is none of NCCL's calls", describe(call));
}

}  // namespace cohort::nccl
