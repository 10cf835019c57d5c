#include <type_traits>

#include "handles.h"
#include "preload/shim/mpi_abi.h"

// Needs what is above.
#include "handles_of.inc"

Handles handles_of_shim() { return all_handles(); }
