#include "reductions.h"

#include <algorithm>

#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_xor.h>

#include "tensors.h"

namespace cohort::pytorch {
namespace {

using Op = c10d::ReduceOp::RedOpType;

/// Elements that are gathered at once, from each member.
constexpr std::int64_t kPiece = std::int64_t{64} << 10;

const char* name_of(Op op) {
  switch (op) {
    case Op::SUM: return "SUM";
    case Op::AVG: return "AVG";
    case Op::PRODUCT: return "PRODUCT";
    case Op::MIN: return "MIN";
    case Op::MAX: return "MAX";
    case Op::BAND: return "BAND";
    case Op::BOR: return "BOR";
    case Op::BXOR: return "BXOR";
    case Op::PREMUL_SUM: return "PREMUL_SUM";
    default: return "?";
  }
}

bool is_bitwise(Op op) { return op == Op::BAND || op == Op::BOR || op == Op::BXOR; }

void require_legal_op(Op op, at::ScalarType type) {
  const bool is_bool = type == at::kBool;
  const bool is_integral = at::isIntegralType(type, false);
  const bool is_legal = is_bitwise(op)                       ? is_bool || is_integral
                        : op == Op::AVG                      ? !is_bool
                        : op == Op::PREMUL_SUM               ? !is_bool
                        : op == Op::MIN || op == Op::MAX     ? !at::isComplexType(type)
                        : op == Op::SUM || op == Op::PRODUCT ? true
                                                             : false;
  TORCH_CHECK_TYPE(is_legal, "cohort: ", name_of(op), " makes no sense for tensors of ", type);
}

}  // namespace

Reduction::Reduction(const c10d::ReduceOp& op, const at::Tensor& tensor) : op_(op) {
  const at::ScalarType type = tensor.scalar_type();
  require_legal_op(op.op_, type);
  const bool is_bool = type == at::kBool;
  switch (op.op_) {
    case Op::SUM:
    case Op::PREMUL_SUM: combine_ = is_bool ? ReduceOp::kMax : ReduceOp::kSum; break;
    case Op::AVG:
      combine_ = at::isFloatingType(type) || at::isComplexType(type) ? ReduceOp::kMean : ReduceOp::kSum;
      break;
    case Op::PRODUCT:
      combine_ = is_bool ? ReduceOp::kMin : ReduceOp::kProd;
      gathers_ = at::isComplexType(type);
      break;
    case Op::MIN: combine_ = ReduceOp::kMin; break;
    case Op::MAX: combine_ = ReduceOp::kMax; break;
    case Op::BAND:
      combine_ = ReduceOp::kMin;
      gathers_ = !is_bool;
      break;
    case Op::BOR:
      combine_ = ReduceOp::kMax;
      gathers_ = !is_bool;
      break;
    default: gathers_ = true;
  }
}

void Reduction::prepare(const at::Tensor& tensor) const {
  if (op_.op_ != Op::PREMUL_SUM) return;
  // The name that all versions of PyTorch have.
  const auto* const supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op_.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "cohort: PREMUL_SUM without a factor");
  if (supplement->tensor_factor.defined())
    tensor.mul_(supplement->tensor_factor.to(tensor.device(), tensor.scalar_type()));
  else
    tensor.mul_(supplement->double_factor);
}

void Reduction::finish(const at::Tensor& tensor, int size) const {
  if (op_.op_ == Op::AVG && combine_ == ReduceOp::kSum) tensor.div_(size, "trunc");
}

at::Tensor Reduction::combine_rows(const at::Tensor& rows) const {
  at::Tensor result = rows[0].clone();
  for (std::int64_t row = 1; row < rows.size(0); ++row) {
    const at::Tensor other = rows[row];
    switch (op_.op_) {
      case Op::BAND: result.bitwise_and_(other); break;
      case Op::BOR: result.bitwise_or_(other); break;
      case Op::BXOR: result.bitwise_xor_(other); break;
      default: result.mul_(other);
    }
  }
  return result;
}

void Reduction::gather_and_combine(Communicator& communicator, const at::Tensor& tensor,
                                   const CallOptions& options) const {
  const at::Tensor flat = tensor.view({-1});
  const std::int64_t elements = flat.numel();
  const at::Tensor room = scratch(std::min(elements, kPiece) * communicator.size(), tensor);
  std::int64_t begin = 0;
  do {
    const std::int64_t count = std::min(elements - begin, kPiece);
    const at::Tensor piece = flat.narrow(0, begin, count);
    const at::Tensor rows = room.narrow(0, 0, count * communicator.size());
    communicator.all_gather(contents_of(piece), contents_of(rows), options);
    piece.copy_(combine_rows(rows.view({communicator.size(), count})));
    begin += count;
  } while (begin < elements);
}

void Reduction::all_reduce(Communicator& communicator, const at::Tensor& tensor,
                           const CallOptions& options) const {
  prepare(tensor);
  if (gathers_)
    gather_and_combine(communicator, tensor, options);
  else
    communicator.all_reduce(numbers_of(tensor), combine_, options);
  finish(tensor, communicator.size());
}

void Reduction::reduce(Communicator& communicator, const at::Tensor& tensor, int root,
                       const CallOptions& options) const {
  const bool is_root = communicator.rank() == root;
  if (gathers_) {
    const at::Tensor copy = is_root ? tensor : tensor.clone();
    return gather_and_combine(communicator, copy, options);
  }
  prepare(tensor);
  const Tensor numbers = numbers_of(tensor);
  communicator.reduce(numbers, numbers, combine_, root, options);
  if (is_root) finish(tensor, communicator.size());
}

void Reduction::reduce_scatter(Communicator& communicator, const at::Tensor& input, const at::Tensor& output,
                               const CallOptions& options) const {
  if (op_.op_ == Op::PREMUL_SUM) {
    const at::Tensor own = input.clone();
    prepare(own);
    communicator.reduce_scatter(numbers_of(own), numbers_of(output), combine_, options);
  } else if (gathers_) {
    const at::Tensor blocks = scratch(input.numel(), input);
    communicator.all_to_all(contents_of(input), contents_of(blocks), options);
    const at::Tensor rows = blocks.view({communicator.size(), output.numel()});
    output.copy_(combine_rows(rows).view(output.sizes()));
  } else {
    communicator.reduce_scatter(numbers_of(input), numbers_of(output), combine_, options);
  }
  finish(output, communicator.size());
}

}  // namespace cohort::pytorch
