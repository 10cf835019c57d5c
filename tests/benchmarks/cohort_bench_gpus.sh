#!/usr/bin/env bash
# Runs cohort-bench with tensors on GPUs, over the stand-ins for CUDA and NCCL, with threads and with ranks as
# members, and checks what it prints. Its figures mean nothing there.
#
#   cohort_bench_gpus.sh COHORT_BENCH JSON_VALUE VARIABLE=VALUE... -- LAUNCHER...
#
# The variables make three GPUs and the stand-in for NCCL; LAUNCHER starts 2 ranks.
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
program=$1 json_value=$2
shift 2
environment=()
while [[ $1 != -- ]]; do
  environment+=("$1")
  shift
done
launcher=("${@:2}")

short=(--iterations 2 --loops 2)
threads=(env "${environment[@]}" "$program")
# gpu_threads N COLLECTIVE [OPTION...], gpu_ranks COLLECTIVE [OPTION...]
gpu_threads() { succeeds "${threads[@]}" "$2" --device cuda --members threads --threads "$1" "${short[@]}" "${@:3}"; }
gpu_ranks() { succeeds "${launcher[@]}" env "${environment[@]}" "$program" "$1" --device cuda "${short[@]}" "${@:2}"; }

# values NUMBER FILE: the values of that column of a CSV file, each once.
values() { tail -n +2 "$2" | cut -d, -f "$1" | sort -u | paste -sd' '; }
# compared WHAT FUNCTION MEMBERS: rows of Cohort by NCCL and of NCCL itself, with times, and right.
compared() {
  same "$1: libraries" "cohort nccl" "$(values 2 "$scratch/out")"
  same "$1: functions" "$2" "$(values 3 "$scratch/out")"
  same "$1: members" "$3" "$(values 6 "$scratch/out")"
  same "$1: wrong elements" 0 "$(values 18 "$scratch/out")"
  same "$1: rows without times" 0 "$(awk -F, 'NR > 1 && !($11 > 0 && $11 >= $12 && $12 > 0 && $14 >= $12)' "$scratch/out" | wc -l)"
}

echo "every collective, with each placement that it has"
# collective NAME FUNCTION PLACEMENTS...
collective() {
  local name=$1 function=$2 placement
  for placement in "${@:3}"; do
    # Small calls have longer rehearsals.
    gpu_threads 3 "$name" --sizes 80K --in-place "$placement" --format csv
    compared "$name, in place $placement" "$function" 3
  done
}
collective all-reduce "nccl ncclAllReduce" yes no
collective reduce "nccl ncclReduce" yes no
collective broadcast "nccl ncclBroadcast" yes
collective all-gather "nccl ncclAllGather" yes no
collective all-gather-uneven "nccl ncclBroadcast" yes no
collective reduce-scatter "nccl ncclReduceScatter" yes no
collective all-to-all "nccl ncclSend+ncclRecv" no
collective gather "nccl ncclSend+ncclRecv" yes no
collective scatter "nccl ncclSend+ncclRecv" yes no

echo "ranks as members, each with a GPU of its own"
gpu_ranks all-reduce --sizes 4:16 --format csv
compared "all-reduce of ranks" "nccl ncclAllReduce" 2

echo "ranks that share a GPU, which NCCL takes where they claim to be on different hosts"
alone=(env "${environment[@]}" CUDA_VISIBLE_DEVICES=0 "$program" all-reduce --device cuda "${short[@]}" --sizes 80K)
# shellcheck disable=SC2016  # each rank's own
succeeds "${launcher[@]}" bash -c 'NCCL_HOSTID=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} exec "$@"' - "${alone[@]}" --format csv
compared "ranks that share a GPU" "nccl ncclAllReduce" 2
capture "${launcher[@]}" "${alone[@]}"
same "ranks that share a GPU openly: status" 1 "$status"
grep -q '^cohort-bench: --peer nccl: .*--peer none measures Cohort alone' "$scratch/err" || fail "no advice: $(cat "$scratch/err")"

echo "fewer elements than members"
gpu_threads 3 all-gather-uneven --sizes 4 --format csv
compared "one element" "nccl ncclBroadcast" 3

echo "what the report says"
gpu_threads 2 all-reduce --sizes 80K --format json --output "$scratch/report.json"
same "buffers, GPU" "gpu gpu stand-in without a GPU, compute capability 9.0" "$("$json_value" \
  /results/0/buffers /results/1/buffers /environment/gpu <"$scratch/report.json" | paste -sd' ')"
[[ $("$json_value" /environment/clock <"$scratch/report.json") == events* ]] || fail "the clock is not the events"
grep -q 'gpu buffers; peer: ncclAllReduce' "$scratch/out" || fail "the table does not tell what was measured: $(cat "$scratch/out")"

echo "kept inputs, other dtypes and operators, no check"
gpu_threads 2 all-reduce --sizes 80K --inputs kept --format csv
compared "inputs kept" "nccl ncclAllReduce" 2
gpu_threads 2 reduce-scatter --sizes 80K --dtype bfloat16 --op max --format csv
compared "bfloat16" "nccl ncclReduceScatter" 2
gpu_threads 2 all-reduce --sizes 80K --no-check --format csv
same "wrong elements" "" "$(values 18 "$scratch/out")"

echo "the gradients of a model"
printf 'name,elements\nweight,3000\nbias,10\nlarge,70001\nlast,1\n' >"$scratch/tiny.csv"
profile=(profile --model "$scratch/tiny.csv" --device cuda --steps 2 --format csv)
# profiled WHAT MODES: rows of these ways to communicate, on GPUs, with times, and right.
profiled() {
  same "$1: ways" "$2" "$(tail -n +2 "$scratch/out" | cut -d, -f2,3 | paste -sd' ')"
  same "$1: buffers" gpu "$(values 6 "$scratch/out")"
  same "$1: rows that are not complete and right" 0 "$(awk -F, 'NR > 1 && !(NF == 14 && $7 > 0 && $14 == 0)' "$scratch/out" | wc -l)"
}
own="cohort,per_tensor cohort,packed cohort,fused cohort,async"
peers="nccl,per_tensor nccl,fused"
overlapped="cohort,overlapped cohort,buckets"
succeeds "${threads[@]}" "${profile[@]}" --members threads --threads 3
profiled "profile of threads" "$own $peers $overlapped"
same "profile of threads: rows without a ratio" 0 "$(awk -F, 'NR > 1 && $9 > 0 && !($12 > 0 && $13 > 0)' "$scratch/out" | wc -l)"
succeeds "${launcher[@]}" env "${environment[@]}" "$program" "${profile[@]}" --compute-ms 1 --dtype bfloat16
profiled "profile of ranks" "$own $peers $overlapped"
succeeds "${threads[@]}" "${profile[@]}" --members threads --peer none
profiled "profile without a peer" "$own $overlapped"

echo "a peer that never ends"
lost=(NCCL_STAND_IN_LOST=1 COHORT_COLLECTIVE_TIMEOUT_SECONDS=2)
never_ends() {
  capture env "${environment[@]}" "${lost[@]}" "$program" "$@" --device cuda --members threads
  same "$*: status" 1 "$status"
  grep -qE '^cohort-bench: ncclAllReduce .*of [0-9]+ bytes, member [01] of 2, has not ended after 2 s$' "$scratch/err" ||
    fail "$*: not said in: $(cat "$scratch/err")"
}
never_ends all-reduce --sizes 80K
never_ends profile --model "$scratch/tiny.csv"
capture "${launcher[@]}" env "${environment[@]}" "${lost[@]}" "$program" all-reduce --sizes 80K --device cuda
((status != 0)) || fail "ranks whose peer is stuck end well"
grep -qE '^cohort-bench: ncclAllReduce of 81920 bytes, member [01] of 2, has not ended after 2 s$' "$scratch/err" ||
  fail "ranks do not say who is stuck: $(cat "$scratch/err")"

echo "what NCCL lacks: Cohort alone, and a note"
gpu_threads 2 all-reduce --sizes 80K --dtype int16
same "rows" 1 "$(grep -c 'cohort: ' "$scratch/out")"
! grep -q 'nccl: ' "$scratch/out" || fail "a peer that cannot: $(cat "$scratch/out")"
grep -q 'no peer in some rows: NCCL has no arithmetic for int16' "$scratch/out" || fail "no note: $(cat "$scratch/out")"

echo "without a peer, and through the host where NCCL is missing"
gpu_threads 2 all-reduce --sizes 80K --peer none --format csv
same "libraries, wrong elements" "cohort 0" "$(values 2 "$scratch/out") $(values 18 "$scratch/out")"
environment+=(COHORT_NCCL_LIBRARY=/nowhere/libnccl.so.2)
threads=(env "${environment[@]}" "$program")
gpu_threads 2 all-reduce --sizes 80K --peer none
grep -q "Cohort's calls went through the host, not NCCL" "$scratch/out" || fail "no note: $(cat "$scratch/out")"
succeeds "${threads[@]}" profile --model "$scratch/tiny.csv" --device cuda --steps 2 --members threads --peer none
grep -q "Cohort's calls went through the host, not NCCL" "$scratch/out" || fail "no note: $(cat "$scratch/out")"

# ends STATUS ADVICE ARGUMENT...: in one line of the program's that contains ADVICE.
ends() {
  capture "${threads[@]}" "${@:3}"
  same "${*:3}: status" "$1" "$status"
  same "${*:3}: lines" 1 "$(grep -c '^cohort-bench: ' "$scratch/err")"
  grep -q "^cohort-bench: .*$2" "$scratch/err" || fail "${*:3}: expected '$2' in: $(cat "$scratch/err")"
}
echo "what cannot be done"
ends 1 "/nowhere/libnccl.so.2.*--peer none measures Cohort alone" all-reduce --device cuda --members threads --sizes 4
ends 2 "with 4 members: device cuda:3 does not exist: this process sees 3 GPUs" \
  all-reduce --device cuda --members threads --threads 4
environment+=(CUDA_VISIBLE_DEVICES=)
threads=(env "${environment[@]}" "$program")
ends 2 "this process sees no GPU: no CUDA-capable device is detected" all-reduce --device cuda
