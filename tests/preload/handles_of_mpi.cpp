#include <mpi.h>

#include <type_traits>

#include "handles.h"
#include "preload/shim/predefined.h"

// Needs what is above.
#include "handles_of.inc"

Handles handles_of_mpi() { return all_handles(); }
