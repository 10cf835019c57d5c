#!/usr/bin/env bash
# Trains the digits example on one host and on two: the losses are the same, but for the
# order in which gradients are added up.
#
#   tests/cluster/digits_over_hosts.sh PROGRAM
set -euo pipefail
hosts=$(dirname "${BASH_SOURCE[0]}")/hosts.sh
program=$1

"$hosts" check || exit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

train() {
  "$hosts" run --hosts "$1" --ranks-per-host "$2" --share "$work" \
    -- "$program" --epochs 10 --strategy multi_worker_mirrored --json "$work/$1.json" >"$work/log" 2>&1 </dev/null ||
    { cat "$work/log" >&2; exit 1; }
}
losses() { grep -oE '"loss": *[-+.0-9e]+' "$work/$1.json" | grep -oE '[-+.0-9e]+$'; }

train 1 1
train 2 2
paste <(losses 1) <(losses 2) | awk '
  function abs(x) { return x < 0 ? -x : x }
  {
    epochs++
    difference = abs($1 - $2) / abs($1)
    if (difference > worst) worst = difference
  }
  END {
    printf "digits: %d epochs, worst relative difference of the losses %g\n", epochs, worst
    exit !(epochs == 10 && worst <= 1e-5)
  }'
