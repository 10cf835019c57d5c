#!/usr/bin/env bash
# The network has the same losses on 1, 2 and 3 ranks, but for roundings, and learns.
#
#   torch_distributed.sh PROGRAM LAUNCHER...      N among the words of LAUNCHER stands for the number of ranks
set -euo pipefail
program=$1
launcher=("${@:2}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*"; exit 1; }

for ranks in 1 2 3; do
  "${launcher[@]/#N/$ranks}" "$program" >"$scratch/$ranks" || fail "ended with an error: $(cat "$scratch/$ranks")"
  # Losses differ by the order in which float32 numbers are summed, the share of right ones by one image at most.
  paste -d ' ' "$scratch/1" "$scratch/$ranks" | awk '
    function distance(a, b) { return a > b ? a - b : b - a }
    NF != 14 || $2 != $9 || distance($5, $12) > 1e-4 || distance($7, $14) > 3e-3 { print; bad = 1 }
    END { exit bad || NR != 8 }' || fail "$ranks ranks train differently from one"
done
cat "$scratch/2"
tail -n 1 "$scratch/2" | awk '{ exit $NF < 0.88 }' || fail "does not learn"
