#!/usr/bin/env bash
# Mistakes on the command line: status 2 and one line, however many ranks there are. What cannot be
# done: status 1 and one line. And the help.
#
#   cohort_bench_usage.sh COHORT_BENCH LAUNCHER...     LAUNCHER starts 2 ranks
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
alone=("$1")
together=("${@:2}" "$1")

# ends STATUS ADVICE ARGUMENT...: in one line that contains ADVICE. The launcher adds lines of its own.
ends() {
  local expected=$1 advice=$2
  shift 2
  capture "${bench[@]}" "$@"
  same "$*: status" "$expected" "$status"
  same "$*: lines" 1 "$(grep -c '^cohort-bench: ' "$scratch/err")"
  grep -q "^cohort-bench: .*$advice" "$scratch/err" || fail "$*: expected '$advice' in: $(cat "$scratch/err")"
}

refuses() {
  ends 2 "$@"
  same "${*:2}: output" "" "$(grep -v '^-*$\|^Primary job\|^a non-zero exit code' "$scratch/out" || true)"
}

bench=("${alone[@]}")
refuses "choose one of all-reduce"
refuses "did you mean all-reduce" all_reduce
refuses "did you mean reduce-scatter" ReduceScatter
refuses "choose one of all-reduce" sort
refuses "float32" all-reduce --dtype float31
refuses "int32" all-reduce --dtype int32 --op mean
refuses "unrecognised option" all-reduce --frobnicate
refuses "always works in place" broadcast --in-place no
refuses "cannot work in place" all-to-all --in-place yes
refuses "moves no data" barrier --sizes 4
refuses "combines nothing" scatter --op max
refuses "choose heap or private" all-reduce --buffers stack
refuses "choose mpi, nccl or none" all-reduce --peer ucc
refuses "only --device cuda has that" all-reduce --peer nccl
refuses "only --members threads" all-reduce --threads 2
refuses "write --model FILE" profile
refuses "cannot be read" profile --model "$scratch/missing.csv"
echo "tensor,size" >"$scratch/other.csv"
refuses "instead of 'name,elements'" profile --model "$scratch/other.csv"
refuses "Give an earlier run" all-reduce --fail-below 0.95
echo '{}' >"$scratch/empty.json"
for part in 0 1.01 fast; do refuses "above 0 and up to 1" all-reduce --baseline "$scratch/empty.json" --fail-below "$part"; done
refuses "no results of a sweep" all-reduce --baseline "$scratch/empty.json" --fail-below 0.95
refuses "cannot be read" all-reduce --baseline "$scratch/missing.json"
refuses "cannot be written" all-reduce --sizes 4 --report "$scratch/missing/report.html"
refuses "unrecognised option" dispatch --baseline "$scratch/empty.json"
refuses "no results given" report
refuses "nothing to do" report --results "$scratch/empty.json"
refuses "already in a file" report --results "$scratch/empty.json" --report "$scratch/page.html" --format json
ends 1 "cannot be read" report --results "$scratch/missing.json" --report "$scratch/page.html"
COHORT_LOG_LEVLE=info refuses "did you mean COHORT_LOG_LEVEL" all-reduce

# Some launchers take a second over each failure, so only what ranks do differently is tried on two:
# rank 0 alone opens the file, and settings are read before there are ranks.
bench=("${together[@]}")
refuses "'abc' is not a size" all-reduce --sizes 4:abc
refuses "without a launcher" all-reduce --members threads
refuses "cannot be written" all-reduce --sizes 4 --output "$scratch/missing/report.csv"
COHORT_LOG_LEVLE=info refuses "did you mean COHORT_LOG_LEVEL" all-reduce

ends 1 "no memory" all-reduce --sizes 1000000G
if [[ -e /dev/full ]]; then ends 1 "could not be written" all-reduce --sizes 4 --output /dev/full; fi

echo "a reader that wants no more, as head"
status=0
{
  trap '' PIPE
  while echo 2>/dev/null; do :; done  # until the reader has gone
  "${alone[@]}" all-reduce --sizes 4 --format csv 2>"$scratch/err" || echo "status $?" >>"$scratch/err"
} | true
same "complaints without a reader" "" "$(grep -v '^#' "$scratch/err" || true)"

succeeds "${alone[@]}" --version
grep -qx 'cohort-bench [0-9.]*' "$scratch/out" || fail "--version says: $(cat "$scratch/out")"
succeeds "${bench[@]}" --help
same "copies of the help" 1 "$(grep -c '^Collectives:' "$scratch/out")"
succeeds "${bench[@]}" profile --help
grep -q -- '--model' "$scratch/out" || fail "the help on profile does not name its options"
succeeds "${bench[@]}" all-reduce --help
grep -q 'MPI_Allreduce' "$scratch/out" || fail "the help on all-reduce does not name its peer"
