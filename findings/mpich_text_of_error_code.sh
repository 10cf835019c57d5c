#!/usr/bin/env bash
# A code that MPI_Add_error_code makes in one of MPI's own classes has no text in MPICH 4.0 and 4.1: MPI_Add_error_string takes one and
# returns MPI_SUCCESS, and MPI_Error_string then answers with a text of MPICH's own, 4.0 about something else. Codes in a class of the
# program's (MPI_Add_error_class) have theirs. MPI allows both kinds of class. Debian 12 has 4.0.
#
# Seen with PyPI's mpich 4.0.3: "Network type AF_INET invalid in call to inet_pton"; with 4.1.3: "Unknown error class"; with 4.2.3 the
# program's text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >program.c <<'C'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  char text[MPI_MAX_ERROR_STRING];
  int own_class, codes[2], length;
  MPI_Init(&argc, &argv);
  MPI_Add_error_class(&own_class);
  MPI_Add_error_code(MPI_ERR_OTHER, &codes[0]);
  MPI_Add_error_code(own_class, &codes[1]);
  for (int i = 0; i < 2; ++i) {
    int status = MPI_Add_error_string(codes[i], "the solver diverges");
    MPI_Error_string(codes[i], text, &length);
    printf("%s: %d, %s\n", i == 0 ? "MPI_ERR_OTHER" : "own class", status, text);
  }
  MPI_Finalize();
  return 0;
}
C
# expect VERSION TEXT: of the code in MPI_ERR_OTHER
expect() {
  local seen
  python3 -m venv "$1"
  "$1/bin/pip" -q install "mpich==$1"
  gcc -o "program$1" program.c -I "$1/include" -L "$1/lib" -l:libmpi.so.12 -Wl,-rpath,"$folder/$1/lib"
  seen=$(timeout 60 "./program$1")
  echo "MPICH $1:"
  echo "$seen"
  [[ $seen == "MPI_ERR_OTHER: 0, "*"$2"*"own class: 0, the solver diverges" ]] || { echo "changed: '$2' before" >&2; exit 1; }
}
expect 4.0.3 "Network type AF_INET invalid in call to inet_pton"
expect 4.1.3 "Unknown error class"
expect 4.2.3 "the solver diverges"
