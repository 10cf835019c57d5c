#!/usr/bin/env bash
# What libcohort-mpi.so does to programs that know nothing of it: which calls Cohort carries out, how errors end, and
# that other processes are left alone.
#
#   preload.sh LIBRARY COLLECTIVES OPERATORS ERRORS MEMORY FORTRAN LAUNCHER...
#
#   COLLECTIVES ... MEMORY   the programs of this folder
#   FORTRAN                  the MPI's compiler for Fortran, or empty
#   LAUNCHER                 a command line; RANKS in it stands for their number
set -euo pipefail
library=$1 collectives=$2 operators=$3 errors=$4 memory=$5 fortran=$6
shift 6
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/preload.sh
source "$here/../../launch/preload.sh"
preload_by "$library"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "preload: $*" >&2; exit 1; }
contains() { [[ $2 == *"$1"* ]] || fail "no '$1' in: $2"; }
lacks() { [[ $2 != *"$1"* ]] || fail "'$1' is in: $2"; }

said=$(preload_by "/a:b/libcohort-mpi.so" 2>&1) && fail "a folder with a colon is taken"
contains "ends a name at a colon" "$said"

launcher=("$@")
# run RANKS [VARIABLE=VALUE ...] PROGRAM [ARGUMENT ...]: sets `said` and `status`.
run() {
  local ranks=$1
  shift
  status=0
  said=$("${launcher[@]/#RANKS/$ranks}" env "${preloading[@]}" COHORT_RUN_NUMBERS=1 "$@" 2>&1) || status=$?
}

run 2 "$collectives"
[[ $status == 0 ]] || fail "status $status: $said"
contains "all results are right" "$said"
for name in Barrier Bcast Reduce Allreduce Allgather Allgatherv Gather Scatter Reduce_scatter Reduce_scatter_block Alltoall \
  Alltoallv
do
  [[ $said =~ MPI_$name\ of\ rank\ 0:\ [1-9][0-9]*\ by\ Cohort ]] || fail "MPI_$name was not carried out: $said"
done
contains "cohort numbers: 2 workers" "$said"  # the program's own communicator is the one that is observed

for ranks in 2 3 5; do
  run "$ranks" "$operators"
  [[ $status == 0 ]] || fail "operators, $ranks ranks: status $status: $said"
  contains "all results are right" "$said"
  for name in Reduce Allreduce Scan Exscan; do
    # Long ones, and the first ones of exact operators, are the MPI's.
    [[ $said =~ MPI_$name\ of\ rank\ 0:\ [1-9][0-9]+\ by\ Cohort ]] || fail "operators of MPI_$name were not carried out: $said"
  done
done
run 2 COHORT_MPI_CALLS=exact "$operators"
[[ $status == 0 ]] || fail "operators, exact: status $status: $said"
contains "all results are right" "$said"

run 2 COHORT_MPI_CALLS=exact "$collectives"
[[ $status == 0 ]] || fail "exact: status $status: $said"
contains "all results are right" "$said"
contains "by the MPI for their operator or datatype" "$said"

# Few small calls: the MPI carries them out, and each takes a turn of the scheduler where the machine is busy.
run 2 COHORT_MPI_CALLS=none "$collectives" 4000
[[ $status == 0 ]] || fail "none: status $status: $said"
contains "all results are right" "$said"
lacks "by Cohort" "$said"

run 2 "$memory"
[[ $status == 0 ]] || fail "memory of its own: status $status: $said"
contains "all is as it should be" "$said"
lacks "moved into" "$said"

own_preloading=("${preloading[@]}")
preload_by "$library" "${library%.so}-memory.so"
for ranks in 2 3; do
  run "$ranks" "$memory"
  [[ $status == 0 ]] || fail "memory, $ranks ranks: status $status: $said"
  contains "all is as it should be" "$said"
  contains "KiB of rank 0's memory were moved into the node's shared memory" "$said"
done
run 2 "$collectives"
[[ $status == 0 ]] || fail "memory, collectives: status $status: $said"
contains "all results are right" "$said"
preloading=("${own_preloading[@]}")

run 2 COHORT_MPI_CALLS=some "$collectives"
[[ $status != 0 ]] || fail "a wrong setting is not refused: $said"
contains "invalid COHORT_MPI_CALLS=some: expected one of all|exact|none" "$said"

run 3 "$errors" differ
[[ $status == 3 ]] || fail "differ: status $status: $said"
for rank in 0 1 2; do contains "rank $rank: MPI_ERR_OTHER: MPI_Allreduce: " "$said"; done
contains "members disagree: member 0" "$said"

run 3 "$errors" blocks
[[ $status == 3 ]] || fail "blocks: status $status: $said"
[[ $said =~ "rank 0: MPI_ERR_OTHER: MPI_Alltoallv: member 1 ("[^$'\n']*" sends 24 bytes to member 0 ("[^$'\n']*", which expects 16" ]] ||
  fail "blocks: rank 0 is not told who: $said"
for rank in 1 2; do contains "rank $rank: another class" "$said"; done
run 3 "$errors" large-blocks
[[ $status == 3 ]] || fail "large blocks: status $status: $said"
contains "sends 800000 bytes to member 0" "$said"
for rank in 1 2; do
  [[ $said =~ "rank $rank: MPI_ERR_OTHER: MPI_Alltoallv: member 1 ("[^$'\n']*" sends a block to member 0 (" ]] ||
    fail "large blocks: rank $rank is not told who: $said"
done

# Whose call is Cohort's finds out that the others are, or have been, in one of the MPI's.
for other in larger:MPI_Allreduce other:MPI_Scan after:MPI_Scan pairs:MPI_Gatherv end:MPI_Finalize; do
  run 3 "$errors" astray "${other%:*}"
  [[ $status == 3 ]] || fail "astray, $other: status $status: $said"
  [[ $said =~ "rank 0: MPI_ERR_OTHER: "[^$'\n']*": member "[12]" ("[^$'\n']*" called ${other#*:}, which is not carried out here" ]] ||
    fail "astray, $other: rank 0 is not told who: $said"
  lacks "this took long" "$said"
done
run 3 "$errors" astray ahead
[[ $status == 3 && $said =~ "rank 0: MPI_ERR_OTHER: MPI_Barrier: "[^$'\n']*" called reduce(int32[10]" ]] || fail "ahead: status $status: $said"
lacks "this took long" "$said"
for other in scans nearly; do
  run 3 "$errors" astray "$other"
  [[ $status == 3 && $said =~ "members disagree: member 0" ]] || fail "astray, $other: status $status: $said"
  lacks "this took long" "$said"
done
run 3 "$errors" astray refused
[[ $status == 0 ]] || fail "a call that the MPI has refused: status $status: $said"

run 2 "$errors" arguments
[[ $status == 0 ]] || fail "arguments: status $status: $said"
contains "all errors are right" "$said"

run 3 "$errors" kill
[[ $status != 0 ]] || fail "kill: status $status: $said"
contains "worker 1 (host" "$said"

# Programs without MPI, and those whose MPI is not known, are left alone.
[[ $(env "${preloading[@]}" /bin/echo left alone 2>&1) == "left alone" ]] || fail "a program without MPI says something"
cat >"$scratch/mpi.c" <<'END'
#include <stdio.h>
#include <string.h>
int MPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Some MPI 1.0");
  *length = (int)strlen(text);
  return 0;
}
int MPI_Barrier(int comm) { return comm + 1; }
END
cat >"$scratch/program.c" <<'END'
int MPI_Barrier(int comm);
int main(void) { return MPI_Barrier(6); }
END
if command -v gcc >/dev/null; then
  gcc -shared -fPIC -o "$scratch/libmpi.so" "$scratch/mpi.c"
  gcc -o "$scratch/program" "$scratch/program.c" -L"$scratch" -lmpi -Wl,-rpath,"$scratch"
  status=0
  said=$(env "${preloading[@]}" "$scratch/program" 2>&1) || status=$?
  [[ $status == 7 ]] || fail "an unknown MPI: status $status: $said"
  [[ $said == "cohort: this MPI is not known: Some MPI 1.0; the program runs as without libcohort-mpi.so" ]] ||
    fail "an unknown MPI: $said"
fi

# Of Fortran's three dialects, MPI_IN_PLACE above all.
if [[ -n $fortran ]]; then
  for source in "$here"/in_place.*; do
    program=$scratch/${source##*.}
    # mpif.h declares no arguments, and gfortran takes it for a mistake that they are arrays and numbers in turn.
    "$fortran" -w -fallow-argument-mismatch -o "$program" "$source" 2>"$scratch/log" ||
      fail "$source: $(<"$scratch/log")"
    run 2 "$program"
    [[ $status == 0 ]] || fail "$source: status $status: $said"
    [[ $said =~ MPI_Allreduce\ of\ rank\ 0:\ [1-9][0-9]*\ by\ Cohort ]] || fail "$source: not carried out: $said"
  done
else
  echo "preload: Fortran is left out: no compiler for it"
fi
