#include <mpi.h>

#include <type_traits>

#include "handles.h"
#include "handles_of.inc"
#include "preload/shim/predefined.h"

Handles handles_of_mpi() { return all_handles(); }
