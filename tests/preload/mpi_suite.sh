#!/usr/bin/env bash
# Runs MPICH's own test suite without and with a library in LD_PRELOAD of the ranks, against one MPI, and says which
# programs it makes a difference to. Exits with 1 if one passes without and fails with it.
#
#   tests/preload/mpi_suite.sh [--library PATH] [--mpi openmpi|mpich|FOLDER] [--filter REGEX] [--jobs N] [--timeout SECONDS]
#       [--ranks N] [--results FILE] [--work FOLDER]
#
#   --library  what is preloaded; without it, the suite runs once, as a baseline
#   --mpi      Debian's Open MPI (default) or MPICH, which are installed, or what is in FOLDER/bin
#   --filter   only programs whose line (`coll/allred 4 -count=10`) the expression is found in
#   --jobs     programs beside each other; default: 1, for each has several ranks, which wait for each other busily
#   --timeout  of each program; default: 60, or what the suite's list says if that is more
#   --ranks    at most so many, unless a program passes with the listed number only; default: 4
#   --results  a line a program, separated by tabs; default: WORK/MPI.tsv
#   --work     keeps the suite and what was built of it; default: build/mpi-suite
#
# The suite is Debian's source package mpich, which apt takes from the archive once and checks. Parts: collectives,
# communicators, datatypes, topologies, threads, attributes, errors, groups and initialization in C; the first four in
# Fortran as well (mpif.h, mpi, mpi_f08). A program passes if it exits with 0 and prints "No Errors". One that makes a
# difference is repeated, up to three times each way; what differs only now and then is listed and not counted.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/preload/mpis.sh
source "$here/mpis.sh"
# shellcheck source=launch/mpirun-env.sh
source "$root/launch/mpirun-env.sh"
# shellcheck source=launch/preload.sh
source "$root/launch/preload.sh"

refuse() { echo "mpi_suite: $*; see --help" >&2; exit 2; }

version=4.0.2-3
parts=(coll comm datatype topo threads/coll threads/comm threads/init attr errhan group init errors/coll errors/comm
  f77/coll f77/comm f77/datatype f77/topo f90/coll f90/comm f90/datatype f90/topo f08/coll f08/comm f08/datatype f08/topo f08/subarray)

library="" mpi=openmpi filter="" jobs=1 timeout=60 ranks=4 results="" work=$root/build/mpi-suite
while (($#)); do
  case $1 in
    --library) library=$(realpath -e "${2:-}") || refuse "--library needs a file"; shift 2 ;;
    --mpi) mpi=${2:-}; shift 2 ;;
    --filter) filter=${2:-}; shift 2 ;;
    --jobs | --timeout | --ranks)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "$1 needs a number"
      declare "${1#--}=$2"
      shift 2 ;;
    --results) results=$(realpath "${2:-}") || refuse "--results needs a file"; shift 2 ;;
    --work) work=$(realpath "${2:-}") || refuse "--work needs a folder"; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
mpicc="" mpif77="" mpif90="" mpirun="" preloading=()
choose_mpi "$mpi"
[[ -z $library ]] || preload_by "$library"
mkdir -p "$work"
suite=$work/mpich-${version%-*}/test/mpi built=$work/$mpi log=$work/$mpi.build.txt

# Debian's sources are rarely among those that a machine has, so apt gets lists of its own.
take_suite() {
  local apt=$work/apt
  echo "taking the sources of mpich $version"
  rm -rf "$apt"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
  local apt_get=(apt-get -q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  (cd "$apt" && "${apt_get[@]}" update && "${apt_get[@]}" source --download-only "mpich=$version") >"$work/apt.txt" 2>&1 ||
    { tail -n 20 "$work/apt.txt" >&2; exit 1; }
  tar -C "$work" -xf "$apt/mpich_${version%-*}.orig.tar.xz" "mpich-${version%-*}/test/mpi"
  # Functions that MPI 3 removed, which Open MPI does not have any more, with the same arguments.
  sed -i 's/MPI_Type_\(hvector\|hindexed\)(/MPI_Type_create_\1(/' "$suite/dtpools/src/dtpools_custom.c"
  # Without this, mpi_f08 is only tested where the suite is configured by MPICH itself.
  # shellcheck disable=SC2016  # the words of its configure
  sed -i 's/test "$enable_f08" = "yes" -a "$FROM_MPICH" = "yes"/test "$enable_f08" = "yes"/' "$suite/configure"
  rm -rf "$apt"
}

configure_suite() {
  echo "configuring it for $mpi"
  rm -rf "$built"
  mkdir -p "$built"
  # Beside MPICH, an MPI is asked for nothing but what the standard has.
  local options=(--disable-cxx --disable-spawn --enable-threads=multiple --enable-fortran=all --without-cuda)
  [[ $strict == no ]] || options+=(--enable-strictmpi)
  command -v "$mpif90" >/dev/null || options+=(--enable-fortran=no)
  # GCC 10 and newer refuse what programs of mpif.h do with buffers of several types.
  (cd "$built" && "$suite/configure" "${options[@]}" CC=gcc F77=gfortran FC=gfortran MPICC="$mpicc" MPIF77="$mpif77" MPIFC="$mpif90" \
    MPICXX=false CFLAGS="-O1 -w" FFLAGS="-O1 -w -fallow-argument-mismatch" FCFLAGS="-O1 -w -fallow-argument-mismatch") >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; rm -rf "$built"; exit 1; }
}

# Programs that an older MPI lacks functions for are not built; the table says how many.
build_part() {
  local part=$1 programs
  [[ -d $built/$part ]] || return 0
  mapfile -t programs < <(cat "$suite/$part"/testlist{,.dtp} "$built/$part"/testlist{,.dtp} 2>/dev/null |
    awk '!/^[#!]/ && NF { print $1 }' | sort -u | while read -r name; do [[ -d $built/$part/$name ]] || echo "$name"; done)
  make -k -j "$compile_jobs" -C "$built/$part" "${programs[@]}" >>"$log" 2>&1 || true
}

strict=yes compile_jobs=$(nproc)
[[ $("$mpirun" --version 2>&1) != *HYDRA* ]] || strict=no
[[ -d $suite ]] || take_suite
[[ -e $built/config.status ]] || configure_suite
if [[ ! -e $built/complete ]]; then
  echo "building it with $mpicc"
  for part in util dtpools "${parts[@]}"; do
    if [[ $part == util || $part == dtpools ]]; then make -k -j "$compile_jobs" -C "$built/$part" >>"$log" 2>&1 || true; else build_part "$part"; fi
  done
  touch "$built/complete"
fi
[[ $strict == no ]] && strict=() || strict=(--strict)
logs=$work/$mpi.logs
rm -rf "$logs"
exec python3 "$here/mpi_suite.py" --suite "$suite" --built "$built" --mpirun "$mpirun" --preload="${preloading[*]@Q}" --library "$library" \
  --filter="$filter" --results "${results:-$work/$mpi.tsv}" --logs "$logs" --jobs "$jobs" --timeout "$timeout" --most-ranks "$ranks" \
  "${strict[@]}" "${parts[@]}"
