// The functions of the MPI that the shim calls itself, by their PMPI names, and what they return. A call that
// fails throws, after the MPI has called the communicator's error handler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <cohort/base/error.h>

#include "mpi_abi.h"

namespace cohort::preload::mpi {

inline void check(int status, std::string_view function) {
  if (status != MPI_SUCCESS) throw Unavailable("{} of the MPI library failed with code {}", function, status);
}

/// Whether the library is MPICH or made of it, as Intel MPI is.
inline bool is_mpich_or_kin() {
#if defined(COHORT_ABI_MPI_5)
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  check(PMPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  return text.find("MPICH") != std::string::npos || text.find("Intel(R) MPI") != std::string::npos;
#elif defined(COHORT_ABI_MPICH)
  return true;
#else
  return false;
#endif
}

inline int rank(MPI_Comm comm) {
  int rank = 0;
  check(PMPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

inline int size(MPI_Comm comm) {
  int size = 0;
  check(PMPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

inline bool is_inter(MPI_Comm comm) {
  int is_inter = 0;
  check(PMPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
  return is_inter != 0;
}

inline void barrier(MPI_Comm comm) { check(PMPI_Barrier(comm), "MPI_Barrier"); }

/// From rank 0.
inline void broadcast(std::span<std::byte> bytes, MPI_Comm comm) {
  check(PMPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, comm), "MPI_Bcast");
}

/// Every rank's word.
template <class Word>
void all_gather(const Word& own, std::span<Word> all, MPI_Comm comm) {
  constexpr int kBytes = sizeof(Word);
  check(PMPI_Allgather(&own, kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, comm), "MPI_Allgather");
}

inline bool all_say(bool own, MPI_Comm comm) {
  const int word = own ? 1 : 0;
  int least = 0;
  check(PMPI_Allreduce(&word, &least, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  return least != 0;
}

/// Of all ranks of the world that share memory with this one. To be freed.
inline MPI_Comm node_of_world() {
  MPI_Comm node = MPI_COMM_NULL;
  check(PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
        "MPI_Comm_split_type");
  return node;
}
inline void free_comm(MPI_Comm comm) { check(PMPI_Comm_free(&comm), "MPI_Comm_free"); }

// ---- what hangs on communicators

/// For attributes that are not copied to duplicates.
inline int create_keyval(MPI_Comm_delete_attr_function* at_end) {
  const auto copy_to_none = [](MPI_Comm, int, void*, void*, void*, int* copies) {
    *copies = 0;
    return MPI_SUCCESS;
  };
  int keyval = 0;
  check(PMPI_Comm_create_keyval(copy_to_none, at_end, &keyval, nullptr), "MPI_Comm_create_keyval");
  return keyval;
}

inline void set_attribute(MPI_Comm comm, int keyval, void* value) {
  check(PMPI_Comm_set_attr(comm, keyval, value), "MPI_Comm_set_attr");
}

inline void delete_attribute(MPI_Comm comm, int keyval) {
  check(PMPI_Comm_delete_attr(comm, keyval), "MPI_Comm_delete_attr");
}

/// Null where there is none.
inline void* attribute(MPI_Comm comm, int keyval) {
  void* value = nullptr;
  int found = 0;
  check(PMPI_Comm_get_attr(comm, keyval, static_cast<void*>(&value), &found), "MPI_Comm_get_attr");
  return found == 0 ? nullptr : value;
}

// ---- errors

inline int error_class(int code) {
  int of_code = code;
  check(PMPI_Error_class(code, &of_code), "MPI_Error_class");
  return of_code;
}

inline std::string error_text(int code) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  check(PMPI_Error_string(code, text.data(), &length), "MPI_Error_string");
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// A new code, of class MPI_ERR_OTHER, with this text. MPICH up to 4.1 has texts of its own for codes of that
/// class; there it is of a new class.
inline int make_error(std::string text) {
  text.resize(std::min(text.size(), static_cast<std::size_t>(MPI_MAX_ERROR_STRING) - 1));
  const auto code_in = [&text](int error_class) {
    int code = error_class;
    check(PMPI_Add_error_code(error_class, &code), "MPI_Add_error_code");
    check(PMPI_Add_error_string(code, text.c_str()), "MPI_Add_error_string");
    return code;
  };
  const int code = code_in(MPI_ERR_OTHER);
  if (error_text(code) == text) return code;
  int own_class = MPI_ERR_OTHER;
  check(PMPI_Add_error_class(&own_class), "MPI_Add_error_class");
  return code_in(own_class);
}

/// Returns only if the communicator's error handler does.
inline void call_error_handler(MPI_Comm comm, int code) {
  check(PMPI_Comm_call_errhandler(comm, code), "MPI_Comm_call_errhandler");
}

/// Does not return.
inline void abort_job(int status) { static_cast<void>(PMPI_Abort(MPI_COMM_WORLD, status)); }

/// An error handler, after which a call returns.
inline void return_error(MPI_Comm* /*comm*/, int* /*code*/, ...) {}  // NOLINT(cert-dcl50-cpp): MPI's type

/// A communicator of this process alone, of which a program knows nothing. Its errors are returned: what is
/// asked about a program's datatype must not end the program. Made at the first call, by the start; lives as
/// long as MPI.
inline MPI_Comm own_comm() {
  static const MPI_Comm comm = [] {
    MPI_Comm made = MPI_COMM_NULL;
    check(PMPI_Comm_dup(MPI_COMM_SELF, &made), "MPI_Comm_dup");
    // Not MPI_ERRORS_RETURN, for which the libraries that have the ABI of MPI 5 do not have the same number.
    MPI_Errhandler returns = {};
    check(PMPI_Comm_create_errhandler(&return_error, &returns), "MPI_Comm_create_errhandler");
    check(PMPI_Comm_set_errhandler(made, returns), "MPI_Comm_set_errhandler");
    return made;
  }();
  return comm;
}

/// Lets messages and all else of the MPI go on. There is nothing to do about an error of it here. `comm` has
/// several ranks, and no messages: MPICH looks for none of others on a communicator of one rank, and Open MPI
/// makes progress only where it finds none.
inline void make_progress(MPI_Comm comm) noexcept {
  constexpr int kSomeTag = 0;
  int found = 0;
  static_cast<void>(PMPI_Iprobe(MPI_ANY_SOURCE, kSomeTag, comm, &found, MPI_STATUS_IGNORE));
}

// ---- datatypes

/// Bytes of the data of one element. Nothing where the datatype cannot be used.
inline std::optional<std::size_t> type_size(MPI_Datatype type) {
  int at_most_an_int = 0;
  if (PMPI_Pack_size(0, type, own_comm(), &at_most_an_int) != MPI_SUCCESS) return std::nullopt;
  // Of a datatype that is legal, as MPI_COMM_WORLD would be told of any other.
  MPI_Count bytes = 0;
  check(PMPI_Type_size_x(type, &bytes), "MPI_Type_size_x");
  return static_cast<std::size_t>(bytes);
}

/// Of no datatype that repeats another one.
constexpr int kSomeCombiner = -1;

/// How a datatype was made.
struct TypeEnvelope {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;

  /// A number of Fortran by its precision or range: predefined, but not by a name.
  [[nodiscard]] bool is_number() const noexcept {
    return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
           combiner == MPI_COMBINER_F90_INTEGER;
  }
  [[nodiscard]] bool is_predefined() const noexcept { return combiner == MPI_COMBINER_NAMED || is_number(); }
  /// A row of another one without gaps, or a duplicate.
  [[nodiscard]] bool repeats() const noexcept {
    return combiner == MPI_COMBINER_DUP || combiner == MPI_COMBINER_CONTIGUOUS;
  }
};

inline TypeEnvelope envelope_of(MPI_Datatype type) {
  TypeEnvelope made;
  if (PMPI_Type_get_envelope_c != nullptr) {
    // The other function takes it for an error where a datatype was made with large counts.
    MPI_Count numbers[3] = {};
    MPI_Count large_counts = 0;
    check(
        PMPI_Type_get_envelope_c(type, &numbers[0], &numbers[1], &large_counts, &numbers[2], &made.combiner),
        "MPI_Type_get_envelope_c");
    if (large_counts > 0) return {.combiner = kSomeCombiner};
  }
  check(PMPI_Type_get_envelope(type, &made.integers, &made.addresses, &made.types, &made.combiner),
        "MPI_Type_get_envelope");
  return made;
}

/// What a datatype repeats. To be freed if it is not predefined.
inline MPI_Datatype repeated_type(MPI_Datatype type, const TypeEnvelope& made) {
  int count = 0;
  MPI_Aint no_address = 0;
  MPI_Datatype repeated = MPI_DATATYPE_NULL;
  check(
      PMPI_Type_get_contents(type, made.integers, made.addresses, made.types, &count, &no_address, &repeated),
      "MPI_Type_get_contents");
  return repeated;
}
inline void free_type(MPI_Datatype type) { check(PMPI_Type_free(&type), "MPI_Type_free"); }

/// Bytes from one element to the next.
inline std::ptrdiff_t type_extent(MPI_Datatype type) {
  MPI_Aint lower_bound = 0;
  MPI_Aint extent = 0;
  check(PMPI_Type_get_extent(type, &lower_bound, &extent), "MPI_Type_get_extent");
  return extent;
}

/// Bytes from the beginning of an element, which is that of its data, to the end of its data. Nothing where
/// the data begins elsewhere.
inline std::optional<std::size_t> type_span(MPI_Datatype type) {
  MPI_Aint begin = 0;
  MPI_Aint bytes = 0;
  check(PMPI_Type_get_true_extent(type, &begin, &bytes), "MPI_Type_get_true_extent");
  return begin == 0 ? std::optional(static_cast<std::size_t>(bytes)) : std::nullopt;
}

/// What MPI_Pack takes for elements of a datatype with gaps. Where the data counts from MPI_BOTTOM, which
/// MPICH's refuses, it counts from this object instead.
class Packable {
 public:
  Packable(const void* buffer, std::size_t count, MPI_Datatype type)
      : buffer_(const_cast<void*>(buffer)), count_(static_cast<int>(count)), type_(type) {
    if (buffer_ != nullptr) return;
    const MPI_Aint to_bottom = -reinterpret_cast<MPI_Aint>(this);
    check(PMPI_Type_create_hindexed(1, &count_, &to_bottom, type, &type_), "MPI_Type_create_hindexed");
    check(PMPI_Type_commit(&type_), "MPI_Type_commit");
    buffer_ = this;
    count_ = 1;
  }
  ~Packable() {
    if (buffer_ == this) static_cast<void>(PMPI_Type_free(&type_));
  }
  Packable(const Packable&) = delete;
  Packable& operator=(const Packable&) = delete;

  void pack(std::span<std::byte> to) const {
    int position = 0;
    check(PMPI_Pack(buffer_, count_, type_, to.data(), static_cast<int>(to.size()), &position, own_comm()),
          "MPI_Pack");
  }
  void unpack(std::span<const std::byte> from) const {
    int position = 0;
    check(PMPI_Unpack(from.data(), static_cast<int>(from.size()), &position, buffer_, count_, type_,
                      own_comm()),
          "MPI_Unpack");
  }

 private:
  void* buffer_;
  int count_;
  MPI_Datatype type_;
};

// ---- operators

/// `second` becomes `first op second`, element by element.
inline void reduce_local(const void* first, void* second, std::size_t count, MPI_Datatype type, MPI_Op op) {
  check(PMPI_Reduce_local(first, second, static_cast<int>(count), type, op), "MPI_Reduce_local");
}

// ---- handles of Fortran

inline MPI_Comm comm_of(MPI_Fint number) { return PMPI_Comm_f2c(number); }
inline MPI_Datatype type_of(MPI_Fint number) { return PMPI_Type_f2c(number); }
inline MPI_Op op_of(MPI_Fint number) { return PMPI_Op_f2c(number); }

}  // namespace cohort::preload::mpi
