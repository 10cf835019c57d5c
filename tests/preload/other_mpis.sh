#!/usr/bin/env bash
# The programs of this folder under other MPI libraries than the one that Cohort is built with, each with and without
# libcohort-mpi.so: MPICH of Debian, MPICH 5 and Intel MPI of PyPI, the last two by MPICH's binary interface and by that of
# MPI 5. Takes the packages at run time; prints a line for each.
#
#   tests/preload/other_mpis.sh [--library PATH] [--ranks N]
#
#   --library PATH   default build/lib/libcohort-mpi.so
#   --ranks N        default 2
#
# Exits with 1 if a program fails with the library that passes without it, or if the library has no part in it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/preload/mpis.sh
source "$here/mpis.sh"
# shellcheck source=launch/preload.sh
source "$root/launch/preload.sh"

refuse() { echo "other_mpis.sh: $*; see --help" >&2; exit 2; }
library=$root/build/lib/libcohort-mpi.so ranks=2
while (($#)); do
  case $1 in
    --library) [[ -f ${2:-} ]] || refuse "--library needs a file"; library=$(realpath "$2"); shift 2 ;;
    --ranks) [[ ${2:-} =~ ^[1-9][0-9]?$ ]] || refuse "--ranks needs a number from 1 to 99"; ranks=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
[[ -f $library ]] || refuse "there is no $library: build the target preload"
preload_by "$library" "${library%.so}-memory.so"
with_memory=("${preloading[@]}")
preload_by "$library"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# check NAME LAUNCHER COMPILER...: builds and runs the programs.
check() {
  local name=$1 launcher=$2 seconds program result preloaded variables served status
  shift 2
  for program in collectives operators errors memory sessions; do
    "$@" -O1 -w -o "$scratch/$program" -x c "$here/$program.c" -x none "${libraries[@]}" -lm
  done
  for program in collectives operators "errors arguments" memory sessions; do
    result=()
    for preloaded in no yes; do
      variables=()
      [[ $preloaded == no ]] || variables=("${preloading[@]}" COHORT_RUN_NUMBERS=1)
      [[ $preloaded$program != yesmemory ]] || variables=("${with_memory[@]}" COHORT_RUN_NUMBERS=1)
      seconds=$SECONDS status=0
      # shellcheck disable=SC2086  # the program and its argument
      timeout 300 "$launcher" -n "$ranks" env "${variables[@]}" "$scratch"/$program >"$scratch/log" 2>&1 || status=$?
      result+=("$status in $((SECONDS - seconds)) s")
    done
    served=$(grep -c '^cohort: MPI_.* by Cohort' "$scratch/log" || true)
    printf '%-24s %-18s without: status %s; with: status %s, %s collectives by Cohort\n' "$name" "$program" "${result[@]}" "$served"
    if [[ ${result[0]} == 0* && (${result[1]} != 0* || $served == 0) ]]; then
      failed=1
      head -n 20 "$scratch/log"
    fi
  done
}

choose_mpi mpich
libraries=()
check "MPICH of Debian" "${mpirun/mpirun/mpiexec}" "$mpicc"

# An environment of Python for each, since both have a libmpi.so.12.
python3 -m venv "$scratch/mpich"
"$scratch/mpich/bin/pip" -q install mpich==5.0.2
python3 -m venv "$scratch/intel"
"$scratch/intel/bin/pip" -q install impi-devel==2021.18.0 impi-rt==2021.18.0
export I_MPI_FABRICS=shm
for mpi in mpich intel; do
  folder=$scratch/$mpi
  mkdir "$folder/abi"
  cp "$folder/include/mpi_abi.h" "$folder/abi/mpi.h"
  libraries=(-L "$folder/lib" -l:libmpi.so.12 "-Wl,-rpath,$folder/lib")
  check "$mpi, ABI of MPICH" "$folder/bin/mpiexec" gcc -std=gnu11 -I "$folder/include"
  libraries=(-L "$folder/lib" -l:libmpi_abi.so.1 "-Wl,-rpath,$folder/lib")
  check "$mpi, ABI of MPI 5" "$folder/bin/mpiexec" gcc -std=gnu11 -I "$folder/abi"
done
exit "$failed"
