#!/usr/bin/env bash
# A build for the ABI of MPI 5, which MPICH's wrapper mpicc_abi compiles for: it is chosen by MPI_CXX_COMPILER, says
# so, links and runs under that library's launcher. Only Cohort on MPI and two programs are compiled, for the rest
# knows nothing of MPI. MPICH comes from PyPI; without it the test is skipped.
#
#   other_mpi.sh CMAKE SOURCE_DIR BUILD_DIR BUILD_TYPE PYTHON
set -euo pipefail
cmake=$1 source=$2 build=$3 type=$4 python=$5
work=$(mktemp -d)
if [[ $work == *' '* ]]; then  # there CMake cannot ask MPICH's compilers what they need
  rmdir "$work"
  work=$(mktemp -d -p /tmp)
fi
trap 'rm -rf "$work"' EXIT
fail() { echo "other_mpi: $*" >&2; exit 1; }
# shellcheck source=tests/install/consume.sh
source "$(dirname "${BASH_SOURCE[0]}")/consume.sh"

if ! install_from_pypi "$python" "$work/mpich" mpich==5.0.2; then
  echo "skipped: MPICH cannot be had from PyPI: $(tail -n 1 "$work/pip.log")"
  exit 77
fi

mapfile -t same < <(grep -E '^(COHORT_CUDA|CMAKE_(C|CXX|CUDA)_(COMPILER|FLAGS|HOST_COMPILER)):[A-Z]+=' "$build/CMakeCache.txt" | sed 's/^/-D/')
"$cmake" -S "$source" -B "$work/abi" -G Ninja -DCMAKE_BUILD_TYPE="$type" "${same[@]}" -DCOHORT_TORCH=OFF \
  -DMPI_CXX_COMPILER="$work/mpich/bin/mpicxx_abi" -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_BENCHMARKS=OFF \
  >"$work/abi.log" 2>&1 || fail "not configured: $(tail -n 20 "$work/abi.log")"
grep -qxF -- "-- MPI: the MPI ABI 1.0 of $work/mpich/bin/mpicc_abi; ABI: MPI-5's" "$work/abi.log" ||
  fail "the configuration does not say which MPI it is for: $(cat "$work/abi.log")"
launcher=$(sed -n 's/^MPIEXEC_EXECUTABLE:FILEPATH=//p' "$work/abi/CMakeCache.txt")
[[ $launcher == "$work/mpich/bin/mpiexec" ]] || fail "the launcher is $launcher"

other=$(comm -23 <(compile_commands "$work/abi" | grep -vE ' -o (mpi|tools|examples)/') <(compile_commands "$build"))
[[ -z $other ]] || fail "compiled in another way than for the build's own MPI: $other"
cd "$work/abi"
"$cmake" -DCMAKE_CXX_FLAGS_"${type^^}"=-O0 . >reconfigure.log || fail "not configured again: $(cat reconfigure.log)"
for archive in $("$cmake" --build . -- -t targets all | grep -oE '^src/[^:]*\.a'); do
  mkdir -p "$(dirname "$archive")"
  ln -s "$build/$archive" "$archive"
done
program_objects() { "$cmake" --build . -- -t commands "$1" | grep -oE -- ' -o (mpi|tools/info|examples)/[^ ]+\.o ' | tr -d ' ' | cut -c 3-; }
programs=(bin/cohort-info bin/multi_worker_mirrored)
mapfile -t objects < <(for program in "${programs[@]}"; do program_objects "$program"; done | sort -u)
for folder in mpi tools/info examples; do
  [[ " ${objects[*]}" == *" $folder/"* ]] || fail "no object of $folder/ in: ${objects[*]}"
done
"$cmake" --build . -- -j 2 "${objects[@]}" >build.log 2>&1 || fail "no build: $(tail -n 30 build.log)"
for program in "${programs[@]}"; do
  "$cmake" --build . -- -t commands "$program" | grep -E ' qc mpi/| -o '"$program" >link.sh
  bash -e link.sh >link.log 2>&1 || fail "$program: $(cat link.log)"
  # Open MPI's own library is called so, too.
  linked=$(ldd "$program" | grep -E 'libmpi|libopen-')
  [[ $linked == *libmpi_abi.so* && $linked != *libmpi.so* ]] || fail "$program is linked with: $linked"
done

said=$("$launcher" -n 2 bin/cohort-info --format json) || fail "cohort-info: $said"
[[ $said == *"\"abi\": \"MPI-5's\""* && $said == *MPICH* ]] || fail "cohort-info says: $said"
"$launcher" -n 3 bin/multi_worker_mirrored >run.log 2>&1 || fail "three workers: $(cat run.log)"
cat run.log
