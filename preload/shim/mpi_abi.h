// What the shim uses of MPI, as one of its three binary interfaces (ABIs) has it: this is the mpi.h of an MPI
// that need not be installed where Cohort is built. COHORT_ABI_OPEN_MPI, COHORT_ABI_MPICH or COHORT_ABI_MPI_5
// chooses. Functions are called by their PMPI names, which no other tool counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "predefined.h"

using MPI_Fint = int;
using MPI_Aint = std::ptrdiff_t;
using MPI_Count = long long;
struct MPI_Status;

inline constexpr int MPI_SUCCESS = 0;

#if defined(COHORT_ABI_OPEN_MPI)

inline constexpr const char* kAbiName = "Open MPI";
using MPI_Comm = struct ompi_communicator_t*;
using MPI_Datatype = struct ompi_datatype_t*;
using MPI_Op = struct ompi_op_t*;
using MPI_Info = struct ompi_info_t*;
using MPI_Errhandler = struct ompi_errhandler_t*;
inline constexpr int MPI_ERR_TRUNCATE = 15;
inline constexpr int MPI_ERR_OTHER = 16;
inline constexpr int MPI_MAX_ERROR_STRING = 256;
inline constexpr int MPI_ANY_SOURCE = -1;
inline constexpr int MPI_COMM_TYPE_SHARED = 0;
inline constexpr int MPI_COMBINER_NAMED = 0;
inline constexpr int MPI_COMBINER_DUP = 1;
inline constexpr int MPI_COMBINER_CONTIGUOUS = 2;
inline constexpr int MPI_COMBINER_F90_REAL = 14;
inline constexpr int MPI_COMBINER_F90_COMPLEX = 15;
inline constexpr int MPI_COMBINER_F90_INTEGER = 16;

// Handles are the addresses of objects in the library.
#define COHORT_HANDLE(Type, OPEN_MPI, MPICH, MPI_5) (reinterpret_cast<Type>(&OPEN_MPI))
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, KIND) extern char OPEN_MPI;
extern "C" {
COHORT_PREDEFINED_DATATYPES(COHORT_X)
COHORT_PREDEFINED_OPERATORS(COHORT_X)
COHORT_OTHER_OPERATORS(COHORT_X)
#undef COHORT_X
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5) extern char OPEN_MPI;
COHORT_PAIR_DATATYPES(COHORT_X)
extern char ompi_mpi_comm_world;
extern char ompi_mpi_comm_self;
extern char ompi_mpi_comm_null;
extern char ompi_mpi_info_null;
extern char ompi_mpi_datatype_null;
}
#undef COHORT_X
inline void* const MPI_IN_PLACE = reinterpret_cast<void*>(1);
inline MPI_Status* const MPI_STATUS_IGNORE = nullptr;

#elif defined(COHORT_ABI_MPICH)

inline constexpr const char* kAbiName = "MPICH";
using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Op = int;
using MPI_Info = int;
using MPI_Errhandler = int;
inline constexpr int MPI_ERR_TRUNCATE = 14;
inline constexpr int MPI_ERR_OTHER = 15;
inline constexpr int MPI_MAX_ERROR_STRING = 512;
inline constexpr int MPI_ANY_SOURCE = -2;
inline constexpr int MPI_COMM_TYPE_SHARED = 1;
inline constexpr int MPI_COMBINER_NAMED = 1;
inline constexpr int MPI_COMBINER_DUP = 2;
inline constexpr int MPI_COMBINER_CONTIGUOUS = 3;
inline constexpr int MPI_COMBINER_F90_REAL = 15;
inline constexpr int MPI_COMBINER_F90_COMPLEX = 16;
inline constexpr int MPI_COMBINER_F90_INTEGER = 17;
#define COHORT_HANDLE(Type, OPEN_MPI, MPICH, MPI_5) (static_cast<Type>(MPICH))
inline void* const MPI_IN_PLACE = reinterpret_cast<void*>(-1);
inline MPI_Status* const MPI_STATUS_IGNORE = reinterpret_cast<MPI_Status*>(1);

#elif defined(COHORT_ABI_MPI_5)

inline constexpr const char* kAbiName = "MPI-5";
using MPI_Comm = struct MPI_ABI_Comm*;
using MPI_Datatype = struct MPI_ABI_Datatype*;
using MPI_Op = struct MPI_ABI_Op*;
using MPI_Info = struct MPI_ABI_Info*;
using MPI_Errhandler = struct MPI_ABI_Errhandler*;
inline constexpr int MPI_ERR_TRUNCATE = 15;
inline constexpr int MPI_ERR_OTHER = 16;
inline constexpr int MPI_MAX_ERROR_STRING = 512;
inline constexpr int MPI_MAX_LIBRARY_VERSION_STRING = 8192;
inline constexpr int MPI_ANY_SOURCE = -1;
inline constexpr int MPI_COMM_TYPE_SHARED = 221;
inline constexpr int MPI_COMBINER_NAMED = 101;
inline constexpr int MPI_COMBINER_DUP = 102;
inline constexpr int MPI_COMBINER_CONTIGUOUS = 103;
inline constexpr int MPI_COMBINER_F90_REAL = 113;
inline constexpr int MPI_COMBINER_F90_COMPLEX = 114;
inline constexpr int MPI_COMBINER_F90_INTEGER = 115;
#define COHORT_HANDLE(Type, OPEN_MPI, MPICH, MPI_5) (reinterpret_cast<Type>(std::uintptr_t{MPI_5}))
inline void* const MPI_IN_PLACE = reinterpret_cast<void*>(1);
inline MPI_Status* const MPI_STATUS_IGNORE = nullptr;

#else
#error "define COHORT_ABI_OPEN_MPI, COHORT_ABI_MPICH or COHORT_ABI_MPI_5"
#endif

inline const MPI_Comm MPI_COMM_WORLD = COHORT_HANDLE(MPI_Comm, ompi_mpi_comm_world, 0x44000000, 0x101);
inline const MPI_Comm MPI_COMM_SELF = COHORT_HANDLE(MPI_Comm, ompi_mpi_comm_self, 0x44000001, 0x102);
inline const MPI_Comm MPI_COMM_NULL = COHORT_HANDLE(MPI_Comm, ompi_mpi_comm_null, 0x04000000, 0x100);
inline const MPI_Info MPI_INFO_NULL = COHORT_HANDLE(MPI_Info, ompi_mpi_info_null, 0x1c000000, 0x130);
inline const MPI_Datatype MPI_DATATYPE_NULL =
    COHORT_HANDLE(MPI_Datatype, ompi_mpi_datatype_null, 0x0c000000, 0x200);
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, KIND) \
  inline const MPI_Datatype NAME = COHORT_HANDLE(MPI_Datatype, OPEN_MPI, MPICH, MPI_5);
COHORT_PREDEFINED_DATATYPES(COHORT_X)
#undef COHORT_X
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, OP) \
  inline const MPI_Op NAME = COHORT_HANDLE(MPI_Op, OPEN_MPI, MPICH, MPI_5);
COHORT_PREDEFINED_OPERATORS(COHORT_X)
COHORT_OTHER_OPERATORS(COHORT_X)
#undef COHORT_X
#define COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5) \
  inline const MPI_Datatype NAME = COHORT_HANDLE(MPI_Datatype, OPEN_MPI, MPICH, MPI_5);
COHORT_PAIR_DATATYPES(COHORT_X)
#undef COHORT_X

using MPI_Comm_copy_attr_function = int(MPI_Comm, int, void*, void*, void*, int*);
using MPI_Comm_errhandler_function = void(MPI_Comm*, int*, ...);
using MPI_Comm_delete_attr_function = int(MPI_Comm, int, void*, void*);

extern "C" {
int PMPI_Barrier(MPI_Comm);
int PMPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm);
int PMPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
int PMPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Comm_rank(MPI_Comm, int*);
int PMPI_Comm_size(MPI_Comm, int*);
int PMPI_Comm_test_inter(MPI_Comm, int*);
int PMPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm*);
int PMPI_Comm_dup(MPI_Comm, MPI_Comm*);
int PMPI_Comm_free(MPI_Comm*);
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*, void*);
int PMPI_Comm_set_attr(MPI_Comm, int, void*);
int PMPI_Comm_delete_attr(MPI_Comm, int);
int PMPI_Comm_get_attr(MPI_Comm, int, void*, int*);
int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function*, MPI_Errhandler*);
int PMPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler);
int PMPI_Comm_call_errhandler(MPI_Comm, int);
int PMPI_Add_error_class(int*);
int PMPI_Add_error_code(int, int*);
int PMPI_Add_error_string(int, const char*);
int PMPI_Error_class(int, int*);
int PMPI_Get_library_version(char*, int*);
int PMPI_Error_string(int, char*, int*);
int PMPI_Abort(MPI_Comm, int);
int PMPI_Iprobe(int, int, MPI_Comm, int*, MPI_Status*);
int PMPI_Type_size_x(MPI_Datatype, MPI_Count*);
int PMPI_Type_get_envelope(MPI_Datatype, int*, int*, int*, int*);
// Of MPI 4; null where the library has none.
[[gnu::weak]] int PMPI_Type_get_envelope_c(MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*,
                                           int*);
int PMPI_Type_get_contents(MPI_Datatype, int, int, int, int*, MPI_Aint*, MPI_Datatype*);
int PMPI_Type_create_hindexed(int, const int*, const MPI_Aint*, MPI_Datatype, MPI_Datatype*);
int PMPI_Type_commit(MPI_Datatype*);
int PMPI_Type_free(MPI_Datatype*);
int PMPI_Type_get_extent(MPI_Datatype, MPI_Aint*, MPI_Aint*);
int PMPI_Type_get_true_extent(MPI_Datatype, MPI_Aint*, MPI_Aint*);
int PMPI_Reduce_local(const void*, void*, int, MPI_Datatype, MPI_Op);
int PMPI_Pack_size(int, MPI_Datatype, MPI_Comm, int*);
int PMPI_Pack(const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm);
int PMPI_Unpack(const void*, int, int*, void*, int, MPI_Datatype, MPI_Comm);
MPI_Comm PMPI_Comm_f2c(MPI_Fint);
MPI_Datatype PMPI_Type_f2c(MPI_Fint);
MPI_Op PMPI_Op_f2c(MPI_Fint);
}
