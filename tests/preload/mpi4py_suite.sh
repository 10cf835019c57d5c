#!/usr/bin/env bash
# Runs mpi4py's own tests without and with a library in LD_PRELOAD of the ranks, against one MPI, and says which tests
# it makes a difference to. Exits with 1 unless the same tests pass both ways.
#
#   tests/preload/mpi4py_suite.sh [--library PATH] [--mpi openmpi|mpich|FOLDER] [--filter REGEX] [--timeout SECONDS]
#       [--ranks N] [--results FILE] [--work FOLDER]
#
#   --library  what is preloaded; without it, the tests run once, as a baseline
#   --mpi      Debian's Open MPI (default) or MPICH, which are installed, or what is in FOLDER/bin
#   --filter   only modules (`test_cco_buf`) whose name the expression is found in
#   --timeout  of each module; default: 300
#   --ranks    default: 2
#   --results  a line a test, separated by tabs; default: WORK/mpi4py.MPI.tsv
#   --work     keeps mpi4py and the Python that it is built for; default: build/mpi-suite
#
# mpi4py is the source distribution on PyPI, at a fixed version. A test passes if it passes on all ranks. When one ends
# its ranks, or does not end, the module goes on with the test after it. A module that makes a difference is repeated,
# up to three times; what differs only now and then is listed and not counted.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/preload/mpis.sh
source "$here/mpis.sh"
# shellcheck source=launch/mpirun-env.sh
source "$root/launch/mpirun-env.sh"
# shellcheck source=launch/preload.sh
source "$root/launch/preload.sh"

refuse() { echo "mpi4py_suite: $*; see --help" >&2; exit 2; }

version=4.1.2
library="" mpi=openmpi filter="" timeout=300 ranks=2 results="" work=$root/build/mpi-suite
while (($#)); do
  case $1 in
    --library) library=$(realpath -e "${2:-}") || refuse "--library needs a file"; shift 2 ;;
    --mpi) mpi=${2:-}; shift 2 ;;
    --filter) filter=${2:-}; shift 2 ;;
    --timeout | --ranks)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "$1 needs a number"
      declare "${1#--}=$2"
      shift 2 ;;
    --results) results=$(realpath "${2:-}") || refuse "--results needs a file"; shift 2 ;;
    --work) work=$(realpath "${2:-}") || refuse "--work needs a folder"; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
mpicc="" mpirun="" preloading=()
choose_mpi "$mpi"
[[ -z $library ]] || preload_by "$library"
mkdir -p "$work"
sources=$work/mpi4py-$version python=$work/$mpi.python log=$work/mpi4py.$mpi.build.txt

if [[ ! -e $python/complete ]]; then
  echo "building mpi4py $version with $mpicc"
  rm -rf "$python"
  (
    python3 -m venv "$python"
    # Even to download it, pip asks its build for metadata, which takes a compiler of an MPI.
    export MPICC CFLAGS=-O0  # one large source, which takes minutes otherwise
    MPICC=$(command -v "$mpicc")
    pip=("$python/bin/pip" --disable-pip-version-check)
    if [[ ! -d $sources ]]; then
      "${pip[@]}" download --no-binary mpi4py --no-deps --dest "$work" "mpi4py==$version"
      tar -C "$work" -xf "$sources.tar.gz"
    fi
    "${pip[@]}" install --no-cache-dir --no-deps "$sources.tar.gz"
  ) >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
  touch "$python/complete"
fi
logs=$work/mpi4py.$mpi.logs
rm -rf "$logs"
exec python3 "$here/mpi4py_suite.py" --tests "$sources/test" --python "$python/bin/python" --mpirun "$mpirun" --preload="${preloading[*]@Q}" \
  --library "$library" --filter="$filter" --results "${results:-$work/mpi4py.$mpi.tsv}" --logs "$logs" --timeout "$timeout" --ranks "$ranks"
