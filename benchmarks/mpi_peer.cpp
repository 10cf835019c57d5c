#include <limits>

#include <fmt/format.h>

#include "mpi_team.h"
#include "peer.h"

namespace cohort::bench {
namespace {

/// MPI_DATATYPE_NULL when MPI has no such type.
MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return MPI_INT8_T;
    case DType::kInt16: return MPI_INT16_T;
    case DType::kInt32: return MPI_INT32_T;
    case DType::kInt64: return MPI_INT64_T;
    case DType::kUInt8: return MPI_UINT8_T;
    case DType::kUInt16: return MPI_UINT16_T;
    case DType::kUInt32: return MPI_UINT32_T;
    case DType::kUInt64: return MPI_UINT64_T;
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    case DType::kBool: return MPI_C_BOOL;
    case DType::kFloat16:
    case DType::kBFloat16: break;
  }
  return MPI_DATATYPE_NULL;
}

/// MPI_OP_NULL when MPI has no such operator.
MPI_Op op_of(ReduceOp op, DType dtype) {
  // To MPI, truth values have no order: the smaller of two is their conjunction.
  const bool logical = dtype == DType::kBool;
  switch (op) {
    case ReduceOp::kSum: return MPI_SUM;
    case ReduceOp::kMin: return logical ? MPI_LAND : MPI_MIN;
    case ReduceOp::kMax: return logical ? MPI_LOR : MPI_MAX;
    case ReduceOp::kProd: return MPI_PROD;
    case ReduceOp::kMean: break;
  }
  return MPI_OP_NULL;
}

/// A type of as many bytes, to move elements that MPI need not understand.
MPI_Datatype type_to_move(DType dtype) {
  MPI_Datatype type = type_of(dtype);
  return type == MPI_DATATYPE_NULL ? MPI_UINT16_T : type;  // only the 16-bit floats have none
}

/// Empty when MPI can do it.
std::string why_not_reduce(DType dtype, ReduceOp op) {
  if (type_of(dtype) == MPI_DATATYPE_NULL) return fmt::format("MPI has no type for {}", to_string(dtype));
  if (op_of(op, dtype) == MPI_OP_NULL) return fmt::format("MPI has no operator for {}", to_string(op));
  return {};
}

class MpiPeer final : public PeerLibrary {
 public:
  explicit MpiPeer(MPI_Comm group) : group_(group) {}

  [[nodiscard]] std::string why_not(const PeerCall& call) const override {
    if (call.collective->reduces) {
      std::string why = why_not_reduce(call.dtype, call.op);
      if (!why.empty()) return why;
    }
    if (call.role.elements <= static_cast<std::size_t>(std::numeric_limits<int>::max())) return {};
    return "MPI counts elements in an int, and these are more";
  }

  [[nodiscard]] std::function<void()> prepare(const PeerCall& call) const override {
    MpiCall prepared{.group = group_,
                     .type = type_to_move(call.dtype),
                     .role = call.role,
                     .in_place = call.in_place,
                     .input = call.input,
                     .output = call.output};
    if (call.collective->reduces) prepared.op = op_of(call.op, call.dtype);
    prepared.divide_unevenly();
    return [prepared = std::move(prepared), function = call.collective->call_mpi] { function(prepared); };
  }

 private:
  MPI_Comm group_;
};

}  // namespace

std::unique_ptr<const PeerLibrary> make_mpi_peer(const MpiTeam& team) {
  return std::make_unique<const MpiPeer>(team.handle());
}

}  // namespace cohort::bench
