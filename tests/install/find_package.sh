#!/usr/bin/env bash
# Installs a build of Cohort into a temporary prefix and uses it as its readers would: the project beside
# this script is built against it by CMake and by pkg-config and runs, cohort-run works there, a project adds its sources, and a project with
# another MPI library is refused.
#
#   find_package.sh CMAKE GENERATOR BUILD_DIR CONSUMER_DIR LAUNCHER...
set -euo pipefail

cmake=$1 generator=$2 consumer=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "find_package: $*" >&2; exit 1; }
# shellcheck source=tests/install/consume.sh
source "$(dirname "${BASH_SOURCE[0]}")/consume.sh"

consume "$@"
consume_by_pkg_config "${@:3}"
said=$("$work/prefix/bin/cohort-run" --launcher mpirun --dry-run -n 1 true) || fail "the installed cohort-run does not run"
[[ $said == *OMPI_ALLOW_RUN_AS_ROOT=1*" mpirun -n 1 "* || -n ${OMPI_ALLOW_RUN_AS_ROOT:-} ]] || fail "it says: $said"
"$work/prefix/bin/cohort-run" --roles worker=1,ps=1 true || fail "the installed cohort-run does not start tasks"

# A project that adds Cohort builds the libraries alone, and needs nothing of the programs.
mkdir "$work/parent"
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(parent LANGUAGES C CXX)' \
  "add_subdirectory(\"$(realpath "$consumer/../../..")\" cohort)" >"$work/parent/CMakeLists.txt"
"$cmake" -G "$generator" -S "$work/parent" -B "$work/parent/build" -DCOHORT_CUDA=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON \
  -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON >"$work/parent.log" 2>&1 ||
  fail "it cannot be added to a project without Boost: $(tail -n 20 "$work/parent.log")"

# Another library, as far as CMake sees it.
mkdir "$work/mpich"
cat >"$work/mpich/mpi.h" <<'END'
#define MPI_VERSION 4
#define MPI_SUBVERSION 0
#define MPICH_VERSION "4.0.2"
static inline int MPI_Init(int* argc, char*** argv) { return argc == 0 || argv == 0; }
static inline int MPI_Finalize(void) { return 0; }
END
cat >"$work/mpich/mpicc" <<'END'
#!/bin/sh
if [ "$1" = -show ]; then echo "cc -I\"$(dirname "$0")\" -lm"; else exec cc -I"$(dirname "$0")" "$@"; fi
END
chmod +x "$work/mpich/mpicc"
cp "$work/mpich/mpicc" "$work/mpich/mpicxx"
# refused OPTION...: what the consumer's configuration says. CMake breaks lines where it likes.
refused() {
  rm -rf "$work/other"
  ! "$cmake" -G "$generator" -S "$consumer" -B "$work/other" -DCMAKE_PREFIX_PATH="$work/prefix" "$@" >"$work/other.log" 2>&1 ||
    fail "another MPI library is taken with $*: $(<"$work/other.log")"
  tr -s ' \n' ' ' <"$work/other.log"
}
for choice in "MPI_C_COMPILER=$work/mpich/mpicc" "MPI_CXX_COMPILER=$work/mpich/mpicxx" "MPI_HOME=$work/mpich"; do
  said=$(refused "-D$choice")
  [[ $said =~ "Cohort was built with "[^';']*"; this project found MPICH 4.0.2. "[^.]*"set MPI_C_COMPILER" ]] ||
    fail "with $choice it says: $said"
done
own=$(sed -n 's/^MPI_C_COMPILER:[A-Z]*=//p' "$3/CMakeCache.txt")
for choice in "MPI_CXX_COMPILER=$work/mpich/mpicxx" "MPI_HOME=$work/mpich"; do
  said=$(refused "-DMPI_C_COMPILER=$own" "-D$choice")
  [[ $said == *"MPI_C_COMPILER is $own, which takes "*" but ${choice%%=*} is ${choice#*=}, which takes $work/mpich/mpi.h"* ]] ||
    fail "two libraries: with $choice it says: $said"
done
for choice in "MPI_CXX_COMPILER=$work/none" "MPI_HOME=$work/none"; do
  said=$(refused "-D$choice")
  [[ $said == *"${choice%%=*} is $work/none, "* ]] || fail "with $choice it says: $said"
done
