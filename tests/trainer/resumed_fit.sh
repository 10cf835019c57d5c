#!/usr/bin/env bash
# A fit that is killed at random batches and started again ends with the same parameters, slots and history,
# bit for bit, and has trained on the same examples, step by step, as one that nobody disturbed.
#
#   tests/trainer/resumed_fit.sh [--kills N] [--seed N] -- LAUNCHER... resumable_fit
#
#   --kills N   how many trainings, each killed once or twice at random steps; default: 20
#   --seed N    of the random choices; default: from the clock, and printed
set -euo pipefail

kills=20 seed=${EPOCHREALTIME/[.,]/}
while [[ $1 != -- ]]; do
  declare "${1#--}=$2"
  shift 2
done
shift
command=("$@")
RANDOM=$((seed % 32768))
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "resumed_fit: $* (seed $seed)" >&2; cat "$scratch/err" >&2; exit 1; }

readonly steps=64  # of 4 epochs of 16
# What each rank saw in each step, in the order of the steps; the last time counts.
examples() {
  local file
  for file in "$1".examples.*; do
    echo "${file##*.}"
    awk -F: '{ seen[$1] = $2 } END { for (step = 1; step in seen; ++step) print step, seen[step] }' "$file"
  done
}
train() { "${command[@]}" "$@" 2>"$scratch/err"; }

train "$scratch/calm" 1000 >"$scratch/calm.out" || fail "the undisturbed training fails"
examples "$scratch/calm" >"$scratch/calm.list"
(($(grep -c . "$scratch/calm.list") % (steps + 1) == 0)) || fail "the undisturbed training has other steps"

for ((number = 1; number <= kills; ++number)); do
  folder=$scratch/run$number every=$((RANDOM % 7 + 1))
  dies=$((RANDOM % (steps - 1) + 1))
  ! train "$folder" "$every" "$dies" >/dev/null || fail "it does not die after $dies steps"
  again=$((RANDOM % 16 + 1))
  train "$folder" "$every" "$again" >/dev/null || true
  train "$folder" "$every" >"$folder.out" || fail "it does not go on"
  cmp "$scratch/calm.out" "$folder.out" || fail "other bits, killed after $dies and $again steps, saved every $every"
  examples "$folder" | cmp "$scratch/calm.list" - || fail "other examples, killed after $dies and $again steps, saved every $every"
  rm -rf "$folder"
done
echo "resumed_fit: $kills trainings, each killed after a random step and again, seed $seed: the same bits and examples"
