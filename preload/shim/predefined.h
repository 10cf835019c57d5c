// The datatypes and operators that the MPI standard predefines and that Cohort knows, with what the three
// binary interfaces (ABIs) have for them: Open MPI the address of an object, MPICH and MPI-5 a number. From
// the mpi.h of Open MPI 4.1, of MPICH 4.0 and of MPI-5.0 (chapter "Application Binary Interface"); a test
// compares them with the mpi.h that is installed.
#pragma once

/// COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, KIND): KIND is what the elements are, see ElementKind.
#define COHORT_PREDEFINED_DATATYPES(COHORT_X)                                                 \
  COHORT_X(MPI_SIGNED_CHAR, ompi_mpi_signed_char, 0x4c000118, 0x244, kInteger)                \
  COHORT_X(MPI_SHORT, ompi_mpi_short, 0x4c000203, 0x208, kInteger)                            \
  COHORT_X(MPI_INT, ompi_mpi_int, 0x4c000405, 0x209, kInteger)                                \
  COHORT_X(MPI_LONG, ompi_mpi_long, 0x4c000807, 0x20a, kInteger)                              \
  COHORT_X(MPI_LONG_LONG, ompi_mpi_long_long_int, 0x4c000809, 0x20b, kInteger)                \
  COHORT_X(MPI_INT8_T, ompi_mpi_int8_t, 0x4c000137, 0x240, kInteger)                          \
  COHORT_X(MPI_INT16_T, ompi_mpi_int16_t, 0x4c000238, 0x248, kInteger)                        \
  COHORT_X(MPI_INT32_T, ompi_mpi_int32_t, 0x4c000439, 0x250, kInteger)                        \
  COHORT_X(MPI_INT64_T, ompi_mpi_int64_t, 0x4c00083a, 0x258, kInteger)                        \
  COHORT_X(MPI_AINT, ompi_mpi_aint, 0x4c000843, 0x201, kInteger)                              \
  COHORT_X(MPI_OFFSET, ompi_mpi_offset, 0x4c000844, 0x203, kInteger)                          \
  COHORT_X(MPI_COUNT, ompi_mpi_count, 0x4c000845, 0x202, kInteger)                            \
  COHORT_X(MPI_INTEGER, ompi_mpi_integer, 0x4c00041b, 0x219, kInteger)                        \
  COHORT_X(MPI_INTEGER1, ompi_mpi_integer1, 0x4c00012d, 0x2c1, kInteger)                      \
  COHORT_X(MPI_INTEGER2, ompi_mpi_integer2, 0x4c00022f, 0x2c9, kInteger)                      \
  COHORT_X(MPI_INTEGER4, ompi_mpi_integer4, 0x4c000430, 0x2d1, kInteger)                      \
  COHORT_X(MPI_INTEGER8, ompi_mpi_integer8, 0x4c000831, 0x2d9, kInteger)                      \
  COHORT_X(MPI_UNSIGNED_CHAR, ompi_mpi_unsigned_char, 0x4c000102, 0x245, kUnsigned)           \
  COHORT_X(MPI_UNSIGNED_SHORT, ompi_mpi_unsigned_short, 0x4c000204, 0x20c, kUnsigned)         \
  COHORT_X(MPI_UNSIGNED, ompi_mpi_unsigned, 0x4c000406, 0x20d, kUnsigned)                     \
  COHORT_X(MPI_UNSIGNED_LONG, ompi_mpi_unsigned_long, 0x4c000808, 0x20e, kUnsigned)           \
  COHORT_X(MPI_UNSIGNED_LONG_LONG, ompi_mpi_unsigned_long_long, 0x4c000819, 0x20f, kUnsigned) \
  COHORT_X(MPI_UINT8_T, ompi_mpi_uint8_t, 0x4c00013b, 0x241, kUnsigned)                       \
  COHORT_X(MPI_UINT16_T, ompi_mpi_uint16_t, 0x4c00023c, 0x249, kUnsigned)                     \
  COHORT_X(MPI_UINT32_T, ompi_mpi_uint32_t, 0x4c00043d, 0x251, kUnsigned)                     \
  COHORT_X(MPI_UINT64_T, ompi_mpi_uint64_t, 0x4c00083e, 0x259, kUnsigned)                     \
  COHORT_X(MPI_FLOAT, ompi_mpi_float, 0x4c00040a, 0x210, kFloating)                           \
  COHORT_X(MPI_DOUBLE, ompi_mpi_double, 0x4c00080b, 0x214, kFloating)                         \
  COHORT_X(MPI_REAL, ompi_mpi_real, 0x4c00041c, 0x21a, kFloating)                             \
  COHORT_X(MPI_REAL4, ompi_mpi_real4, 0x4c000427, 0x2d2, kFloating)                           \
  COHORT_X(MPI_REAL8, ompi_mpi_real8, 0x4c000829, 0x2da, kFloating)                           \
  COHORT_X(MPI_DOUBLE_PRECISION, ompi_mpi_dblprec, 0x4c00081f, 0x21c, kFloating)              \
  COHORT_X(MPI_C_FLOAT_COMPLEX, ompi_mpi_c_float_complex, 0x4c000840, 0x212, kComplex)        \
  COHORT_X(MPI_C_DOUBLE_COMPLEX, ompi_mpi_c_double_complex, 0x4c001041, 0x216, kComplex)      \
  COHORT_X(MPI_COMPLEX, ompi_mpi_cplex, 0x4c00081e, 0x21b, kComplex)                          \
  COHORT_X(MPI_COMPLEX8, ompi_mpi_complex8, 0x4c000828, 0x2db, kComplex)                      \
  COHORT_X(MPI_COMPLEX16, ompi_mpi_complex16, 0x4c00102a, 0x2e3, kComplex)                    \
  COHORT_X(MPI_DOUBLE_COMPLEX, ompi_mpi_dblcplex, 0x4c001022, 0x21d, kComplex)                \
  COHORT_X(MPI_CHAR, ompi_mpi_char, 0x4c000101, 0x243, kBytes)                                \
  COHORT_X(MPI_WCHAR, ompi_mpi_wchar, 0x4c00040e, 0x23c, kBytes)                              \
  COHORT_X(MPI_BYTE, ompi_mpi_byte, 0x4c00010d, 0x247, kBytes)                                \
  COHORT_X(MPI_PACKED, ompi_mpi_packed, 0x4c00010f, 0x207, kBytes)                            \
  COHORT_X(MPI_C_BOOL, ompi_mpi_c_bool, 0x4c00013f, 0x238, kBytes)                            \
  COHORT_X(MPI_LONG_DOUBLE, ompi_mpi_long_double, 0x4c00100c, 0x220, kBytes)                  \
  COHORT_X(MPI_CHARACTER, ompi_mpi_character, 0x4c00011a, 0x21e, kBytes)                      \
  COHORT_X(MPI_LOGICAL, ompi_mpi_logical, 0x4c00041d, 0x218, kBytes)

/// COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, OP): OP is the ReduceOp.
#define COHORT_PREDEFINED_OPERATORS(COHORT_X)                   \
  COHORT_X(MPI_SUM, ompi_mpi_op_sum, 0x58000003, 0x21, kSum)    \
  COHORT_X(MPI_PROD, ompi_mpi_op_prod, 0x58000004, 0x24, kProd) \
  COHORT_X(MPI_MIN, ompi_mpi_op_min, 0x58000002, 0x22, kMin)    \
  COHORT_X(MPI_MAX, ompi_mpi_op_max, 0x58000001, 0x23, kMax)

/// COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5, KIND): the other ones, which only the MPI can apply; KIND is their
/// OperatorKind.
#define COHORT_OTHER_OPERATORS(COHORT_X)                                       \
  COHORT_X(MPI_LAND, ompi_mpi_op_land, 0x58000005, 0x30, kLogical)             \
  COHORT_X(MPI_LOR, ompi_mpi_op_lor, 0x58000007, 0x31, kLogical)               \
  COHORT_X(MPI_LXOR, ompi_mpi_op_lxor, 0x58000009, 0x32, kLogical)             \
  COHORT_X(MPI_BAND, ompi_mpi_op_band, 0x58000006, 0x28, kBitwise)             \
  COHORT_X(MPI_BOR, ompi_mpi_op_bor, 0x58000008, 0x29, kBitwise)               \
  COHORT_X(MPI_BXOR, ompi_mpi_op_bxor, 0x5800000a, 0x2a, kBitwise)             \
  COHORT_X(MPI_MINLOC, ompi_mpi_op_minloc, 0x5800000b, 0x38, kPlace)           \
  COHORT_X(MPI_MAXLOC, ompi_mpi_op_maxloc, 0x5800000c, 0x39, kPlace)           \
  COHORT_X(MPI_REPLACE, ompi_mpi_op_replace, 0x5800000d, 0x3c, kOfNoReduction) \
  COHORT_X(MPI_NO_OP, ompi_mpi_op_no_op, 0x5800000e, 0x3d, kOfNoReduction)     \
  COHORT_X(MPI_OP_NULL, ompi_mpi_op_null, 0x18000000, 0x20, kOfNoReduction)

/// COHORT_X(NAME, OPEN_MPI, MPICH, MPI_5): a number and the place where it is, for MPI_MINLOC and MPI_MAXLOC.
#define COHORT_PAIR_DATATYPES(COHORT_X)                                  \
  COHORT_X(MPI_FLOAT_INT, ompi_mpi_float_int, 0x8c000000, 0x228)         \
  COHORT_X(MPI_DOUBLE_INT, ompi_mpi_double_int, 0x8c000001, 0x229)       \
  COHORT_X(MPI_LONG_INT, ompi_mpi_long_int, 0x8c000002, 0x22a)           \
  COHORT_X(MPI_2INT, ompi_mpi_2int, 0x4c000816, 0x22b)                   \
  COHORT_X(MPI_SHORT_INT, ompi_mpi_short_int, 0x8c000003, 0x22c)         \
  COHORT_X(MPI_LONG_DOUBLE_INT, ompi_mpi_longdbl_int, 0x8c000004, 0x22d) \
  COHORT_X(MPI_2REAL, ompi_mpi_2real, 0x4c000821, 0x230)                 \
  COHORT_X(MPI_2DOUBLE_PRECISION, ompi_mpi_2dblprec, 0x4c001023, 0x231)  \
  COHORT_X(MPI_2INTEGER, ompi_mpi_2integer, 0x4c000820, 0x232)
