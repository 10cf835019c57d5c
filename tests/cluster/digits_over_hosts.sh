#!/usr/bin/env bash
# Trains the digits example on one host and on two: the losses are the same, but for the
# order in which gradients are added up.
#
#   tests/cluster/digits_over_hosts.sh PROGRAM
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/cluster/same_losses.sh
source "$scripts/same_losses.sh"
hosts=$scripts/hosts.sh
program=$1

"$hosts" check || exit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

train() {
  "$hosts" run --hosts "$1" --ranks-per-host "$2" --share "$work" \
    -- "$program" --epochs 10 --strategy multi_worker_mirrored --json "$work/$1.json" >"$work/log" 2>&1 </dev/null ||
    { cat "$work/log" >&2; exit 1; }
}

train 1 1
train 2 2
same_losses 10 "$work/1.json" "$work/2.json"
