#include "mpi_reductions.h"

#include <cstdint>
#include <cstring>

#include "datatypes.h"
#include "mpi_calls.h"

namespace cohort::preload {
namespace {

constexpr std::size_t kMostBytes = 1024;
constexpr int kMostMembers = 8;

OperatorKind operator_kind(MPI_Op op) noexcept {
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, OP) \
  if (op == (NAME)) return OperatorKind::kArithmetic;
  COHORT_PREDEFINED_OPERATORS(COHORT_X)
#undef COHORT_X
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, KIND) \
  if (op == (NAME)) return OperatorKind::KIND;
  COHORT_OTHER_OPERATORS(COHORT_X)
#undef COHORT_X
  return OperatorKind::kOfProgram;
}

bool is_pair(MPI_Datatype type) noexcept {
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5) \
  if (type == (NAME)) return true;
  COHORT_PAIR_DATATYPES(COHORT_X)
#undef COHORT_X
  return false;
}

/// Integers that are not of C, for which there are no logical operators.
bool is_of_fortran_or_address(MPI_Datatype type) noexcept {
  return type == MPI_INTEGER || type == MPI_INTEGER1 || type == MPI_INTEGER2 || type == MPI_INTEGER4 ||
         type == MPI_INTEGER8 || type == MPI_AINT || type == MPI_OFFSET || type == MPI_COUNT;
}

/// Whether the standard has this operator for such elements (MPI 4.1, section 6.9.2); of arithmetic ones,
/// those that Cohort knows.
bool is_legal(OperatorKind kind, MPI_Datatype type, MPI_Op op) noexcept {
  const std::optional<ElementKind> elements = element_kind(type);
  const bool is_integer = elements == ElementKind::kInteger || elements == ElementKind::kUnsigned;
  switch (kind) {
    case OperatorKind::kArithmetic: return type == MPI_LONG_DOUBLE || reduction_of(type, op) != nullptr;
    case OperatorKind::kLogical:
      return (is_integer && !is_of_fortran_or_address(type)) || type == MPI_LOGICAL || type == MPI_C_BOOL;
    case OperatorKind::kBitwise: return is_integer || type == MPI_BYTE;
    case OperatorKind::kPlace: return is_pair(type);
    case OperatorKind::kOfNoReduction: return false;
    case OperatorKind::kOfProgram: return true;
  }
  return false;
}

/// Whether all orders give the same bits.
bool is_exact(OperatorKind kind, MPI_Datatype type, MPI_Op op) noexcept {
  if (kind == OperatorKind::kLogical || kind == OperatorKind::kBitwise) return true;
  const Reduction* const known = kind == OperatorKind::kArithmetic ? reduction_of(type, op) : nullptr;
  return known != nullptr && known->is_exact;
}

/// Whether this can be one of the program's, which no list has.
bool may_be_of_program(MPI_Op op) noexcept {
#if defined(COHORT_ABI_MPICH)
  // Two bits for where the object is, of which these are not built in, and four for what it is: an operator.
  constexpr unsigned kOperator = 6;
  const auto bits = static_cast<unsigned>(op);
  return bits >> 30 >= 2 && (bits >> 26 & 0xf) == kOperator;
#elif defined(COHORT_ABI_MPI_5)
  constexpr std::uintptr_t kPredefined = 1 << 12;
  return reinterpret_cast<std::uintptr_t>(op) >= kPredefined;
#else
  return op != nullptr;
#endif
}

/// An element whose data is in one piece. Behind it there may be a gap, if it is a pair.
struct ElementBytes {
  std::size_t data;
  std::size_t extent;
};
/// Of predefined datatypes alone: members may have made others in different ways.
std::optional<ElementBytes> bytes_of(MPI_Datatype type) {
  if (element_kind(type)) {
    const std::optional<Layout> layout = layout_of(type);
    return layout ? std::optional(ElementBytes{layout->bytes, layout->bytes}) : std::nullopt;
  }
  if (!is_pair(type)) return std::nullopt;
  const std::optional<std::size_t> data = mpi::type_size(type);
  if (!data || data != mpi::type_span(type)) return std::nullopt;
  return ElementBytes{*data, static_cast<std::size_t>(mpi::type_extent(type))};
}

}  // namespace

void MpiReduction::copy(void* to, const void* from) const noexcept {
  if (data == extent) {
    std::memcpy(to, from, bytes());
    return;
  }
  for (std::size_t at = 0; at < bytes(); at += extent)
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, data);
}

std::optional<MpiReduction> mpi_reduction(MPI_Datatype type, MPI_Op op, std::size_t count) {
  if (count == 0 || count > kMostBytes) return std::nullopt;
  const OperatorKind kind = operator_kind(op);
  if (!is_legal(kind, type, op)) return std::nullopt;
  if (kind == OperatorKind::kOfProgram && !may_be_of_program(op)) return std::nullopt;
  const std::optional<ElementBytes> element = bytes_of(type);
  if (!element || count * element->extent > kMostBytes) return std::nullopt;
  return MpiReduction{type, op, count, element->data, element->extent, is_exact(kind, type, op)};
}

bool mpi_is_faster_by(const MpiReduction& reduction, int members, bool some_only_send) noexcept {
  return members > kMostMembers || (some_only_send && reduction.stride() <= kMostBytesOfFastReduce);
}

void align(const MpiReduction& reduction, std::span<std::byte> all) noexcept {
  const std::size_t bytes = reduction.bytes();
  const std::size_t stride = reduction.stride();
  if (bytes == stride) return;
  for (std::size_t member = all.size() / stride; member-- > 1;)
    std::memmove(all.data() + member * stride, all.data() + member * bytes, bytes);
}

void combine(const MpiReduction& reduction, std::span<std::byte> all, void* result) {
  std::byte* sum = all.data();
  for (std::byte* next = sum + reduction.stride(); next != all.data() + all.size();
       next += reduction.stride()) {
    mpi::reduce_local(sum, next, reduction.count, reduction.type, reduction.op);
    sum = next;
  }
  reduction.copy(result, sum);
}

}  // namespace cohort::preload
