#!/usr/bin/env bash
# Configures and builds what differs in builds without CUDA, or with a part of it, beside the build that is
# tested, and checks that nothing of CUDA and NCCL is included or linked where it should not be. Folders
# are kept: the second time only what has changed is compiled.
#
#   without_gpus.sh CMAKE SOURCE_DIR FOLDER JOBS
set -euo pipefail
cmake=$1 source=$2 folder=$3 jobs=$4

fail() { echo "FAILED: $*" >&2; exit 1; }

# configure NAME EXPECTED OPTION...: in its folder; the output says EXPECTED.
configure() {
  local build=$folder/$1 expected=$2
  mkdir -p "$build"
  "$cmake" -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "${@:3}" >"$build/configure.log" 2>&1 ||
    fail "$1 is not configured: $(tail -n 20 "$build/configure.log")"
  grep -q "$expected" "$build/configure.log" || fail "$1: no '$expected' in $build/configure.log"
}

echo "without CUDA"
configure cpu "GPUs: none (COHORT_CUDA=OFF)" -DCOHORT_CUDA=OFF -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_EXAMPLES=OFF
cpu=$folder/cpu
"$cmake" --build "$cpu" --parallel "$jobs" --target cohort-info cohort-bench >"$cpu/build.log" 2>&1 ||
  fail "no build: $(sed -n '/^FAILED:/,$p' "$cpu/build.log" | head -n 40)"

included=$("$cmake" --build "$cpu" -- -t deps | grep -E '/(cuda[^/]*|cublas[^/]*|nccl|driver_types|vector_types)\.h$' |
  sort -u) || true
[[ -z $included ]] || fail "headers of CUDA or NCCL are included: $included"
(($("$cmake" --build "$cpu" -- -t deps | grep -c '\.h$') > 1000)) || fail "the record of what is included is missing"

for program in cohort-info cohort-bench; do
  linked=$(ldd "$cpu/bin/$program" | grep -E 'lib(cuda|cublas|nccl)') || true
  [[ -z $linked ]] || fail "$program is linked with $linked"
  missing=$(nm --dynamic --undefined-only "$cpu/bin/$program" | grep -E ' (cu[A-Z]|cuda|cublas|nccl)') || true
  [[ -z $missing ]] || fail "$program refers to $missing"
done
"$cpu/bin/cohort-info" --format json >"$cpu/info.json"
[[ $(grep -c '"enabled": false' "$cpu/info.json") == 2 ]] || fail "cohort-info: $(cat "$cpu/info.json")"
status=0
"$cpu/bin/cohort-bench" all-reduce --device cuda >"$cpu/bench.out" 2>&1 || status=$?
((status == 2)) && grep -q '^cohort-bench: --device cuda' "$cpu/bench.out" ||
  fail "cohort-bench --device cuda ends with $status: $(cat "$cpu/bench.out")"

echo "with NCCL's header, but without a toolkit"
configure no_toolkit "GPUs: none (COHORT_CUDA=AUTO)" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
status=0
"$cmake" -S "$source" -B "$folder/required" -G Ninja -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON -DCOHORT_CUDA=ON \
  >"$folder/required.log" 2>&1 || status=$?
((status != 0)) && grep -q "no CUDA toolkit" "$folder/required.log" || fail "a toolkit that is required may be missing"

echo "with a toolkit, but without NCCL"
configure no_nccl "GPUs: CUDA" -DCOHORT_CUDA=ON -DCMAKE_DISABLE_FIND_PACKAGE_NCCL=ON
