#include "datatypes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "mpi_calls.h"

namespace cohort::preload {
namespace {

struct Predefined {
  MPI_Datatype type = {};
  ElementKind kind = ElementKind::kBytes;
};

/// Found by their handles in one or two looks.
class PredefinedTypes {
 public:
  PredefinedTypes() {
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, KIND) add({NAME, ElementKind::KIND});
    COHORT_PREDEFINED_DATATYPES(COHORT_X)
#undef COHORT_X
  }

  struct Entry {
    Predefined what;
    bool used = false;
    /// Of one element; 0 until it was asked for, since an MPI without Fortran lacks some types.
    std::atomic<std::uint32_t> bytes{0};
  };

  [[nodiscard]] Entry* find(MPI_Datatype type) noexcept {
    for (std::size_t at = place_of(type);; at = (at + 1) % kPlaces) {
      Entry& entry = entries_[at];
      if (!entry.used) return nullptr;
      if (entry.what.type == type) return &entry;
    }
  }

 private:
  /// So many that hardly two datatypes have the same one.
  static constexpr std::size_t kPlaces = 1024;

  static std::size_t place_of(MPI_Datatype type) noexcept {
    const auto value = (std::uint64_t)type;  // NOLINT: a pointer or a number, as the ABI has it
    return (value * 0x9e3779b97f4a7c15) >> 54;
  }

  void add(const Predefined& what) {
    if (find(what.type) != nullptr) return;  // two names of one datatype
    std::size_t at = place_of(what.type);
    while (entries_[at].used) at = (at + 1) % kPlaces;
    entries_[at].what = what;
    entries_[at].used = true;
  }

  std::array<Entry, kPlaces> entries_;
};

PredefinedTypes& predefined_types() {
  static PredefinedTypes types;
  return types;
}

std::size_t bytes_of(PredefinedTypes::Entry& entry) {
  const std::uint32_t known = entry.bytes.load(std::memory_order_relaxed);
  if (known != 0) [[likely]]
    return known;
  const std::size_t bytes = mpi::type_size(entry.what.type).value_or(0);
  entry.bytes.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
  return bytes;
}

std::optional<ReduceOp> operator_of(MPI_Op op) noexcept {
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, OP) \
  if (op == (NAME)) return ReduceOp::OP;
  COHORT_PREDEFINED_OPERATORS(COHORT_X)
#undef COHORT_X
  return std::nullopt;
}

std::optional<DType> integer_of(std::size_t bytes, bool is_signed) noexcept {
  switch (bytes) {
    case 1: return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2: return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4: return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8: return is_signed ? DType::kInt64 : DType::kUInt64;
    default: return std::nullopt;
  }
}

std::optional<DType> floating_of(std::size_t bytes) noexcept {
  if (bytes == 4) return DType::kFloat32;
  if (bytes == 8) return DType::kFloat64;
  return std::nullopt;
}

/// By dtype, operator, and numbers of an element, less one: what a small call needs is copied by nobody.
constexpr std::size_t kReduceOps = static_cast<std::size_t>(ReduceOp::kProd) + 1;
constexpr auto kReductions = [] {
  std::array<std::array<std::array<Reduction, 2>, kReduceOps>, kAllDTypes.size()> all{};
  for (const DType dtype : kAllDTypes) {
    for (std::size_t op = 0; op < kReduceOps; ++op) {
      for (std::size_t numbers = 1; numbers <= 2; ++numbers) {
        all[static_cast<std::size_t>(dtype)][op][numbers - 1] = {dtype, static_cast<ReduceOp>(op), numbers,
                                                                 !is_floating(dtype)};
      }
    }
  }
  return all;
}();

/// Whether the datatype is a row of a predefined one without gaps, or one of such rows.
bool is_row_of_predefined(MPI_Datatype type) {
  if (predefined_types().find(type) != nullptr) return true;
  const mpi::TypeEnvelope made = mpi::envelope_of(type);
  if (!made.repeats()) return made.is_number();
  MPI_Datatype repeated = mpi::repeated_type(type, made);
  const bool is_row = is_row_of_predefined(repeated);
  if (!mpi::envelope_of(repeated).is_predefined()) mpi::free_type(repeated);
  return is_row;
}

/// Elements whose data MPI packs in one call, whose numbers are ints.
constexpr std::size_t kMostPackedBytes = std::size_t{1} << 30;

}  // namespace

const Reduction* reduction_of(MPI_Datatype type, MPI_Op op) {
  PredefinedTypes::Entry* const entry = predefined_types().find(type);
  const std::optional<ReduceOp> reduce = operator_of(op);
  if (entry == nullptr || !reduce) return nullptr;
  const std::size_t bytes = bytes_of(*entry);
  std::optional<DType> dtype;
  std::size_t numbers = 1;
  switch (entry->what.kind) {
    case ElementKind::kInteger: dtype = integer_of(bytes, true); break;
    case ElementKind::kUnsigned: dtype = integer_of(bytes, false); break;
    case ElementKind::kFloating: dtype = floating_of(bytes); break;
    case ElementKind::kComplex:
      if (*reduce != ReduceOp::kSum) return nullptr;
      dtype = floating_of(bytes / 2);
      numbers = 2;
      break;
    case ElementKind::kBytes: break;
  }
  if (!dtype) return nullptr;
  return &kReductions[static_cast<std::size_t>(*dtype)][static_cast<std::size_t>(*reduce)][numbers - 1];
}

std::optional<ElementKind> element_kind(MPI_Datatype type) noexcept {
  PredefinedTypes::Entry* const entry = predefined_types().find(type);
  return entry == nullptr ? std::nullopt : std::optional(entry->what.kind);
}

std::size_t predefined_bytes(MPI_Datatype type) {
  PredefinedTypes::Entry* const entry = predefined_types().find(type);
  return entry == nullptr ? 0 : bytes_of(*entry);
}

std::optional<Layout> layout_by_mpi(MPI_Datatype type) {
  if (predefined_types().find(type) != nullptr) return std::nullopt;  // this MPI lacks its language
  const std::optional<std::size_t> bytes = mpi::type_size(type);
  if (!bytes) return std::nullopt;
  return Layout{*bytes, mpi::type_extent(type), is_row_of_predefined(type)};
}

namespace {

/// Calls `move(some, first, bytes)` for elements that MPI packs at once, one after the other.
template <class Move>
void in_parts(const Elements& all, std::size_t each, const Move& move) {
  if (each > kMostPackedBytes)
    throw InvalidArgument("an element with gaps of {} bytes is more than MPI_Pack can pack", each);
  const std::size_t at_once = std::max<std::size_t>(kMostPackedBytes / std::max<std::size_t>(each, 1), 1);
  for (std::size_t first = 0; first < all.count; first += at_once) {
    const Elements some = all.part(first, std::min(at_once, all.count - first));
    move(some, first * each, some.count * each);
  }
}

}  // namespace

void Elements::pack(std::span<std::byte> to) const {
  if (count == 0) return;
  in_parts(*this, to.size() / count, [to](const Elements& some, std::size_t begin, std::size_t bytes) {
    mpi::Packable(some.buffer, some.count, some.type).pack(to.subspan(begin, bytes));
  });
}

void Elements::unpack(std::span<const std::byte> from) const {
  if (count == 0) return;
  in_parts(*this, from.size() / count, [from](const Elements& some, std::size_t begin, std::size_t bytes) {
    mpi::Packable(some.buffer, some.count, some.type).unpack(from.subspan(begin, bytes));
  });
}

}  // namespace cohort::preload
