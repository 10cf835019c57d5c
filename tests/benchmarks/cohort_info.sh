#!/usr/bin/env bash
# What cohort-info prints, with and without a launcher.
#
#   cohort_info.sh COHORT_INFO JSON_VALUE CUDA NCCL LAUNCHER...
#
# CUDA and NCCL are the versions that it was built with, or off; LAUNCHER starts 2 ranks.
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
info=$1 json_value=$2 cuda=$3 nccl=$4
shift 4
launcher=("$@")

echo "text"
succeeds "$info"
for words in '^Cohort [0-9]' 'type ' 'compiler ' "cuda .*$cuda" "nccl .*$nccl" '^MPI library' 'cpu:0 .*core.*NUMA node' \
  'node heap .*MiB' 'huge pages on' \
  'COHORT_CPU_DEVICES=1 .*default' '^  \(no GPU   .\|cuda:0 \)'; do
  grep -q "$words" "$scratch/out" || fail "no '$words' in: $(cat "$scratch/out")"
done

# Without CUDA or NCCL in the build, that is the reason.
[[ $cuda != off ]] || grep -q '^  no GPU   built without CUDA$' "$scratch/out" || fail "no reason: $(cat "$scratch/out")"
[[ $nccl != off ]] || grep -q '^  none: built without NCCL$' "$scratch/out" || fail "no reason: $(cat "$scratch/out")"

echo "json"
succeeds env COHORT_CPU_DEVICES=2 "$info" --format json
# enabled VERSION: what the fields of a component are.
enabled() { if [[ $1 == off ]]; then echo "false null"; else echo "true $1"; fi; }
same "components" "$(enabled "$cuda") $(enabled "$nccl")" "$("$json_value" /build/cuda/enabled /build/cuda/version /build/nccl/enabled \
  /build/nccl/version <"$scratch/out" | paste -sd' ')"
same "devices" "2 cpu:0 cpu:1" "$("$json_value" /devices /devices/0/name /devices/1/name <"$scratch/out" | paste -sd' ')"
for pointer in /version /build/type /build/compiler /mpi/library /devices/0/cores /devices/0/numa_nodes \
  /gpus/list /nccl/why_none /memory/node_heap_bytes /memory/huge_pages; do
  [[ -n $("$json_value" $pointer <"$scratch/out") ]] || fail "nothing at $pointer"
done
same "unprintable characters in the MPI library's name" "" "$("$json_value" /mpi/library <"$scratch/out" | tr -d '[:print:]\n' | od -An -c)"
settings=$("$json_value" /settings <"$scratch/out")
found=no
for ((i = 0; i < settings; ++i)); do
  mapfile -t setting < <("$json_value" "/settings/$i/name" "/settings/$i/value" "/settings/$i/origin" \
    "/settings/$i/type" "/settings/$i/text" <"$scratch/out")
  ((${#setting[@]} == 5)) || fail "setting $i is not complete: ${setting[*]}"
  if [[ ${setting[0]} == COHORT_CPU_DEVICES ]]; then
    same "COHORT_CPU_DEVICES" "2 environment integer" "${setting[*]:1:3}"
    found=yes
  fi
done
same "COHORT_CPU_DEVICES is listed" yes $found

echo "an MPI program: this one, its MPI library, and files that are neither"
succeeds "$info" --mpi "$info" --format json
for pointer in /library /version /preload /shim; do
  [[ $("$json_value" $pointer <"$scratch/out") != null ]] || fail "nothing at $pointer in: $(cat "$scratch/out")"
done
library=$("$json_value" /library <"$scratch/out")
version=$("$json_value" /version <"$scratch/out")
succeeds "$info" --mpi "$library"
grep -qF "$version" "$scratch/out" || fail "no '$version' in: $(cat "$scratch/out")"
grep -q '^MPI_Barrier, MPI_Bcast, .*MPI_Alltoallv\.$' "$scratch/out" || fail "no collectives in: $(cat "$scratch/out")"
succeeds env COHORT_MPI_CALLS=none "$info" --mpi "$library"
grep -q '^Nothing would change: COHORT_MPI_CALLS is none' "$scratch/out" || fail "something would in: $(cat "$scratch/out")"
for other in /bin/sh "${BASH_SOURCE[0]}"; do
  succeeds "$info" --mpi "$other"
  grep -q '^Nothing would change: it names no MPI library' "$scratch/out" || fail "something would in: $(cat "$scratch/out")"
done

cp /bin/sh "$scratch/"$'no text \xff'
succeeds "$info" --mpi "$scratch/"$'no text \xff' --format json
cat >"$scratch/ldd" <<'END'
#!/bin/sh
printf '\tlibmpi.so.40 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f0000000000)\n'
END
chmod +x "$scratch/ldd"
succeeds env PATH="$scratch:$PATH" "$info" --mpi /bin/sh
grep -q '^Nothing would change: the dynamic loader does not find its MPI library, libmpi.so.40;' "$scratch/out" ||
  fail "an MPI library that is not found is not named in: $(cat "$scratch/out")"

echo "under a launcher: one answer"
succeeds "${launcher[@]}" "$info"
same "answers" 1 "$(grep -c '^MPI library' "$scratch/out")"

echo "tuning: kept in a file, which is replaced when it is damaged"
tuning() { succeeds env COHORT_TUNING_FILE="$scratch/tuning.json" "${launcher[@]}" "$info" --tuning "$@"; }
tuning
same "answers" 1 "$(grep -c '^Tuning of 2 workers on 1 node, COHORT_ALGORITHM=auto' "$scratch/out")"
for words in 'slot_bytes .*57 .*built-in' 'direct_move_bytes' 'single_copy_bytes .*single_copy'; do
  grep -q "$words" "$scratch/out" || fail "no '$words' in: $(cat "$scratch/out")"
done
grep -q '"node of 2 processes' "$scratch/tuning.json" || fail "not in the file: $(cat "$scratch/tuning.json")"
sed 's/ probed / file   /' "$scratch/out" >"$scratch/expected"
tuning
same "what the second run says" "$(cat "$scratch/expected")" "$(cat "$scratch/out")"
tuning --format json
same "workers, nodes" "2 1" "$("$json_value" /workers /nodes <"$scratch/out" | paste -sd' ')"
same "first figure" "slot_bytes built-in" "$("$json_value" /figures/0/name /figures/0/source <"$scratch/out" | paste -sd' ')"
truncate -s 100 "$scratch/tuning.json"
tuning
same "warnings" 1 "$(grep -c 'COHORT_TUNING_FILE' "$scratch/err")"
grep -q '"node of 2 processes' "$scratch/tuning.json" || fail "not replaced: $(cat "$scratch/tuning.json")"
echo "something else" >"$scratch/tuning.json"
tuning
same "warnings" 1 "$(grep -c 'COHORT_TUNING_FILE' "$scratch/err")"
same "what is no tuning file" "something else" "$(cat "$scratch/tuning.json")"

echo "bindings of all workers"
succeeds "${launcher[@]}" "$info" --report-bindings
same "ranks" "rank 0 1" "$(awk '{ print $1 }' "$scratch/out" | xargs)"
# Workers that no launcher has bound split the cores, if there are enough.
if (($(nproc) > 1)); then
  succeeds "${launcher[@]}" --bind-to none "$info" --report-bindings --format json
  [[ $("$json_value" /workers/0/cores <"$scratch/out") != $("$json_value" /workers/1/cores <"$scratch/out") ]] ||
    fail "both workers have the same cores: $(cat "$scratch/out")"
  succeeds env COHORT_BIND_CORES=false "${launcher[@]}" --bind-to none "$info" --report-bindings --format json
  same "cores" "$("$json_value" /workers/0/cores <"$scratch/out")" "$("$json_value" /workers/1/cores <"$scratch/out")"
fi

echo "the levels of a machine"
succeeds "$info" --topology
grep -q '^This machine: [0-9]* core' "$scratch/out" || fail "no cores in: $(cat "$scratch/out")"
succeeds "$info" --topology='pack:2 l3:8 core:8 pu:2'
for words in '128 cores with 256 hardware threads' '16 caches of 8 cores, 2 sockets of 64 cores, 1 machine of 128 cores' \
  '^machine: cores 0 to 127$' '^  socket 1: cores 64 to 127$' '^    cache 15: cores 120 to 127$'; do
  grep -q "$words" "$scratch/out" || fail "no '$words' in: $(cat "$scratch/out")"
done
succeeds "$info" --topology='pack:2 l3:8 core:8 pu:2' --format json
same "cores, levels" "128 cache 16 1" "$("$json_value" /cores /levels/0/level /levels/0/groups /cores/127/socket \
  <"$scratch/out" | paste -sd' ')"

echo "what errors mean"
# Every code that the library has, as its page heads it.
codes=$(sed -n 's/^    case ErrorCode::k.*: return "\(.*\)";$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../../src/base/error.cpp")
same "codes" 9 "$(wc -l <<<"$codes")"
for code in $codes; do
  succeeds "$info" --explain "$code"
  same "$code" "$code" "$(head -n 1 "$scratch/out")"
  (($(wc -w <"$scratch/out") > 15)) || fail "no explanation of $code: $(cat "$scratch/out")"
  ! grep -q '](\|^## ' "$scratch/out" || fail "a link or a heading in: $(cat "$scratch/out")"
done
succeeds "$info" --explain data_loss
cp "$scratch/out" "$scratch/expected"
for name in DataLoss cohort::DataLoss; do
  succeeds "$info" --explain "$name"
  same "$name" "$(cat "$scratch/expected")" "$(cat "$scratch/out")"
done
succeeds "$info" --explain data_loss --format json
same "as JSON" "data_loss" "$("$json_value" /code <"$scratch/out")"

# refuses ADVICE COMMAND...
refuses() {
  local advice=$1
  shift
  capture "$@"
  same "$*: status" 2 "$status"
  same "$*: output" "" "$(cat "$scratch/out")"
  same "$*: lines" 1 "$(wc -l <"$scratch/err")"
  grep -q "^cohort-info: .*$advice" "$scratch/err" || fail "$*: expected '$advice' in: $(cat "$scratch/err")"
}

echo "mistakes: one line and status 2"
refuses "did you mean COHORT_CPU_DEVICES" env COHORT_CPU_DEVICE=2 "$info"
refuses "whole number" env COHORT_CPU_DEVICES=two "$info" --format json
refuses "text or json" "$info" --format xml
refuses "there is no such file" "$info" --mpi "$scratch/none"
refuses "this is no regular file" "$info" --mpi "$scratch"
mkfifo "$scratch/libmpi.so"
refuses "this is no regular file" timeout 10 "$info" --mpi "$scratch/libmpi.so"
refuses "choose invalid_argument, .*, internal" "$info" --explain lost
refuses "pack:2 l3:8" "$info" --topology='two sockets'
refuses "cannot be read" "$info" --topology="$scratch/missing.xml"
# complains ADVICE SETTING: prints everything all the same, but with status 2.
complains() {
  capture env "$2" "$info"
  same "$2: status" 2 "$status"
  grep -q '^Settings' "$scratch/out" || fail "$2: no settings in: $(cat "$scratch/out")"
  same "$2: lines" 1 "$(wc -l <"$scratch/err")"
  grep -q "^cohort-info: .*$1" "$scratch/err" || fail "$2: expected '$1' in: $(cat "$scratch/err")"
}
complains "there is no algorithm 'rnig'.*choose one of auto, pieces.*or one that the program registers" COHORT_ALGORITHM=rnig
complains "$scratch/missing cannot be written: No such file" "COHORT_TUNING_FILE=$scratch/missing/file.json"
complains "this is a folder" "COHORT_TUNING_FILE=$scratch"
complains "COHORT_TOPOLOGY=two sockets: hwloc does not understand" "COHORT_TOPOLOGY=two sockets"
succeeds env COHORT_TOPOLOGY='pack:2 core:3 pu:1' "$info" --topology
grep -q "socket 1: cores 3 to 5" "$scratch/out" || fail "not the topology of the setting: $(cat "$scratch/out")"
complains "$scratch/missing cannot be written: No such file" "COHORT_REPORT=$scratch/missing/report.json"
refuses "cannot be opened\|No such file" "$info" --report "$scratch/missing.json"
echo '{"cohort_report": 2}' >"$scratch/newer.json"
refuses "a report of format 2" "$info" --report "$scratch/newer.json"
echo 'no report' >"$scratch/none.json"
refuses "no report that COHORT_REPORT has named" "$info" --report "$scratch/none.json"
capture env COHORT_ALGORITHM=rnig "$info" --tuning
((status != 0)) || fail "an algorithm that does not exist is accepted: $(cat "$scratch/out")"
grep -q "choose one of auto, pieces" "$scratch/err" || fail "no legal names in: $(cat "$scratch/err")"
refuses "unrecognised option" "$info" --frobnicate
succeeds "$info" --help
succeeds "$info" --version
grep -qx 'cohort-info [0-9.]*' "$scratch/out" || fail "--version says: $(cat "$scratch/out")"
