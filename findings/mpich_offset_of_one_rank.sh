#!/usr/bin/env bash
# MPICH 4.0 ignores the offset of MPI_Allgatherv on a communicator of one rank: the data goes to the beginning of the
# buffer instead of where `displs` says. With several ranks it goes to the right places. Debian 12 has this version; programs that
# gather into a larger array work until they run on one rank.
#
# Seen with PyPI's mpich 4.0.3, one rank without a launcher, one int to offset 2: "7 0 0"; with 4.1.3: "0 0 7".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >program.c <<'C'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int own = 7, all[3] = {0, 0, 0}, count = 1, offset = 2;
  MPI_Init(&argc, &argv);
  MPI_Allgatherv(&own, 1, MPI_INT, all, &count, &offset, MPI_INT, MPI_COMM_WORLD);
  printf("%d %d %d\n", all[0], all[1], all[2]);
  MPI_Finalize();
  return 0;
}
C
# expect VERSION RESULT
expect() {
  local seen
  python3 -m venv "$1"
  "$1/bin/pip" -q install "mpich==$1"
  gcc -o "program$1" program.c -I "$1/include" -L "$1/lib" -l:libmpi.so.12 -Wl,-rpath,"$folder/$1/lib"
  seen=$(timeout 60 "./program$1")
  echo "MPICH $1: $seen"
  [[ $seen == "$2" ]] || { echo "changed: $2 before" >&2; exit 1; }
}
expect 4.0.3 "7 0 0"
expect 4.1.3 "0 0 7"
