#!/usr/bin/env bash
# The program that compare.sh builds with each MPI: its lines, and its mistakes.
#
#   peer_sweep_run.sh RANKS COMMAND...     COMMAND starts peer_sweep on RANKS ranks
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
ranks=$1
sweep=("${@:2}")

for collective in all-reduce reduce broadcast all-gather all-gather-uneven reduce-scatter all-to-all gather scatter; do
  for in_place in yes no; do
    case $collective-$in_place in broadcast-no | all-to-all-yes) continue ;; esac
    succeeds "${sweep[@]}" "$collective" --sizes 1200:4800 --in-place $in_place --label own
    same "$collective, in place $in_place: sizes" "1200 4800" "$(cut -d, -f7 "$scratch/out" | paste -sd' ')"
    same "$collective, in place $in_place: lines that are not right" 0 \
      "$(grep -vc "^D,own,float32,d,[01],$ranks,[0-9]*,[0-9.]*,[0-9.]*,[0-9.]*$" "$scratch/out")"
  done
done
for dtype in float64 int32; do
  succeeds "${sweep[@]}" all-reduce --sizes 1001 --dtype $dtype --huge-pages off
  same "$dtype: right lines" 1 "$(grep -c "^D,mpi,$dtype,.*[0-9]$" "$scratch/out")"
done
succeeds "${sweep[@]}" barrier
same "barrier: right lines" 1 "$(grep -c "^D,mpi,.*,0,[0-9.]*,[0-9.]*,[0-9.]*$" "$scratch/out")"

refuses() {
  capture "${sweep[@]}" "${@:2}"
  same "${*:2}: status" 2 "$status"
  grep -q "^peer_sweep: .*$1" "$scratch/err" || fail "${*:2}: expected '$1' in: $(cat "$scratch/err")"
}
refuses "unknown collective" all_reduce
refuses "no type for float31" all-reduce --dtype float31
refuses "choose yes or no" all-reduce --in-place maybe
refuses "not a size" all-reduce --sizes abc
refuses "unknown option" all-reduce --frobnicate yes
refuses "a value for each option" all-reduce --sizes
