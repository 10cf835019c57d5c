#!/usr/bin/env bash
# The convolutional network has the same losses on 1, 2, 3 and 4 ranks, but for roundings. It learns, and goes on from
# a checkpoint: on as many ranks with the same digits, on others but for roundings.
#
#   torch_images.sh PROGRAM LAUNCHER...      N among the words of LAUNCHER stands for the number of ranks
set -euo pipefail
program=$1
launcher=("${@:2}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*"; exit 1; }

# train RANKS FILE OPTION...: FILE gets the lines of the epochs.
train() {
  "${launcher[@]/#N/$1}" "$program" --batch 50 "${@:3}" >"$2.all" || fail "ended with an error: $(cat "$2.all")"
  grep '^epoch' "$2.all" >"$2"
}

# agree A B: the losses differ by the order in which float32 numbers are summed, the accuracies by one image at most.
agree() {
  paste -d ' ' "$1" "$2" | awk '
    function distance(a, b) { return a > b ? a - b : b - a }
    NF != 20 { print "no lines of this form: " $0; bad = 1; exit }
    {
      for (i = 3; i < 10; i += 2)
        if ($i != $(i + 10) || distance($(i + 1), $(i + 11)) > ($i ~ /loss$/ ? 1e-5 : 3e-3)) { print; bad = 1 }
    }
    END { exit bad || NR == 0 }'
}

for ranks in 1 2 3 4; do train $ranks "$scratch/$ranks" --epochs 6; done
for ranks in 2 3 4; do agree "$scratch/1" "$scratch/$ranks" || fail "$ranks ranks train differently from one"; done
tail -n 1 "$scratch/1" | awk '{ exit $NF < 0.9 }' || fail "does not learn: $(tail -n 1 "$scratch/1")"

# 29 steps in an epoch: the newest checkpoint, that of step 40, lies within the second.
train 2 "$scratch/begun" --epochs 2 --checkpoint "$scratch/saved" --every 20
cp -r "$scratch/saved" "$scratch/copy"
train 2 "$scratch/same" --epochs 6 --checkpoint "$scratch/saved" --every 20
train 4 "$scratch/other" --epochs 6 --checkpoint "$scratch/copy" --every 20
tail -n 5 "$scratch/2" | diff - "$scratch/same" || fail "two ranks go on with other numbers"
tail -n 5 "$scratch/1" >"$scratch/last"
agree "$scratch/last" "$scratch/other" || fail "four ranks go on from a checkpoint of two with other numbers"
cat "$scratch"/[1-4]
