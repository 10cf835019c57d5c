#include <type_traits>

#include "handles.h"
#include "handles_of.inc"
#include "preload/shim/mpi_abi.h"

Handles handles_of_shim() { return all_handles(); }
