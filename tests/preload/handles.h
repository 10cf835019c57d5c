// Handles and constants of MPI, as numbers, by mpi.h and by the shim.
#pragma once

#include <cstdint>
#include <map>
#include <string>

using Handles = std::map<std::string, std::intptr_t>;

Handles handles_of_mpi();
Handles handles_of_shim();
