#!/usr/bin/env bash
# MPICH refuses MPI_Alltoallv where a rank has nothing to send and nothing to receive, no memory for it (both buffers are
# null), and passes one array of counts for both directions: "Buffers must not be aliased" (MPI_ERR_BUFFER). With two
# arrays of the same zeros it takes the call, and so it does MPI_Alltoall without elements. Exchanges that are symmetric
# have one array of counts, and ranks without a part in them null buffers, as those of a std::vector without elements.
#
# Seen with PyPI's mpich 4.0.3 and 5.0.2, two ranks: "alltoall 0, alltoallv of two arrays 0, of one 1" from each, where 1
# is MPI_ERR_BUFFER.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >program.c <<'C'
#include <mpi.h>
#include <stdio.h>

static int class_of(int status) {
  int result = 0;
  MPI_Error_class(status, &result);
  return result;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  const int sent[2] = {0, 0}, received[2] = {0, 0}, offsets[2] = {0, 0};
  const int plain = class_of(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, world));
  const int two = class_of(MPI_Alltoallv(NULL, sent, offsets, MPI_INT, NULL, received, offsets, MPI_INT, world));
  const int one = class_of(MPI_Alltoallv(NULL, sent, offsets, MPI_INT, NULL, sent, offsets, MPI_INT, world));
  printf("alltoall %d, alltoallv of two arrays %d, of one %d\n", plain, two, one);
  MPI_Finalize();
  return MPI_ERR_BUFFER != 1;
}
C
for version in 4.0.3 5.0.2; do
  python3 -m venv "$version"
  "$version/bin/pip" -q install "mpich==$version"
  gcc -o "program$version" program.c -I "$version/include" -L "$version/lib" -l:libmpi.so.12 -Wl,-rpath,"$folder/$version/lib"
  seen=$(timeout 60 "$version/bin/mpiexec" -n 2 "./program$version" | sort -u)
  echo "MPICH $version: $seen"
  [[ $seen == "alltoall 0, alltoallv of two arrays 0, of one 1" ]] || { echo "changed" >&2; exit 1; }
done
