#include "environment.h"

#include <thread>

#include <mpi.h>

#include <cohort/base/error.h>
#include <cohort/collective/reduction.h>

namespace cohort::mpi {

MpiLock::MpiLock(int thread_level) : thread_level_(thread_level) {}

MpiLock::Guard MpiLock::acquire() {
  require_thread();
  Guard guard(mutex_, std::try_to_lock);
  if (!guard) {
    ++waiting_;
    guard.lock();
    --waiting_;
  }
  require_open();
  return guard;
}

MpiLock::Guard MpiLock::try_acquire() {
  require_thread();
  if (waiting_.load(std::memory_order_relaxed) == 0) {
    Guard guard(mutex_, std::try_to_lock);
    if (guard) {
      require_open();
      return guard;
    }
  }
  // The thread inside may need this core: MPI yields while it is idle, a thread that asks again and again
  // does not.
  std::this_thread::yield();
  return {};
}

void MpiLock::require_open() const {
  if (!closed_.load(std::memory_order_relaxed)) return;
  throw WrongContext(
      "the Session has ended, and MPI with it: a communicator over several nodes works only while its "
      "Session lives. Destroy what communicates before the Session, or make the Session first");
}

bool MpiLock::any_thread() const noexcept { return thread_level_ >= MPI_THREAD_SERIALIZED; }

void MpiLock::require_thread() const {
  if (any_thread() || std::this_thread::get_id() == owner_) return;
  throw WrongContext(
      "MPI was initialised with thread level {}, so only the thread that made the Session may communicate; "
      "initialise MPI with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, or let the Session do it",
      thread_level_ == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED");
}

namespace {

template <DType kDType, ReduceOp kOp>
void combine(void* input, void* in_out, int* elements, MPI_Datatype* /*type*/) {
  const std::byte* const inputs[] = {static_cast<const std::byte*>(input),
                                     static_cast<const std::byte*>(in_out)};
  reduce_elements(kDType, kOp, inputs, static_cast<std::byte*>(in_out), static_cast<std::size_t>(*elements));
}

/// Sums and products wrap, so they are taken in the unsigned type: the bits are the same, and
/// overflow of a signed type would be undefined.
MPI_Datatype arithmetic_type(DType dtype, bool wraps) {
  switch (dtype) {
    case DType::kInt8: return wraps ? MPI_UINT8_T : MPI_INT8_T;
    case DType::kInt16: return wraps ? MPI_UINT16_T : MPI_INT16_T;
    case DType::kInt32: return wraps ? MPI_UINT32_T : MPI_INT32_T;
    case DType::kInt64: return wraps ? MPI_UINT64_T : MPI_INT64_T;
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    default: return storage_type(dtype);
  }
}

MPI_Op builtin(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return MPI_SUM;
    case ReduceOp::kProd: return MPI_PROD;
    case ReduceOp::kMin: return MPI_MIN;
    case ReduceOp::kMax: return MPI_MAX;
  }
  return MPI_OP_NULL;
}

}  // namespace

MPI_Datatype storage_type(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
  }
}

Operators::Operators() {
  const auto add_arithmetic = [this]<DType kDType>(std::integral_constant<DType, kDType>) {
    own_.push_back({kDType, ReduceOp::kSum, Op(combine<kDType, ReduceOp::kSum>)});
    own_.push_back({kDType, ReduceOp::kProd, Op(combine<kDType, ReduceOp::kProd>)});
  };
  // Open MPI's vector instructions saturate sums of narrow integers, in the body of a buffer but not
  // in its tail: two uint8 of 200 gave 255 or 144.
  add_arithmetic(std::integral_constant<DType, DType::kInt8>{});
  add_arithmetic(std::integral_constant<DType, DType::kInt16>{});
  add_arithmetic(std::integral_constant<DType, DType::kUInt8>{});
  add_arithmetic(std::integral_constant<DType, DType::kUInt16>{});

  const auto add = [this]<DType kDType>(std::integral_constant<DType, kDType>) {
    own_.push_back({kDType, ReduceOp::kMin, Op(combine<kDType, ReduceOp::kMin>)});
    own_.push_back({kDType, ReduceOp::kMax, Op(combine<kDType, ReduceOp::kMax>)});
  };
  add(std::integral_constant<DType, DType::kFloat16>{});
  add(std::integral_constant<DType, DType::kBFloat16>{});
  add(std::integral_constant<DType, DType::kFloat32>{});
  add(std::integral_constant<DType, DType::kFloat64>{});
}

MpiArithmetic Operators::arithmetic(DType dtype, ReduceOp op) const {
  for (const Own& own : own_) {
    if (own.dtype == dtype && own.op == op) return {arithmetic_type(dtype, false), own.made.get(), false};
  }
  if (is_half(dtype)) return {MPI_FLOAT, builtin(op), true};
  const bool wraps = op != ReduceOp::kMin && op != ReduceOp::kMax;
  return {arithmetic_type(dtype, wraps), builtin(op), false};
}

}  // namespace cohort::mpi
