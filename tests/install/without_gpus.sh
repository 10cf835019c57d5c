#!/usr/bin/env bash
# Checks builds without CUDA, or with a part of it, beside a build with all of it: what the two share is
# compiled by the same commands and includes nothing of CUDA, and what differs compiles, links with the rest
# and runs. So only a few files are compiled.
#
#   without_gpus.sh CMAKE SOURCE_DIR BUILD_DIR BUILD_TYPE
set -euo pipefail
cmake=$1 source=$2 build=$3 type=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
# shellcheck source=tests/install/consume.sh
source "$(dirname "${BASH_SOURCE[0]}")/consume.sh"

# configure NAME EXPECTED OPTION...: in its folder; the output says EXPECTED.
configure() {
  local log=$work/$1.log expected=$2
  "$cmake" -S "$source" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE="$type" "${@:3}" >"$log" 2>&1 ||
    fail "$1 is not configured: $(tail -n 20 "$log")"
  grep -q "$expected" "$log" || fail "$1: no '$expected' in: $(cat "$log")"
}
in_cpu() { "$cmake" --build "$work/cpu" -- "$@"; }

echo "without CUDA"
configure cpu "GPUs: none (COHORT_CUDA=OFF)" -DCOHORT_CUDA=OFF -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_EXAMPLES=OFF
cd "$work/cpu"
mapfile -t own < <(comm -23 <(compile_commands "$work/cpu") <(compile_commands "$build") | grep -o ' -o [^ ]*' | cut -c 5-)
others=$(printf '%s\n' "${own[@]}" | grep -vE '/CMakeFiles/cohort_(bench_gpu|info_accelerators).dir/') || true
((${#own[@]} > 1)) && [[ -z $others ]] || fail "compiled in another way than with CUDA: $others"
# Fast compilation shows as well that it compiles and links.
"$cmake" -DCMAKE_CXX_FLAGS_"${type^^}"=-O0 . >reconfigure.log || fail "not configured again: $(cat reconfigure.log)"
in_cpu -j 2 "${own[@]}" >build.log 2>&1 || fail "no build: $(sed -n '/^FAILED:/,$p' build.log | head -n 40)"

for program in cohort-info cohort-bench; do
  link=$(in_cpu -t commands "bin/$program" | tail -n 1)
  for input in $(grep -oE '[^ ]+\.(o|a)( |$)' <<<"$link"); do
    [[ -e $input ]] && continue
    mkdir -p "$(dirname "$input")"
    ln -s "$build/$input" "$input"
  done
  (eval "$link") >link.log 2>&1 || fail "$program: $(cat link.log)"
  linked=$(ldd "bin/$program" | grep -E 'lib(cuda|cublas|nccl)') || true
  [[ -z $linked ]] || fail "$program is linked with $linked"
done
[[ $(bin/cohort-info --format json | grep -c '"enabled": false') == 2 ]] || fail "cohort-info has CUDA or NCCL"
status=0
bin/cohort-bench all-reduce --device cuda >bench.log 2>&1 || status=$?
((status == 2)) && grep -q '^cohort-bench: --device cuda' bench.log || fail "status $status: $(cat bench.log)"

# foreign LEFT_OUT: the headers of CUDA and NCCL in a list of dependencies, but for objects that match.
# libtorch has a cuda.h of its own, which needs neither.
foreign() {
  awk -v left_out="$1" '
    /^[^ ].*: #deps/ { other = $1 ~ left_out }
    /^    / && !other { ++count; if (/\/(cuda[^\/]*|cublas[^\/]*|nccl|driver_types|vector_types)\.h$/ && !/\/torch\/cuda\.h$/) print }
    END { if (count < 500) print "only", count, "includes are known" }' | sort -u
}
included=$(in_cpu -t deps | foreign '^$'
  "$cmake" --build "$build" -- -t deps | foreign '^(src/(cuda|nccl)|tests|examples)/|(cohort_bench_gpu|cohort_info_accelerators|gpu_calls)[.]dir/')
[[ -z $included ]] || fail "headers of CUDA or NCCL are included: $included"

echo "with NCCL's header, but without a toolkit"
configure no_toolkit "GPUs: none (COHORT_CUDA=AUTO)" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
status=0
"$cmake" -S "$source" -B "$work/required" -G Ninja -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON -DCOHORT_CUDA=ON \
  >"$work/required.log" 2>&1 || status=$?
((status != 0)) && grep -q "no CUDA toolkit" "$work/required.log" || fail "a toolkit that is required may be missing"

echo "with a toolkit whose compiler refuses the host compiler"
CUDAHOSTCXX=/bin/false configure refused "GPUs: none (COHORT_CUDA=AUTO)"
grep -q "built without GPUs" "$work/refused.log" || fail "nothing says why: $(cat "$work/refused.log")"
status=0
CUDAHOSTCXX=/bin/false "$cmake" -S "$source" -B "$work/refused" -DCOHORT_CUDA=ON >"$work/refused.log" 2>&1 || status=$?
((status != 0)) && grep -q "too new for it" "$work/refused.log" || fail "a compiler that is required may be refused"
configure refused "GPUs: CUDA"

echo "with a toolkit, but without NCCL"
configure no_nccl "GPUs: CUDA" -DCOHORT_CUDA=ON -DCMAKE_DISABLE_FIND_PACKAGE_NCCL=ON
