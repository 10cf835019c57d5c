#!/usr/bin/env bash
# Two libraries with the binary interface (ABI) of MPI 5, both named libmpi_abi.so.1, have different numbers for
# MPI_ERRORS_RETURN: each one's is MPI_ERRORS_ABORT of the other. So a program that was compiled with the mpi_abi.h of one
# and asks for errors to be returned gets them from that library, and is ended by the other.
#
# Seen with PyPI's mpich 5.0.2 and impi-devel, impi-rt 2021.18.0 (Intel MPI), one rank without a launcher:
#   mpich's header: MPI_ERRORS_ABORT 0x142, MPI_ERRORS_RETURN 0x143; Intel's: 0x143 and 0x142
#   program of mpich's header: "returned" with mpich's library, ended with Intel's
#   program of Intel's header: "returned" with Intel's library, ended with mpich's
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv mpich
mpich/bin/pip -q install mpich==5.0.2
python3 -m venv intel
intel/bin/pip -q install impi-devel==2021.18.0 impi-rt==2021.18.0

cat >program.c <<'C'
#include <mpi_abi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int value = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int status = MPI_Bcast(&value, 1, MPI_INT, 99, MPI_COMM_WORLD); /* there is no such root */
  puts(status == MPI_SUCCESS ? "no error" : "returned");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
C
export I_MPI_FABRICS=shm
# expect HEADER LIBRARY OUTCOME
expect() {
  local seen
  gcc -o program program.c -I "$1/include" -L "$2/lib" -l:libmpi_abi.so.1 -Wl,-rpath,"$folder/$2/lib"
  seen=$(timeout 60 ./program 2>errors) || seen=ended
  echo "header of $1, library of $2: $seen"
  [[ $seen == "$3" ]] || { echo "changed: $3 before" >&2; exit 1; }
}
expect mpich mpich returned
expect mpich intel ended
expect intel intel returned
expect intel mpich ended
